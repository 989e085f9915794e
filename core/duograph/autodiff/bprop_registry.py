"""The public registry where users replace gradient rules of ops (`bprop_getters`, MindSpore 1.x).

```python
@bprop_getters.register(ops.Mul)
def get_bprop_mul(self):
    def bprop(x, y, out, dout):
        return binop_grad_common(x, y, y * dout, x * dout)
    return bprop
```

Users register rules; the reverse sweep uses them. A rule registered here immediately replaces the
rule of the op, in eager and in compiled code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..errors import ArgumentError
from ..op import OPS, Op
from ..op_tables import rules_changed
from ..ops.primitive import Primitive
from ..ops.shape_primitives import unbroadcast
from ..tensor import Tensor

__all__ = ["BpropRegistry", "bprop_getters", "binop_grad_common"]


# bprop(*inputs, out, dout), and what returns it for an instance of the primitive class
Bprop: TypeAlias = Callable[..., object]
BpropGetter: TypeAlias = Callable[[Primitive], Bprop]


class BpropRegistry:
    """Registry in which users replace the gradient rule of an op, by primitive class, op or name.

    Attributes:
        public_names: function that returns the object with a given name in `duograph.ops`, or None;
            `duograph.ops` sets it.
    """

    def __init__(self) -> None:
        self.public_names: Callable[[str], object] = OPS.get

    def register(self, prim: object) -> Callable[[BpropGetter], BpropGetter]:
        """Return a decorator that registers a getter of a gradient rule.

        The getter is called with an instance of the primitive and returns `bprop(*inputs, out,
        dout)`.

        Args:
            prim: a primitive class (`ops.Mul`), an op (`ops.mul`), or the name of either.

        Raises:
            TypeError: `prim` names no op, or the getter takes no argument.

        Examples:
            >>> import duograph as ms
            >>> from duograph.ops import bprop_getters
            >>> callable(bprop_getters.register(ms.ops.Add))
            True
        """
        op, cls = _find(prim)

        def decorate(getter: BpropGetter) -> BpropGetter:
            if not callable(getter) or not inspect.signature(getter).parameters:
                raise ArgumentError(
                    f"bprop_getters.register: got {getter!r} for {op.name}; wanted a function "
                    f"of the primitive that returns bprop(*inputs, out, dout)"
                )

            def rule(attributes: Mapping[str, object]) -> Bprop:
                bprop = getter(cls.from_attributes(attributes))
                extra = tuple(attributes.values()) if _takes_attributes(bprop, op) else ()

                def call(*args: object) -> object:
                    *inputs, out, dout = args
                    return bprop(*inputs, *extra, out, dout)

                return call

            op.bprop_rule = rule
            op.own_rule = False
            op.differentiable = True
            rules_changed()
            return getter

        return decorate

    def get(self, prim: object) -> Callable[[Mapping[str, object]], Bprop] | None:
        """Return the function from an op's attributes to its gradient rule, or None.

        `prim` is a primitive class, an op, or the name of one of them. The result is None if the op
        has no rule.

        Raises:
            ArgumentError: `prim` is none of these.
        """
        return _find(prim)[0].bprop_rule


def _takes_attributes(bprop: Bprop, op: Op) -> bool:
    """Return whether a gradient rule takes the op's attributes after its operands.

    The result is False for a rule with ``*args``.

    Raises:
        ArgumentError: the number of the rule's parameters fits neither (operands, out, dout) nor
            (operands, attributes, out, dout).
    """
    parameters = inspect.signature(bprop).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    wanted = op.n_operands + 2
    if len(parameters) == wanted:
        return False
    if len(parameters) == wanted + len(op.attribute_names):
        return True
    names = ", ".join(p.name for p in op.parameters if p.kind != "attribute")
    raise ArgumentError(
        f"{op.name}: the bprop takes {len(parameters)} arguments, wanted {wanted}: "
        f"({names}, out, dout)"
    )


def _find(prim: object) -> tuple[Op, type[Primitive]]:
    """Return (op, primitive class) for an op, a primitive class or the name of one of them.

    Raises:
        ArgumentError: `prim` is none of these.
    """
    if isinstance(prim, str):
        found = OPS.get(prim)
        if found is None:
            prim = bprop_getters.public_names(prim) or prim
        else:
            return found, Primitive
    if isinstance(prim, Op):
        return prim, Primitive
    owner = getattr(prim, "op", None)
    if isinstance(owner, Op):
        cls = prim if isinstance(prim, type) else type(prim)
        return owner, cls if hasattr(cls, "from_attributes") else Primitive
    unknown = f"no op has the name {prim!r}" if isinstance(prim, str) else f"got {prim!r}"
    raise ArgumentError(
        f"bprop_getters.register: {unknown}; wanted a primitive class such as ops.Mul, an op such "
        "as ops.mul, or the name of one, 'mul'. A Cell with a method bprop, or ops.Custom, has its "
        "own gradient"
    )


bprop_getters = BpropRegistry()


def binop_grad_common(x: Tensor, y: Tensor, dx: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the gradients of a broadcasting binary op over the broadcast axes.

    Args:
        x, y: the operands.
        dx, dy: gradients in the shape of the result.

    Returns:
        (dx, dy) in the shapes of x and y.
    """
    return unbroadcast(dx, x), unbroadcast(dy, y)
