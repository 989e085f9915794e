"""The facts about an op that graph passes and code generators rely on, declared with the op.

An op declares them as options, such as `@op(reduction="+")`, so that no pass lists ops by name.
This module must not refer to particular ops or passes, because both import it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["ACCUMULATED", "NO_TRAITS", "Traits"]

# Reductions that a generated loop over rows or columns can accumulate.
ACCUMULATED = frozenset({"+", "max"})


class Traits(NamedTuple):
    """Facts that an op declares for graph passes and code generators.

    Attributes:
        folds: kinds of operand dtypes (letters of `DType.kind`) for which the NumPy reference
            computes the same bits as every kernel, so that a pass may fold constants.
        reduction: how a reduction over the attribute `axis` combines elements; None for an op that
            is no reduction.
        gather: what one index selects in an op that reads its first operand at the indices in its
            second, along `axis`: a whole row ("rows") or a single element ("elements").
        scatter: how an op writes rows of its third operand to those rows of the first that the
            second operand names: "+" adds them, "=" replaces.
        per_axis: names of the attributes that have one item per axis, of an op that only moves
            elements, such as strided_slice.
        broadcasts: whether the result only repeats elements of the operand.
        checks: whether the kernel raises IndexRangeError for an index or label that is out of
            range.
    """

    folds: str = ""
    reduction: Literal["+", "*", "max", "min", "and", "or"] | None = None
    gather: Literal["rows", "elements"] | None = None
    scatter: Literal["+", "="] | None = None
    per_axis: tuple[str, ...] = ()
    broadcasts: bool = False
    checks: bool = False


NO_TRAITS = Traits()
