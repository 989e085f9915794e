"""Sharding rules: an einsum-like equation of the dimensions of each op, in one table.

``"ij,jk->ik"`` has one letter per axis of each operand and result. Axes with the same lower-case
letter may be sharded, over the same mesh axes; an axis with an upper-case letter or a dot must not
be sharded. A lower-case letter that no result has is contracted: if it is sharded, the results are
partial sums. The letters of an absent operand, and of one without axes, are the empty string.

The equations of element-wise ops and reductions follow from what these ops declare. An op without
an equation is replaced by its body; without a body either, it runs replicated on global tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from ..ir.graph import Attributes, GraphNode
from ..op import Op
from ..types import TensorType, ValueType

__all__ = ["Equation", "equation_of", "has_equation", "localized"]

LOWER = "abcdefghijklmnopqrstuvwxyz"
Types: TypeAlias = "Sequence[TensorType | None]"
Rule: TypeAlias = "Callable[[Types, Types, Attributes], Equation]"


@dataclasses.dataclass(frozen=True)
class Equation:
    """The index equation of one op call: which axes of its tensors may be sharded together.

    Attributes:
        operands, results: for each tensor a string with one letter per axis (see the module).
        linear: groups of operands in which the op is jointly linear, such as both operands of an
            addition: if all operands of a group are partial sums, so are the results.
        combine: the reduction that completes partial results: "sum", "max" or "min".
        added: positions of operands to which a contraction is added, as in a scatter-add; if the
            contracted letter is sharded, these operands must be partial sums as well.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    linear: tuple[tuple[int, ...], ...] = ()
    combine: str = "sum"
    added: tuple[int, ...] = ()

    @property
    def divisible(self) -> bool:
        """Whether any axis may be sharded."""
        return any(c.islower() for letters in (*self.operands, *self.results) for c in letters)

    def __str__(self) -> str:
        return f"{','.join(self.operands)}->{','.join(self.results)}"


def _broadcast(shape: Sequence[int], result: Sequence[int]) -> str:
    """Return the letters of an operand that is broadcast to a result with the letters a, b, ...

    `shape` and `result` are the shapes of both. An axis that is stretched gets a dot.
    """
    lead = len(result) - len(shape)
    return "".join(LOWER[lead + i] if n == result[lead + i] else "." for i, n in enumerate(shape))


def _pointwise(operands: Types, results: Types, attributes: Attributes) -> Equation:
    """Return the equation of an element-wise op: every axis may be sharded."""
    largest = max((r.shape for r in results if r is not None), key=len)
    left = tuple("" if t is None else _broadcast(t.shape, largest) for t in operands)
    right = tuple("" if t is None else _broadcast(t.shape, largest) for t in results)
    return Equation(left, right)


def _linear(*groups: tuple[int, ...]) -> Rule:
    """Return the rule of an element-wise op that is linear in the operands of each group jointly.

    A group is a tuple of positions of operands, such as (0, 1) for an addition.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        return dataclasses.replace(_pointwise(operands, results, attributes), linear=groups)

    return rule


def _whole(count: int) -> str:
    return "." * count


def _letters(count: int, *whole: int) -> str:
    return "".join("." if i in whole else LOWER[i] for i in range(count))


def _shape(t: TensorType | None) -> tuple[int, ...]:
    assert t is not None
    return t.shape


def _along(*groups: tuple[int, ...]) -> Rule:
    """Return the rule of an op that works along its attribute `axis` or `axes`.

    The axes that the attribute names stay unsharded. All tensors have the same axes, as in a
    softmax or a sort. `groups` is the `linear` of the resulting `Equation`.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        whole = attributes["axis"] if "axis" in attributes else attributes["axes"]
        if isinstance(whole, int):
            whole = (whole,)
        ndim = max(len(_shape(t)) for t in (*operands, *results) if t is not None)
        letters = _letters(ndim, *(a % ndim for a in whole))
        return Equation(
            tuple("" if t is None or not t.shape else letters for t in operands),
            tuple(letters if t is not None and t.shape else "" for t in results),
            groups,
        )

    return rule


def _joined(operands: Types, results: Types, attributes: Attributes) -> Equation:
    found = _along()(operands, results, attributes)
    return dataclasses.replace(found, linear=(tuple(range(len(operands))),))


def _arg(operands: Types, results: Types, attributes: Attributes) -> Equation:
    """Return the equation of argmax or argmin: the axis that the op removes stays unsharded."""
    axis = attributes["axis"]
    letters = _letters(len(_shape(operands[0])), axis)
    return Equation((letters,), (letters[:axis] + letters[axis + 1 :],))


def _reduction(op: Op) -> Rule:
    """Return the rule of a reduction.

    The reduced axes of a sum, maximum or minimum may be sharded; the results are then partial.
    Those of other reductions, and of bool operands, stay unsharded.
    """
    combine = {"+": "sum", "max": "max", "min": "min"}.get(str(op.traits.reduction))

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        ndim = len(_shape(operands[0]))
        axis = attributes["axis"]
        axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        gone = {a % ndim for a in axes}
        first = operands[0]
        parts = combine is not None and first is not None and first.dtype.kind != "b"
        letters = _letters(ndim, *(() if parts else gone))
        kept = _letters(ndim, *gone)
        if not attributes["keepdims"]:
            kept = "".join(c for i, c in enumerate(kept) if i not in gone)
        return Equation((letters,), (kept,), ((0,),) if combine == "sum" else (), combine or "sum")

    return rule


def _matmul(operands: Types, results: Types, attributes: Attributes) -> Equation:
    """Return the equation of a matmul, ``...ij,...jk->...ik`` unless an operand is transposed."""
    a, b = _shape(operands[0]), _shape(operands[1])
    batch = _shape(results[0])[:-2]
    i, j, k = (LOWER[len(batch) + n] for n in range(3))
    x = _broadcast(a[:-2], batch) + (j + i if attributes["transpose_a"] else i + j)
    y = _broadcast(b[:-2], batch) + (k + j if attributes["transpose_b"] else j + k)
    return Equation((x, y), (LOWER[: len(batch)] + i + k,), ((0,), (1,)))


def _transpose(operands: Types, results: Types, attributes: Attributes) -> Equation:
    perm = attributes["perm"]
    return Equation((_letters(len(perm)),), ("".join(LOWER[p] for p in perm),), ((0,),))


def _reshape(operands: Types, results: Types, attributes: Attributes) -> Equation:
    """Return the equation of a reshape, which merges groups of axes or splits axes into groups.

    In each group only the slowest (leftmost) axis may be sharded.
    """
    a, b = _shape(operands[0]), _shape(results[0])
    left, right = ["."] * len(a), ["."] * len(b)
    if 0 in a:
        return Equation(("".join(left),), ("".join(right),), ((0,),))
    i = j = 0
    fresh = iter(LOWER)
    while i < len(a) and j < len(b):
        first_i, first_j = i, j
        m, n = a[i], b[j]
        while m != n:
            if m < n:
                i += 1
                m *= a[i]
            else:
                j += 1
                n *= b[j]
        # axes of size 1 before the slowest cannot be sharded; skip them on both sides
        while first_i < i and a[first_i] == 1:
            first_i += 1
        while first_j < j and b[first_j] == 1:
            first_j += 1
        left[first_i] = right[first_j] = next(fresh)
        i, j = i + 1, j + 1
    return Equation(("".join(left),), ("".join(right),), ((0,),))


def _filled(operands: Types, results: Types, attributes: Attributes) -> Equation:
    return Equation((), (_letters(len(_shape(results[0]))),))


def _gather(operands: Types, results: Types, attributes: Attributes) -> Equation:
    table, index, axis = _letters(len(_shape(operands[0]))), operands[1], attributes["axis"]
    rows = LOWER[len(table) : len(table) + len(_shape(index))]
    first, last = table[:axis], table[axis + 1 :]
    return Equation((f"{first}.{last}", rows), (first + rows + last,), ((0,),))


def _scatter_add(operands: Types, results: Types, attributes: Attributes) -> Equation:
    found = _gather(operands, results, attributes)
    table, rows = found.operands
    (updates,) = found.results
    return Equation((table, rows, updates), (table,), ((0, 2),), added=(0,))


def _scatter_set(operands: Types, results: Types, attributes: Attributes) -> Equation:
    found = _scatter_add(operands, results, attributes)
    table, rows, updates = found.operands
    gone = str.maketrans(rows, _whole(len(rows)))
    return Equation((table, _whole(len(rows)), updates.translate(gone)), (table,))


def _elements(kind: str) -> Rule:
    """Return the rule of gather_elements or scatter_elements, for `kind` "gather", "add" or "set".

    The attribute `axis` stays unsharded; another axis may be sharded if the tensor and the indices
    have the same size along it.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        x, index = _shape(operands[0]), _shape(operands[1])
        whole = [i for i, (m, n) in enumerate(zip(x, index)) if m != n]
        letters = _letters(len(x), attributes["axis"], *whole)
        if kind == "gather":
            return Equation((letters, letters), (letters,), ((0,),))
        linear = ((0, 2),) if kind == "add" else ()
        return Equation((letters,) * 3, (letters,), linear)

    return rule


def _layer_norm(operands: Types, results: Types, attributes: Attributes) -> Equation:
    ndim, axis = len(_shape(operands[0])), attributes["axis"]
    x = _letters(ndim, *range(axis, ndim))
    scale = _whole(ndim - axis)
    return Equation((x, scale, scale), (x, x, x))


def _layer_norm_grad(operands: Types, results: Types, attributes: Attributes) -> Equation:
    ndim, axis = len(_shape(operands[0])), attributes["axis"]
    x = _letters(ndim, *range(axis, ndim))
    scale = _whole(ndim - axis)
    return Equation((x, scale, x, x, x), (x, scale, scale), ((4,),))


def _slice(operands: Types, results: Types, attributes: Attributes) -> Equation:
    """Return the equation of a strided slice: axes that are taken in full may be sharded."""
    x = _shape(operands[0])
    partly = [i for i, s in enumerate(attributes["strides"]) if s != 1]
    out = _shape(results[0])
    letters = _letters(len(x), *partly, *(i for i, (m, n) in enumerate(zip(x, out)) if m != n))
    return Equation((letters,), (letters,), ((0,),))


def _update(operands: Types, results: Types, attributes: Attributes) -> Equation:
    x, v = _shape(operands[0]), _shape(operands[1])
    if len(x) != len(v):
        return _unknown(operands, results)
    letters = _letters(len(x), *(i for i, (m, n) in enumerate(zip(x, v)) if m != n))
    return Equation((letters, letters), (letters,), ((0, 1),))


def _pad(operands: Types, results: Types, attributes: Attributes) -> Equation:
    moved = [i for i, (a, b) in enumerate(zip(attributes["low"], attributes["high"])) if a or b]
    letters = _letters(len(_shape(operands[0])), *moved)
    return Equation((letters,), (letters,), ((0,),) if attributes["value"] == 0 else ())


def _conv(kind: str) -> Rule:
    """Return the rule of a convolution (`kind` ""), or of its gradient for "input" or "weight".

    The tensors are (N, C, spatial...) and (O, C / groups, kernel...). N may be sharded, and O and C
    if there is one group.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        inner = _whole(len(_shape(operands[0])) - 2)
        o, c = ("o", "c") if attributes["groups"] == 1 else (".", ".")
        x, w, y = f"n{c}{inner}", f"{o}{c}{inner}", f"n{o}{inner}"
        left, right = {"": ((x, w), y), "input": ((y, w), x), "weight": ((x, y), w)}[kind]
        return Equation(left, (right,), ((0,), (1,)))

    return rule


def _channels(*linear: tuple[int, ...]) -> Rule:
    """Return the rule of a pooling op: the axes of samples and channels may be sharded.

    `linear` is the `linear` of the resulting `Equation`, groups of operands in which the op is
    linear.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        def letters(t: TensorType | None) -> str:
            return "nc" + _whole(len(_shape(t)) - 2)

        return Equation(tuple(map(letters, operands)), tuple(map(letters, results)), linear)

    return rule


def _rows(*whole: int) -> Rule:
    """Return the rule of an op on batches of matrices, of which only batch axes may be sharded.

    `whole` is one number: how many of each tensor's last axes stay unsharded.
    """

    def rule(operands: Types, results: Types, attributes: Attributes) -> Equation:
        def letters(t: TensorType | None, count: int) -> str:
            ndim = len(_shape(t))
            return _letters(ndim, *range(ndim - count, ndim))

        count = whole[0]
        return Equation(
            tuple(letters(t, count) for t in operands), tuple(letters(t, count) for t in results)
        )

    return rule


# The table: equations that do not follow from what an op declares.
RULES: dict[str, Rule] = {
    "add": _linear((0, 1)),
    "sub": _linear((0, 1)),
    "mul": _linear((0,), (1,)),
    "div": _linear((0,)),
    "neg": _linear((0,)),
    "select": _linear((1, 2)),
    "identity": _linear((0,)),
    "stop_gradient": _linear((0,)),
    "sharding_constraint": _linear((0,)),
    "broadcast_to": _linear((0,)),
    "checked_labels": _pointwise,
    "fill": _filled,
    "matmul": _matmul,
    "transpose": _transpose,
    "reshape": _reshape,
    "concat": _joined,
    "flip": _along((0,)),
    "strided_slice": _slice,
    "slice_update": _update,
    "pad_constant": _pad,
    "gather": _gather,
    "gather_elements": _elements("gather"),
    "scatter_add": _scatter_add,
    "scatter_set": _scatter_set,
    "scatter_elements_add": _elements("add"),
    "scatter_elements_set": _elements("set"),
    "softmax": _along(),
    "softmax_grad": _along((1,)),
    "log_softmax": _along(),
    "log_softmax_grad": _along((1,)),
    "sort": _along(),
    "topk": _along(),
    "cumsum": _along((0,)),
    "cumprod": _along(),
    "cummax": _along(),
    "cummin": _along(),
    "argmax": _arg,
    "argmin": _arg,
    "layer_norm_core": _layer_norm,
    "layer_norm_grad": _layer_norm_grad,
    "conv": _conv(""),
    "conv_input_grad": _conv("input"),
    "conv_weight_grad": _conv("weight"),
    "max_pool": _channels(),
    "max_pool_grad": _channels(),
    "avg_pool": _channels((0,)),
    "avg_pool_grad": _channels((0,)),
    "cholesky": _rows(2),
    "inverse": _rows(2),
    **dict.fromkeys(
        (
            "adadelta_step", "adagrad_step", "adam_step", "adam_weight_decay_step", "adamax_step",
            "adamw_amsgrad_step", "adamw_step", "amsgrad_step", "centered_rmsprop_step",
            "ftrl_step", "momentum_step", "rmsprop_step", "sgd_step",
        ),
        _pointwise,
    ),
}  # fmt: skip


def _rule_of(op: Op) -> Rule | None:
    found = RULES.get(op.name)
    if found is None and op.elementwise:
        return _pointwise
    if found is None and op.traits.reduction is not None:
        return _reduction(op)
    return found


def has_equation(op: Op) -> bool:
    """Return whether an op has an index equation."""
    return _rule_of(op) is not None


def _unknown(operands: Types, results: Types) -> Equation:
    def letters(types: Iterable[ValueType | None]) -> tuple[str, ...]:
        return tuple(_whole(t.ndim) if isinstance(t, TensorType) else "" for t in types)

    return Equation(letters(operands), letters(results))


def equation_of(node: GraphNode, types: Sequence[ValueType]) -> Equation:
    """Return the index equation of a call in a graph whose values have the given types.

    An op without a rule gets an equation that shards no axis.
    """
    operands: Types = cast("Types", [None if i is None else types[i] for i in node.operands])
    results: Types = cast("Types", [types[i] for i in node.results])
    rule = _rule_of(node.op)
    if rule is None:
        return _unknown(operands, results)
    return rule(operands, results, node.attributes)


# Attributes that are the shape of the result, and those that are shapes of another tensor.
_SHAPES = {
    "fill": "shape", "reshape": "shape", "broadcast_to": "shape",
    "conv_input_grad": "input_shape", "conv_weight_grad": "weight_shape",
    "avg_pool_grad": "input_shape", "max_pool_grad": "input_shape",
}  # fmt: skip


def localized(
    node: GraphNode, operands: Sequence[ValueType | None], results: Sequence[ValueType]
) -> Attributes:
    """Return the attributes with which a call runs on the local shards of a rank.

    An attribute that holds a shape becomes the local shape. The end of a slice becomes the local
    size on axes that the slice takes in full.

    Args:
        node: the call on global tensors.
        operands, results: the types of the local shards.
    """
    attributes = dict(node.attributes)
    (out, *_) = results
    if not isinstance(out, TensorType):
        return attributes
    name = _SHAPES.get(node.op.name)
    if name is not None:
        attributes[name] = out.shape
    elif node.op.name in ("strided_slice", "slice_update"):
        x = operands[0]
        assert isinstance(x, TensorType)
        ends = zip(attributes["end"], attributes["begin"], attributes["strides"], x.shape)
        part = out.shape if node.op.name == "strided_slice" else _shape_of(operands[1])
        attributes["end"] = tuple(
            n if length == n and begin == 0 and stride == 1 else end
            for (end, begin, stride, n), length in zip(ends, part)
        )
    return attributes


def _shape_of(t: ValueType | None) -> tuple[int, ...]:
    assert isinstance(t, TensorType)
    return t.shape
