"""Tensors of which a condition or a loop picks one: a write in place would have to reach the one
that was picked.

`x = y if c else z; x[0] = 1` changes y or z in Python. In a graph x is a third value, so such a
write is refused, as long as anybody can still see y or z.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..tensor import Tensor
from .values import Maybe

if TYPE_CHECKING:
    from .trace import Trace

__all__ = ["older", "note_one_of", "check_alone", "pairs"]


def older(t: Trace, value: Any, builder: Any) -> list[Any]:
    """The tensor itself, when it was there before the sub-graph of `builder`."""
    found = t.origins.get(id(value))
    if found is not None:
        return [found[1]]
    if isinstance(value, GraphTensor):
        return [] if value._builder is builder else [value]
    if not isinstance(value, Tensor):
        return []
    made_here = id(value) in t.fresh and t.born.get(id(value), 0) >= builder.depth
    return [] if made_here else [value]


def note_one_of(t: Trace, made: Any, of: Sequence[Any]) -> None:
    """`made` is one of these tensors, or another one."""
    if of and isinstance(made, GraphTensor):
        t.one_of[id(made)] = (made, [*t.one_of.get(id(made), (made, []))[1], *of])


def check_alone(t: Trace, target: Any) -> None:
    """A tensor is about to be written in place.

    Raises:
        UnsupportedSyntaxError: it may be the same as another one that can still be seen.
    """
    if not t.one_of:
        return
    links: dict[int, list[Any]] = {}
    for made, of in t.one_of.values():
        for x in of:
            links.setdefault(id(made), []).append(x)
            links.setdefault(id(x), []).append(made)
    found = {id(target): target}
    waiting = [target]
    while waiting:
        for x in links.get(id(waiting.pop()), ()):
            if id(x) not in found:
                found[id(x)] = x
                waiting.append(x)
    del found[id(target)]
    if found and any(id(x) in found for x in _seen(t, found)):
        raise UnsupportedSyntaxError(
            "setitem: got a write in place to one of several Tensors between which a condition on a Tensor, or a loop, "
            "chose inside jit; it would have to change the chosen one, too",
            construct="setitem",
            remedy="Copy the Tensor before it is written, e.g. x = x.copy()",
        )


def _seen(t: Trace, found: dict[int, Any]) -> Iterator[Any]:
    """The tensors that somebody can see."""
    yield from (made for made, _, _ in t.arguments)
    yield from (x for k, x in found.items() if k in t.objects or k in t.place_of)
    for x in found.values():
        if not isinstance(x, GraphTensor) and id(x) not in t.fresh:
            yield x  # from outside
    done: set[int] = set()
    for frame in t.frames:
        yield from _of_frame(frame, done)
    yield from _inside(t.overlay.values(), done)
    yield from _inside((made for _, made in t.shadows.values()), done)


def _of_frame(frame: Any, done: set[int]) -> Iterator[Any]:
    while frame is not None and id(frame) not in done:
        done.add(id(frame))
        yield from _inside(frame.vars.values(), done)
        frame = frame.parent


def _inside(values: Iterable[Any], done: set[int]) -> Iterator[Any]:
    for v in values:
        if isinstance(v, Tensor):
            yield v
            continue
        if id(v) in done:
            continue
        if isinstance(v, (list, tuple, set)):
            done.add(id(v))
            yield from _inside(v, done)
        elif isinstance(v, dict):
            done.add(id(v))
            yield from _inside(v.values(), done)
        elif hasattr(v, "kw_defaults"):  # a function
            done.add(id(v))
            yield from _inside(v.defaults, done)
            yield from _of_frame(v.parent, done)
        elif isinstance(v, Maybe):
            yield from _inside((v.value,), done)
        elif hasattr(v, "__dict__") and not isinstance(v, type) and not callable(v):
            done.add(id(v))
            yield from _inside(list(vars(v).values()), done)


def pairs(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """The leaves of two nests, as far as they are alike."""
    if isinstance(a, dict) and isinstance(b, dict):
        for k in a.keys() & b.keys():
            yield from pairs(a[k], b[k])
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        for x, y in zip(a, b):
            yield from pairs(x, y)
    elif isinstance(a, Maybe) or isinstance(b, Maybe):
        yield from pairs(
            a.value if isinstance(a, Maybe) else a, b.value if isinstance(b, Maybe) else b
        )
    else:
        yield a, b
