"""Generator expressions, `map` and `filter`, and the positions of iterators.

An iterator that evaluated code made computes each item while compiling, at the time when Python
would: when it is asked for. A graph condition may decide whether an item is asked for. Then the
item is computed in advance, which makes no difference unless computing it has an effect or raises
an error; such programs are refused. The position of the iterator is unknown afterwards, and further
use of it is refused. `iteration` and the functions that consume iterators call this module.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import DuographError
from ...ir.values import NeedsValue
from ..diagnostics import unsupported
from ..state.evaluation import Evaluation
from ..state.journal import Changes, Scope
from ..state.outside import Restart
from ..types import Value
from .outside import check_made_here

__all__ = ["ahead", "check_position", "lazily", "remaining"]

# Iterators that compute nothing to produce an item.
_PLAIN: set[type] = {
    type(iter([])), type(iter(())), type(iter("")), type(iter(range(0))), type(iter({})),
    type(iter({}.values())), type(iter({}.items())), type(iter(set())),
}  # fmt: skip


def lazily(ev: Evaluation, items: Iterator[Value], returned: type = list) -> Iterator[Value]:
    """Record an iterator whose items are computed when they are asked for; return it.

    Args:
        ev: the evaluation.
        items: the iterator.
        returned: the class, list or tuple, of what the compiled function returns instead of the
            iterator.
    """
    ev.owned.lazy[id(items)] = returned
    made: Iterator[Value] = ev.owned.add(items)
    return made


def check_position(ev: Evaluation, items: Value) -> None:
    """Raise if evaluated code may not take items of an iterator that it made.

    Raises:
        UnsupportedSyntaxError: a graph condition decides whether it takes the item, or decided how
            many items it took before.
    """
    if hasattr(type(items), "__next__"):
        check_made_here(ev, items, "iteration")
        if id(items) in ev.owned.uncertain:
            raise unsupported(
                "For",
                "A condition on a Tensor decides how many items of the iterator are left: iterate "
                "over a list",
            )
        if ev.owned.ahead:
            _note_uncertain(ev, items)


def taken(ev: Evaluation, items: Iterator[Value]) -> Iterator[Value]:
    """Yield the items of an iterator that evaluated code holds; note if one is taken in advance."""
    for item in items:
        if ev.owned.ahead:
            _note_uncertain(ev, items)
        yield item


def _note_uncertain(ev: Evaluation, items: Iterator[Value]) -> None:
    """Record that the number of items left of an iterator is not known while compiling."""
    ev.owned.uncertain.add(id(items))
    ev.keep.append(items)


def ahead(ev: Evaluation, items: Iterator[Value], construct: str) -> Iterator[Value]:
    """Yield the remaining items of an iterator of which a graph condition may take fewer.

    Args:
        ev: the evaluation.
        items: the iterator. Further use of it is refused.
        construct: the name of the syntax or function for messages.

    Raises:
        UnsupportedSyntaxError: computing an item has an effect, or raises an error.
    """
    _note_uncertain(ev, items)
    if type(items) in _PLAIN:
        yield from items
        return
    known = set(ev.owned.objects)
    while True:
        try:
            item = _without_effects(ev, items, known, construct)
        except StopIteration:
            return
        yield item


def remaining(ev: Evaluation, items: Iterator[Value], construct: str) -> list[Value]:
    """Return the remaining items of an iterator that Python would compute later, or not at all.

    The arguments and errors are those of `ahead`.
    """
    return list(ahead(ev, items, construct))


def _without_effects(
    ev: Evaluation, items: Iterator[Value], known: set[int], construct: str
) -> Value:
    """Return the next item of an iterator, after checking that computing it had no effect.

    An effect is a change of a variable or object that existed before, or a graph node with effects.

    Args:
        ev: the evaluation.
        items: the iterator.
        known: ids of the objects that evaluated code had made before.
        construct: the name of the syntax or function for messages.

    Raises:
        StopIteration: there are no more items.
        UnsupportedSyntaxError: computing the item has an effect, or raises an error that is no
            DuographError.
    """
    scopes = {id(frame.vars) for frame in ev.calls.frames}
    nodes, had_writes = len(ev.builder.nodes), ev.outside.has_writes
    ev.journal.branches.append({})
    ev.owned.ahead += 1
    try:
        item = next(items)
    except (Restart, NeedsValue, DuographError, StopIteration):
        raise
    except Exception as error:
        raise _refused(construct, f"{type(error).__name__} of an item") from error
    finally:
        ev.owned.ahead -= 1
        changes = ev.journal.branches[-1]
        ev.journal.keep()
    acts = any(n.effects for n in ev.builder.nodes[nodes:])
    ev.outside.has_writes = had_writes or acts
    if acts or _reaches_outside(ev, changes, known, scopes):
        raise _refused(construct, "an effect of an item")
    return item


def _reaches_outside(ev: Evaluation, changes: Changes, known: set[int], scopes: set[int]) -> bool:
    """Return whether computing an item changed a variable or object that existed before.

    Args:
        ev: the evaluation.
        changes: the locations that were written.
        known: ids of the objects that evaluated code had made before.
        scopes: ids of the dicts that hold the local variables of the calls that are being traced.
    """
    for location, _ in changes.values():
        owner = location.owner
        if isinstance(owner, Scope):
            if id(owner) in scopes:
                return True
        elif id(owner) in known or id(owner) not in ev.owned.objects:
            return True
    return False


def _refused(construct: str, what: str) -> Exception:
    return unsupported(
        construct,
        f"It would happen when Python asks for the item ({what}): use a list comprehension",
    )
