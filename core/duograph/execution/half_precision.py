"""Computes elementwise ops of half-precision floats in float32 if a backend has no kernel.

`execution.lowering` calls `float32_body` before it decomposes an op. If the decomposition were
computed in half precision, each of its ops would round to 8 bits (bfloat16) or 11 bits (float16),
and constants of polynomials, thresholds and products could leave the range of float16. With one
rounding at the end, the result equals that of kernels, which also compute in float32. Nothing here
applies to other dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dtype import bfloat16, float16, float32
from ..ir.basic_ops import cast_to
from ..ir.builder import GraphBuilder
from ..ir.graph import Graph
from ..op import Op
from ..types import TensorType

__all__ = ["float32_body"]

_HALF = (float16, bfloat16)


def float32_body(
    op: Op, types: tuple[TensorType | None, ...], attributes: Mapping[str, object]
) -> Graph | None:
    """Return a graph that computes an elementwise op in float32, with casts before and after.

    It casts float16 and bfloat16 operands to float32, and the result back to the op's result dtype.
    The result is None for an op that is not elementwise, or that has no float16 or bfloat16
    operand.
    """
    if not op.elementwise or not any(t is not None and t.dtype in _HALF for t in types):
        return None
    builder = GraphBuilder()
    values = [None if t is None else builder.parameter(t) for t in types]
    with builder.current():
        wide = [v if v is None or v.dtype not in _HALF else cast_to(v, float32) for v in values]
        result = builder.apply(op, tuple(wide), dict(attributes))
        (wanted,) = op.infer_types(types, attributes)
        if result.dtype is not wanted.dtype:
            result = cast_to(result, wanted.dtype)
        return builder.finish(result)
