"""Makes an error's message begin with the function or layer that the user's source line called.

A public function, method or layer is implemented by ops, and the message of an op's error begins
with the op's name: "concat: got axis 2", although the user's line calls `ops.cat`. The name before
the colon is the *head* of the message. Whenever the error leaves a public function, `name_call`
replaces the head by the function's name, and names of arguments by those of its parameters; so the
outermost function, which the user's line called, has the last word. `name_cell` does the same when
the error leaves a Cell (a layer) of duograph. If the Cell is inside a container, the head also says
where: "Dense (SequentialCell[2]): got ...". An error whose traceback has a frame of the user's code
keeps its head.

In eager mode, the wrappers of public functions and `Cell.__call__` call this module if an error
passes them. In compiled mode, the front end calls it if an error passes them while the function is
traced. The front end also stores in each graph node the calls (`Link`s) inside which the node was
made, from which `name_chain` makes the head of an error that the node raises at run time.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .errors import DuographError
from .tracebacks import hide_own_frames, is_users

__all__ = [
    "CONTAINER",
    "LAYER",
    "WRAPPER",
    "FUNCTION",
    "Link",
    "call_name_of",
    "called",
    "key_of",
    "leave",
    "name_call",
    "name_cell",
    "name_chain",
    "replace_head",
    "state_of",
]

# What a Cell is for the user: a layer, a container of the user's Cells, or one that runs the
# user's network, such as TrainOneStepCell.
LAYER, CONTAINER, WRAPPER = "layer", "container", "wrapper"
FUNCTION = "function"

# The head of a message that names an op or a function; those of objects begin with a capital.
_FIRST = re.compile(r"^got (\w+) for '(?:input|inputs|x)';")  # names of an op inside a layer
_HEAD = re.compile(r"([a-z_]\w*(?:\.[a-z_]\w*)*): ")


class Link(NamedTuple):
    """One open call of the framework, in a chain that begins with the call of the user's line.

    Attributes:
        name: of the function, or of the Cell's class.
        role: FUNCTION, LAYER, CONTAINER or WRAPPER.
        key: where the Cell is in the Cell of the link before: "[2]" or ".head"; "" elsewhere.
    """

    name: str
    role: str
    key: str = ""


@dataclasses.dataclass
class State:
    """What is known about the head of an error's message.

    Attributes:
        is_named: whether the head is final, because the error has left code of the user.
        chain: the calls of Cells that the error has left, outermost first.
        innermost: id of the Cell that the error left last.
        head: the head that the call of an inner function gave the message, which that of an outer
            one replaces; "" if none did.
    """

    is_named: bool = False
    chain: tuple[Link, ...] = ()
    innermost: int = 0
    head: str = ""


# The error itself gets no attributes: code of the user may look at them.
_states: weakref.WeakKeyDictionary[DuographError, State] = weakref.WeakKeyDictionary()


def state_of(error: DuographError) -> State:
    """Return what is recorded about an error so far; the record lives as long as the error."""
    found = _states.get(error)
    if found is None:
        found = _states[error] = State()
    return found


def called(chain: Sequence[Link]) -> str:
    """Return the name for messages of an error that was raised inside a chain of calls.

    That is the outermost layer, with its place in the containers around it: "Dense
    (SequentialCell[2])". If the chain has no layer, it is the innermost container or wrapper, and
    without any Cell the outermost function.
    """
    root, place, last = "", "", ""
    for name, role, key in chain:
        if role == FUNCTION:
            last = last or name
            continue
        place += key if root else ""
        last = name
        if role == LAYER:
            break
        if role == CONTAINER and not root:
            root = name
    return f"{last} ({root}{place})" if place else last


def call_name_of(function: object) -> str:
    """Return the public name of a function, primitive or op, which error messages use.

    The result is "" if it has none, because only duograph itself calls it.
    """
    found = getattr(function, "call_name", "") or getattr(
        getattr(function, "op", None), "call_name", ""
    )
    return str(found)


def key_of(cells: Mapping[str, object], cell: int) -> str:
    """Return how a container reaches one of its Cells, such as "[2]" or ".head".

    `cells` are the container's Cells by name, and `cell` is the `id` of the Cell. The result is ""
    if the container does not hold it.
    """
    for name, value in cells.items():
        if id(value) == cell:
            return f"[{name}]" if name.isdigit() else f".{name}"
    return ""


def leave(
    error: DuographError,
    name: str,
    function: Callable[..., Any] | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Rename the head of an error's message as the error leaves a function; shorten its traceback.

    The head is the name of an op or of an inner function before the message's first colon. `name`
    replaces it, and the names of the function's parameters replace those of the op's arguments. The
    message stays as it is if it has no such head, if `name` is "", if the error's class has
    `names_call` False, if code of the user is in the traceback, or if the head is final
    (`State.is_named`). In all cases `hide_own_frames` removes frames of duograph from the
    traceback.

    Args:
        error: the error, being raised.
        name: of the function, as the user wrote it; "" for one that only the framework calls.
        function, args, kwargs: the function and the arguments of the call, by which the parameters
            with the values in the message are found; None if there is no such function.
    """
    if name and error.names_call and not is_users(error.__traceback__):
        given = {} if function is None else _given(function, args, kwargs or {})
        name_call(error, name, given)
    hide_own_frames(error)


def name_call(error: DuographError, name: str, given: Mapping[str, object] | None = None) -> None:
    """Replace the head of an error's message by the name of the function that the user called.

    The head is the name before the message's first colon: that of an op or of an inner function.

    Args:
        error: the error; unchanged if its class has `names_call` False, or its head is final.
        name: of the function.
        given: values of the function's parameters, by name. An argument in the message is named
            after the parameter that has its value. None if they are unknown.
    """
    if not error.names_call or state_of(error).is_named or not error.args:
        return
    text = str(error.args[0])
    given = given or {}
    found = _HEAD.match(text)
    head = found[1] if found is not None else state_of(error).head
    if head and text.startswith(f"{head}: ") and not _same(head, name):
        rest = text[len(head) + 2 :]
        if head in given:  # the head is an argument of the function
            plain = rest.startswith("got ") and _begins_with(rest[4:], given[head])
            text = f"{name}: got {head}={rest[4:]}" if plain else f"{name}: {text}"
        else:
            text = f"{name}: " + rest.replace(f" {head}(", f" {name}(")
        state_of(error).head = name
    if text.startswith(f"{name}: "):
        text = _arguments_named(text, given)
    error.args = (text, *error.args[1:])


def name_cell(error: DuographError, cell: Any) -> None:
    """Make the message of an error begin with the name of the library's Cell that raised it.

    Called each time that the error leaves the call of a Cell, from the innermost outwards. For a
    container the message also says which of its Cells failed: "Dense (SequentialCell[2])".
    """
    if (
        not error.names_call
        or state_of(error).is_named
        or not error.args
        or is_users(error.__traceback__)
    ):
        return
    before = state_of(error).chain
    if state_of(error).innermost == id(cell):
        return  # left its compiled form already
    state_of(error).innermost, inner = id(cell), state_of(error).innermost
    link = Link(type(cell).__name__, cell.call_role)
    if before and link.role != LAYER:
        state_of(error).chain = (
            link,
            before[0]._replace(key=key_of(cell._cells, inner)),
            *before[1:],
        )
    else:
        state_of(error).chain = (link,)
    _put_head(error, called(state_of(error).chain), called(before))


def name_chain(error: DuographError, chain: Sequence[Link]) -> None:
    """Replace the head of the message of a graph node's error by `called(chain)`; make it final.

    `chain` are the calls inside which the node was made.
    """
    if error.names_call and not state_of(error).is_named and error.args and chain:
        _put_head(error, called(chain))
    state_of(error).is_named = True


def _put_head(error: DuographError, name: str, inner: str = "") -> None:
    """Replace the head of an error's message by `name`, if it has one of the expected heads.

    These are the name of an op or function, `inner` (the name that an inner call was given), and
    the class in `inner` or in `name`.
    """
    text = str(error.args[0])
    found = _HEAD.match(text)
    kind = name.partition(" (")[0]
    for head in (found and found[1], inner, inner.partition(" (")[0], kind):
        if head and text.startswith(f"{head}: "):
            rest = _FIRST.sub(r"got \1 as input;", text[len(head) + 2 :], count=1)
            error.args = (f"{name}: {rest}", *error.args[1:])
            return


def replace_head(error: DuographError, head: str, name: str) -> None:
    """Replace `head` by `name` if the message of `error` begins with `head` and a colon.

    Used where a class calls the constructor of its base class, so that the message names the class
    that the user called.
    """
    text = str(error.args[0]) if error.args else ""
    if text.startswith(f"{head}: "):
        error.args = (f"{name}{text[len(head) :]}", *error.args[1:])


def _same(head: str, name: str) -> bool:
    """Return whether a message's head and a name are the same function.

    They are if `head` equals `name`, begins with `name` and a dot, or ends with a dot and `name`,
    or if `name` ends with a dot and `head`.
    """
    return (
        head == name
        or head.startswith(f"{name}.")
        or head.endswith(f".{name}")
        or name.endswith(f".{head}")
    )


def _given(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, object]:
    try:
        found = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
        return {**found, **kwargs}
    except (TypeError, ValueError):
        return dict(kwargs)


def _arguments_named(text: str, given: Mapping[str, object]) -> str:
    """Replace NAME in "got NAME=VALUE", or "axis" in "got axis VALUE", by the user's name for it.

    That is the parameter of the user's function which has the value; if several have, NAME stays.
    """
    text = _size_named(text, given)
    found = re.search(r": got (?:(?P<name>\w+)=|(?P<axis>axis) )", text)
    if found is None or (found["name"] or found["axis"]) in given:
        return text
    rest = text[found.end() :]
    same = [k for k, v in given.items() if _begins_with(rest, v)]
    if len(same) != 1:
        return text
    start = found.start("name") if found["name"] else found.start("axis")
    end = found.end("name") if found["name"] else found.end("axis")
    return text[:start] + same[0] + text[end:]


def _size_named(text: str, given: Mapping[str, object]) -> str:
    """Replace "got shape (-5,)" in an error message by "got steps=-5".

    `given` are the arguments of the user's call by name; those that are ints equal to the negative
    sizes are named. Returns `text` unchanged if there are none, or if `given` has a "shape".
    """
    found = re.search(r": got shape \(([-\d, ]+)\)", text)
    if found is None or "shape" in given:
        return text
    wrong = [n for n in found[1].replace(",", " ").split() if n.startswith("-")]
    same = [k for k, v in given.items() if type(v) is int and str(v) in wrong]
    if not same or {str(given[k]) for k in same} != set(wrong):
        return text
    named = ", ".join(f"{k}={given[k]}" for k in same)
    rest = text[found.end() :].replace("wanted no negative size", "wanted 0 or more")
    return f"{text[: found.start()]}: got {named}{rest}"


def _begins_with(text: str, value: object) -> bool:
    if not isinstance(value, (bool, int, float, str, tuple, list)):
        return False
    shown = repr(value)
    return text.startswith(shown) and not text[len(shown) : len(shown) + 1].isalnum()
