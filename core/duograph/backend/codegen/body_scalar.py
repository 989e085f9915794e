"""Derives the scalar expression of an element-wise composite op by running its body symbolically.

`Op.scalar_rule` calls `run_body` for composite ops (defined by other ops) with ``elementwise=True``
and no `scalar` rule of their own. Every op that the body calls must have a scalar rule or make a
constant. This module generates no source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtype import promote_scalar, scalar_dtype
from ...errors import UnsupportedOpError
from ...runtime_state import runtime_state, thread_state
from ...tensor import Tensor
from ...types import TensorType
from .expression import Expr, Scalars

if TYPE_CHECKING:
    from ...ir.graph import Attributes
    from ...op import Op

__all__ = ["run_body"]


class ScalarTensor(Tensor):
    """A 0-d tensor that stands for a symbolic scalar (`expression`) and has no buffer."""

    __slots__ = ("_builder", "expression")

    _builder: _ScalarBuilder
    expression: Expr


class _ScalarBuilder:
    """Intercepts the ops that a composite's body calls and applies their scalar rules instead.

    While the body runs, `run_body` installs it as the thread's graph builder, the object that
    receives all op calls of the thread.
    """

    staged = False

    def __init__(self, s: Scalars) -> None:
        self.s = s

    def tensor(self, expression: Expr) -> ScalarTensor:
        made = object.__new__(ScalarTensor)
        made._type = TensorType.of((), expression.dtype)
        made._buf = None
        made._builder = self
        made.expression = expression
        return made

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: Attributes) -> ScalarTensor:
        if op.name == "fill":
            return self.tensor(self.s.const(attributes["value"], attributes["dtype"]))
        first = op.promote_from
        like = next((x._type.dtype for x in operands[first:] if isinstance(x, Tensor)), None)
        values = []
        for i, x in enumerate(operands):
            if not isinstance(x, Tensor):
                weak = like if i >= first else None
                dtype = scalar_dtype(x) if weak is None else promote_scalar(weak, x)
                x = self.tensor(self.s.const(x.item() if isinstance(x, np.generic) else x, dtype))
            values.append(x)
        target = op.promoted_dtype([v._type for v in values])
        expressions = [
            self.s.cast(v.expression, target) if target is not None and i >= first else v.expression
            for i, v in enumerate(values)
        ]
        if op.scalar_rule is None:
            raise UnsupportedOpError(
                f"{op.name}: has no scalar rule; an element-wise body needs one"
            )
        return self.tensor(op.scalar_rule(self.s, *expressions, **attributes))


def run_body(s: Scalars, op: Op, scalars: Sequence[Expr], attributes: Attributes) -> Expr:
    """Return the scalar expression of a composite op, by calling its body on symbolic scalars.

    `scalars` are the op's operands; `attributes` are its attributes: numbers, dtypes or
    expressions.

    Raises:
        UnsupportedOpError: the body calls an op without a scalar rule.
    """
    assert op.body is not None
    builder = _ScalarBuilder(s)
    values = {k: builder.tensor(v) if isinstance(v, Expr) else v for k, v in attributes.items()}
    before = thread_state.builder
    thread_state.builder = builder
    try:
        found = op.body(*[builder.tensor(x) for x in scalars], **values)
    finally:
        thread_state.builder = before
    return found.expression if isinstance(found, ScalarTensor) else s.const(found, scalars[0].dtype)


runtime_state.scalar_of_body = run_body
