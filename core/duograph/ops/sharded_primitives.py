"""`Primitive.shard`: how the operands and results of one call are divided among ranks.

A strategy of plain numbers has the number of parts of each axis of each operand. Axes that an op
treats as one, such as the columns of the first and the rows of the second matrix of a matmul, are
divided by one axis of the device mesh. The mesh axes are in the order in which the operands' axes
first appear.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentValueError
from ..sharding.constraints import divided
from ..sharding.layouts import Axis, Layout, Placement, placements_of
from ..sharding.mode import mesh_ranks
from ..tensor import Tensor

if TYPE_CHECKING:
    from .primitive import Primitive

__all__ = ["shard_primitive"]


def shard_primitive(made: Primitive, in_strategy: object, out_strategy: object) -> Primitive:
    """Make the calls of a primitive shard their operands and results; return the primitive.

    A strategy is a tuple with an item per operand or result: a `Layout`, or a tuple of the number
    of parts of each axis. A strategy of None sets nothing for the operands, or the results.

    Raises:
        ArgumentValueError: the strategies mix Layouts and tuples.
    """
    if in_strategy is None and out_strategy is None:
        return made
    kinds = {
        isinstance(s, Layout)
        for strategy in (in_strategy, out_strategy) if isinstance(strategy, tuple)
        for s in strategy
    }  # fmt: skip
    if len(kinds) > 1:
        raise ArgumentValueError(
            f"{made.name}.shard: got Layouts and tuples of ints together; wanted one kind"
        )
    before = made._placements
    given: tuple[Placement, ...] | None = None
    results: tuple[Placement, ...] | None = None
    owner, ranks = f"{made.name}.shard", mesh_ranks()
    if in_strategy is not None:
        given = _of_operands(made, owner, in_strategy, ranks)
    if out_strategy is not None:
        results = placements_of(owner, out_strategy, ranks)
    made._placements = (given, results)
    if before is None:
        made.__class__ = _sharded(type(made))  # type: ignore[arg-type]
    return made


def _letters(made: Primitive, ndims: Sequence[int]) -> list[str]:
    """Return, for each operand of the primitive `made`, a string of one letter per axis.

    Axes with the same letter must be divided among ranks in the same way; for a matmul the result
    is such as ["ij", "jk"]. `ndims` has the number of axes of each operand.
    """
    name = made.name
    if name in ("MatMul", "BatchMatMul") and len(ndims) == 2:
        batch = "".join(chr(ord("A") + i) for i in range(max(ndims) - 2))
        x = "ji" if getattr(made, "transpose_a", False) else "ij"
        y = "kj" if getattr(made, "transpose_b", False) else "jk"
        return [batch[len(batch) + 2 - n :] + m for n, m in zip(ndims, (x, y), strict=True)]
    if name.startswith(("Gather", "Embedding", "SparseGather", "OneHot")):
        count = iter(range(sum(ndims)))
        return ["".join(chr(ord("a") + next(count)) for _ in range(n)) for n in ndims]
    most = max(ndims, default=0)
    return ["".join(chr(ord("a") + most - n + i) for i in range(n)) for n in ndims]


def _of_operands(
    made: Primitive, owner: str, strategies: object, ranks: tuple[int, ...]
) -> tuple[Placement, ...]:
    found = placements_of(owner, strategies, ranks)
    assert isinstance(strategies, tuple)
    if not strategies or isinstance(strategies[0], Layout):
        return found
    letters = _letters(made, [len(s) for s in strategies])
    parts: dict[str, int] = {}
    for strategy, text in zip(strategies, letters, strict=True):
        for n, letter in zip(strategy, text, strict=True):
            if parts.setdefault(letter, n) != n and 1 not in (n, parts[letter]):
                raise ArgumentValueError(
                    f"{owner}: got the strategies {strategies}, which divide one axis of the op "
                    f"into {parts[letter]} and into {n} parts; wanted the same"
                )
            parts[letter] = max(n, parts[letter])
    axes: dict[str, Axis] = {}
    left = len(ranks)
    for letter, n in parts.items():
        if left % n:
            raise ArgumentValueError(
                f"{owner}: got the strategies {strategies}; wanted numbers of parts whose product "
                f"divides the {len(ranks)} ranks"
            )
        left //= n
        axes[letter] = Axis(left, n)
    return tuple(
        Placement(tuple((axes[c],) if n > 1 else () for n, c in zip(s, text)), ranks)
        for s, text in zip(strategies, letters)
    )


@functools.cache
def _sharded(kind: type[Primitive]) -> type[Primitive]:
    """Return a subclass of a primitive class whose calls shard operands and results.

    The instance's `_placements` determine how.
    """

    def call(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        assert self._placements is not None
        given, results = self._placements
        owner = f"{self.name}.shard"
        if given is not None:
            args = divided(owner, args, given)
        found = kind.__call__(self, *args, **kwargs)
        if results is None:
            return found
        if isinstance(found, Tensor):
            return divided(owner, (found,), results)[0]
        return divided(owner, found, results)

    made = type(kind.__name__, (kind,), {"__call__": call, "__doc__": kind.__doc__})
    made.__module__ = kind.__module__
    return made
