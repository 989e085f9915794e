"""Describes the elementwise kernel of each op that has a `scalar` rule, for each operand dtype.

A `scalar` rule is the part of an op's definition that computes one element.

A backend that compiles ahead of time generates all kernels (`scalar_kernels`); one that compiles on
demand calls `scalar_kernel` for a single kernel. An attribute annotated `float` becomes a parameter
of the kernel, in the dtype of its floating operands; a `DType` attribute becomes part of its name.
`collapse` merges the axes of broadcast operands; `grain_of` returns the smallest number of elements
for which another thread pays. Nothing here generates or compiles source.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...dtype import ALL, DType, bool_
from ...errors import DuographError
from ...op import OPS, Op
from ...types import TensorType
from .dialect import SUFFIX
from .expression import Expr, compute_dtype
from .printer import trace_scalar

__all__ = [
    "ScalarKernel",
    "collapse",
    "grain_of",
    "kernel_name",
    "parameter_names",
    "scalar_kernel",
    "scalar_kernels",
]

# The fewest elements for which another thread pays: for plain arithmetic, and for functions such as
# exp.
GRAIN, HEAVY_GRAIN = 65536, 16384


def grain_of(heavy: bool) -> int:
    """Return the least number of elements that makes another thread worthwhile.

    The number is smaller if `heavy` is true: an element then costs more to compute than plain
    arithmetic.
    """
    return HEAVY_GRAIN if heavy else GRAIN


def collapse(
    shape: Sequence[int], operands: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Merge adjacent axes along which every operand is contiguous or broadcast.

    Returns the sizes of the remaining axes of `shape`, outermost first, and for each operand its
    strides in elements: 0 where it is broadcast.

    Examples:
        >>> from duograph.backend.codegen.scalar_kernels import collapse
        >>> collapse((2, 3, 4), [(2, 3, 4), (3, 1)])
        ([2, 3, 4], [[12, 4, 1], [0, 1, 0]])
        >>> collapse((2, 3, 4), [(2, 3, 4), (4,)])
        ([6, 4], [[4, 1], [0, 1]])
    """
    ndim = len(shape)
    strides: list[list[int]] = []
    for own in operands:
        padded = (1,) * (ndim - len(own)) + tuple(own)
        step, row = 1, [0] * ndim
        for axis in range(ndim - 1, -1, -1):
            if padded[axis] != 1:
                row[axis] = step
            step *= padded[axis]
        strides.append(row)
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in operands]
    for axis in range(ndim - 1, -1, -1):
        n = shape[axis]
        if n == 1:
            continue
        if sizes and all(row[axis] == s[-1] * sizes[-1] for row, s in zip(strides, steps)):
            sizes[-1] *= n
        else:
            sizes.append(n)
            for row, s in zip(strides, steps):
                s.append(row[axis])
    return sizes[::-1], [s[::-1] for s in steps]


class ScalarKernel(NamedTuple):
    """One elementwise kernel: ``result = expression(operands, parameters)``.

    Attributes:
        name: name of the kernel, a C identifier such as ``add_f32`` or ``select_b8_f32_f32``.
        op: the op that it computes.
        operands: name and stored dtype of each operand.
        parameters: names of attributes whose values the kernel receives at run time.
        result: stored dtype of the result.
        expression: the value, in `compute_dtype(result)`.
    """

    name: str
    op: Op
    operands: tuple[tuple[str, DType], ...]
    parameters: tuple[str, ...]
    result: DType
    expression: Expr


@functools.cache
def _annotations(op: Op) -> dict[str, str]:
    """Return parameter name -> type annotation, as text, of an op's Python function."""
    found = {}
    for p in op.__signature__.parameters.values():
        a = p.annotation
        found[p.name] = a if isinstance(a, str) else getattr(a, "__name__", "")
    return found


def parameter_names(op: Op) -> tuple[str, ...]:
    """Return the names of an op's attributes that its kernels take as run-time parameters."""
    return op.real_attributes


def kernel_name(op: Op, dtypes: Sequence[DType], attributes: Mapping[str, object]) -> str | None:
    """Return the name of an op's elementwise kernel for operand dtypes, such as ``add_f32``.

    The name contains the dtypes among the attributes. Returns None if another attribute is not a
    number that kernels take as a parameter.
    """
    parts = [op.name]
    if len(set(dtypes)) == 1:
        parts.append(SUFFIX[dtypes[0]])
    else:
        parts += [SUFFIX[d] for d in dtypes]
    parameters = parameter_names(op)
    for name, value in attributes.items():
        if isinstance(value, DType):
            parts.append("to_" + SUFFIX[value])
        elif name not in parameters or not isinstance(value, (int, float)):
            return None
    return "_".join(parts)


def scalar_kernel(
    op: Op, dtypes: Sequence[DType], attributes: Mapping[str, object]
) -> ScalarKernel | None:
    """Return the description of an op's elementwise kernel for given operand dtypes.

    Returns None if the op does not accept these dtypes, or if it has float attributes and an
    operand that is not floating.
    """
    if parameter_names(op) and not all(d.is_floating for d in dtypes[op.promote_from :]):
        return None  # parameters are floating: for other dtypes the op's body runs
    types = [TensorType.of((2,), d) for d in dtypes]
    try:
        op.check_dtypes(types)
        (result,) = op.infer_types(tuple(types), attributes)
    except DuographError:
        return None
    name = kernel_name(op, dtypes, attributes)
    assert name is not None and op.scalar_rule is not None
    tensors = [p.name for p in op.parameters if p.kind != "attribute"]
    operands = tuple(zip(tensors, dtypes, strict=True))
    parameters = parameter_names(op)
    real = compute_dtype(dtypes[-1])
    values = {
        k: Expr("input", real, (), k) if k in parameters else v for k, v in attributes.items()
    }
    expression = trace_scalar(op.scalar_rule, operands, values, result.dtype)
    return ScalarKernel(name, op, operands, parameters, result.dtype, expression)


def scalar_kernels(ops: Mapping[str, Op] = OPS) -> Iterator[ScalarKernel]:
    """Yield a `ScalarKernel` for each elementwise op and supported dtype, ordered by op name.

    Variadic ops are omitted, and so are ops with attributes other than floats and one dtype; their
    bodies run instead.
    """
    for _, op in sorted(ops.items()):
        if op.scalar_rule is None or op.variadic:
            continue
        others = [a for a in op.attribute_names if a not in parameter_names(op)]
        annotations = _annotations(op)
        if [annotations[a] for a in others] not in ([], ["DType"]):
            continue  # more than numbers and one dtype: the body of the op runs
        base = dict.fromkeys(parameter_names(op), 1.0)
        for dtype in ALL:
            first = [bool_] * op.promote_from
            dtypes = first + [dtype] * (op.n_operands - len(first))
            for target in ALL if others else (None,):
                attributes: dict[str, object] = dict(base)
                if target is not None:
                    attributes[others[0]] = target
                found = scalar_kernel(op, dtypes, attributes)
                if found is not None:
                    yield found
