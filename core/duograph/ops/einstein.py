"""Einstein summation (`einsum`): contractions become transposes, reductions and batched matmuls.

Users call it. It must be made of other ops, since no backend has a kernel for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from .linalg import matmul_of
from .linalg_contractions import transposed
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, strided_copy

__all__ = ["einsum"]


def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Compute an Einstein summation (`mindspore.ops.einsum`).

    Args:
        equation: such as ``"bij,bjk->bik"``: a letter per axis, ``...`` for leading axes that
            broadcast. Without ``->`` the result has the letters that occur once, in order of the
            alphabet. A letter twice in one operand selects the diagonal.
        operands: Tensors, or one tuple of them.

    Returns:
        Tensor.

    Raises:
        ValueError: the equation is malformed, or sizes do not match.

    Operands are combined from left to right, each pair by one matmul.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> print(ms.ops.einsum("ij->j", x), ms.ops.einsum("ii", x))
        [4. 6.] 5.0
        >>> print(ms.ops.einsum("ij,j->i", x, x[0]))
        [ 5. 11.]
    """
    given: Sequence[Any] = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    )
    if not isinstance(equation, str):
        raise ArgumentError(
            f"einsum: got {type(equation).__name__} for the equation; wanted a string"
        )
    terms, result = _einsum_terms(equation, given)
    values = [_diagonals(x, term) for x, term in zip(given, terms, strict=True)]
    value, letters = values[0]
    for i, (y, other) in enumerate(values[1:], 2):
        later = {c for _, t in values[i:] for c in t} | set(result)
        value, letters = _contract(value, letters, y, other, later)
    value, letters = _summed(value, letters, set(result))
    return transposed(value, [letters.index(c) for c in result])


def _einsum_terms(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """Parse an einsum equation; return (axis names of each operand, axis names of the result).

    The names are the letters; the axes of an ellipsis get numbered names, such as ``.1`` for the
    last. Raises an error if the sizes of the operands do not match.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise ArgumentValueError(
            f"einsum: got {len(operands)} operands for {equation!r}; wanted {len(parts)}"
        )
    sizes: dict[str, int] = {}
    terms: list[list[str]] = []
    most = 0
    for part, x in zip(parts, operands, strict=True):
        head, dots, tail = part.partition("...")
        bad = [c for c in head + tail if not c.isalpha()]
        if bad:
            raise ArgumentValueError(f"einsum: got {bad[0]!r} in {equation!r}; wanted letters")
        hidden = x.ndim - len(head) - len(tail)
        if hidden < 0 or (hidden and not dots):
            raise ShapeError(
                f"einsum: got an operand of shape {x.shape} for {part!r} in {equation!r}; wanted "
                f"{len(head) + len(tail)} axes{' at least' if dots else ''}"
            )
        term = [*head, *[f".{hidden - i}" for i in range(hidden)], *tail]
        most = max(most, hidden)
        for name, n in zip(term, x.shape, strict=True):
            have = sizes.setdefault(name, n)
            if n != have and 1 not in (n, have):
                raise ShapeError(
                    f"einsum: got sizes {have} and {n} for {name!r} in {equation!r}; wanted one"
                )
            sizes[name] = max(n, have) if 0 not in (n, have) else 0
        terms.append(term)
    dotted = [f".{most - i}" for i in range(most)]
    if arrow:
        head, dots, tail = right.partition("...")
        result = [*head, *(dotted if dots else []), *tail]
    else:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        result = [*dotted, *once]
    if len(set(result)) != len(result) or any(c not in sizes for c in result):
        raise ArgumentValueError(
            f"einsum: got the result {right!r} in {equation!r}; wanted letters of the operands, "
            "each once"
        )
    return terms, result


def _diagonals(x: Tensor, term: list[str]) -> tuple[Tensor, list[str]]:
    """Merge axes of an operand that have the same einsum letter into one, along their diagonal.

    `term` has the axis names of `x`. Returns the tensor and its remaining axis names. For example,
    the names ``ii`` become ``i``.
    """
    names = list(dict.fromkeys(term))
    if len(names) == len(term):
        return x, term
    strides, step = [0] * x.ndim, 1
    for i in reversed(range(x.ndim)):
        strides[i] = step
        step *= x.shape[i]
    shape, merged = [], []
    for name in names:
        axes = [i for i, c in enumerate(term) if c == name]
        if len({x.shape[i] for i in axes}) > 1:
            raise ShapeError(
                f"einsum: got a diagonal {name!r} of axes of different sizes in {x.shape}"
            )
        shape.append(x.shape[axes[0]])
        merged.append(sum(strides[i] for i in axes))
    return strided_copy(x, tuple(shape), tuple(merged), 0), names


def _summed(x: Tensor, term: list[str], keep: set[str]) -> tuple[Tensor, list[str]]:
    axes = tuple(i for i, c in enumerate(term) if c not in keep)
    if not axes:
        return x, term
    return reduce_sum(x, axes, False), [c for c in term if c in keep]


def _contract(
    x: Tensor, left: list[str], y: Tensor, right: list[str], later: set[str]
) -> tuple[Tensor, list[str]]:
    """Multiply two einsum operands by one batched matmul, summing over axes not in `later`.

    `left` and `right` name the axes of `x` and `y`; `later` names those that the result or a later
    operand needs. Returns the product and its axis names.
    """
    x, left = _summed(x, left, later | set(right))
    y, right = _summed(y, right, later | set(left))
    a = dict(zip(left, x.shape, strict=True))
    b = dict(zip(right, y.shape, strict=True))
    both = [c for c in left if c in b]
    batch = [c for c in both if c in later]
    inner = [c for c in both if c not in later]
    for c in inner:  # matmul does not broadcast its inner axes
        if a[c] != b[c]:
            x, y = _widened(x, left, c, b[c]), _widened(y, right, c, a[c])
    a = dict(zip(left, x.shape, strict=True))
    b = dict(zip(right, y.shape, strict=True))
    own = [c for c in left if c not in b]
    other = [c for c in right if c not in a]
    k = math.prod([a[c] for c in inner])
    x = reshape_to(
        transposed(x, [left.index(c) for c in (*batch, *own, *inner)]),
        (*[a[c] for c in batch], math.prod([a[c] for c in own]), k),
    )
    y = reshape_to(
        transposed(y, [right.index(c) for c in (*batch, *inner, *other)]),
        (*[b[c] for c in batch], k, math.prod([b[c] for c in other])),
    )
    out = matmul_of(x, y)
    lead = out.shape[: len(batch)]
    shape = (*lead, *[a[c] for c in own], *[b[c] for c in other])
    return reshape_to(out, shape), [*batch, *own, *other]


def _widened(x: Tensor, term: list[str], name: str, size: int) -> Tensor:
    i = term.index(name)
    if x.shape[i] != 1:
        return x
    return broadcast_to(x, (*x.shape[:i], size, *x.shape[i + 1 :]))
