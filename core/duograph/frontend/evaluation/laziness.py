"""Generator expressions, `map` and `filter`, whose items are all computed in advance.

Python computes each item when it is requested. The evaluation computes all items in advance. This
makes no difference unless computing an item has an effect or raises an error, and such programs are
refused. `expressions` and `builtin_functions` call `lazily`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...errors import DuographError
from ...ir.values import NeedsValue
from ..diagnostics import unsupported
from ..state.evaluation import Evaluation
from ..state.journal import Changes, Scope
from ..state.outside import Restart
from ..types import Value

__all__ = ["lazily"]


def lazily(
    ev: Evaluation, compute: Callable[[], Iterable[Value]], construct: str
) -> Iterator[Value]:
    """Compute all items in advance and return an iterator over them.

    Args:
        ev: the evaluation.
        compute: function that computes all items.
        construct: the name of the syntax or function for messages.

    Raises:
        UnsupportedSyntaxError: computing an item has an effect, or raises an error.
    """
    known = set(ev.owned.objects)
    scopes = {id(frame.vars) for frame in ev.calls.frames}
    nodes, had_writes = len(ev.builder.nodes), ev.outside.has_writes
    ev.journal.branches.append({})
    try:
        items = compute()
    except (Restart, NeedsValue, DuographError):
        raise
    except Exception as error:
        raise _refused(construct, f"{type(error).__name__} of an item") from error
    finally:
        changes = ev.journal.branches[-1]
        ev.journal.keep()
    acts = any(n.effects for n in ev.builder.nodes[nodes:])
    ev.outside.has_writes = had_writes or acts
    if acts or _reaches_outside(ev, changes, known, scopes):
        raise _refused(construct, "an effect of an item")
    made: Iterator[Value] = ev.owned.add(iter(items))
    return made


def _reaches_outside(ev: Evaluation, changes: Changes, known: set[int], scopes: set[int]) -> bool:
    """Return whether computing the items changed a variable or object that existed before.

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
