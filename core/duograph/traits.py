"""The facts about an op that graph passes and code generators rely on, declared with the op.

An op declares them as options, such as `@op(reduction="+")`, so that no pass lists ops by name.
This module knows no op and no pass.
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
        reduction: how a reduction over the attribute `axis` combines elements.
        gather: how the op reads its first operand through its second, an index along `axis`:
            one index selects a whole row, or a single element.
        scatter: how rows of the third operand meet the rows of the first that the second operand
            names: they are added, or replace them.
        per_axis: attributes of a movement op that have one item per axis of operand and result.
        broadcasts: the result repeats elements of the operand and computes nothing.
        checks: the kernel raises IndexRangeError for an index or label that is out of range.
    """

    folds: str = ""
    reduction: Literal["+", "*", "max", "min", "and", "or"] | None = None
    gather: Literal["rows", "elements"] | None = None
    scatter: Literal["+", "="] | None = None
    per_axis: tuple[str, ...] = ()
    broadcasts: bool = False
    checks: bool = False


NO_TRAITS = Traits()
