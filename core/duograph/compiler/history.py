"""Keeps the reasons why a function was compiled, and advises when it is compiled too often.

`compiler.jit_call` adds a line for each compilation after the first, and asks for advice when a
function has more than a few programs. Only the newest lines are kept. Nothing here compiles.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence

import numpy as np

from ..types import TensorType
from .key import JitKey, argument_label

__all__ = ["FEW", "History", "advice", "advice_on_captures"]

# Number of programs of one function, for one receiver, without a warning; the next one warns.
FEW = 8
_LINES = 32  # kept for each function
_PLAIN = {int, float, bool, complex, str, bytes, type(None)}  # kinds of values that are shown
_LENGTH = 400  # characters of a line: a key may contain the contents of an array


class History:
    """The newest reasons why one function was compiled; iterating yields them, oldest first.

    Attributes:
        advised: cause of recompilations that the user was warned about, such as ``argument n`` ->
            the advice given. The user is warned about each cause once.
    """

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=_LINES)
        self.advised: dict[str, str] = {}

    def add(self, line: str) -> None:
        """Add a reason, cut to a fixed length; drop the oldest one beyond a fixed number."""
        self._lines.append(line if len(line) <= _LENGTH else line[: _LENGTH - 3] + "...")

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._lines))


def advice(
    name: str, keys: Sequence[JitKey], parameters: Sequence[str], advised: dict[str, str]
) -> str:
    """Return a warning that names what varies most among the keys of a function's programs.

    The result is "" if the user was already warned about everything that varies much.

    Args:
        name: the name of the function.
        keys: the keys of its programs; the last one is that of the program to be compiled now.
        parameters: names of the positional arguments; there may be fewer than arguments.
        advised: cause that the user was warned about -> the advice given; a new cause is added to
            it.
    """
    found = _new_cause(keys, parameters, advised)
    if found is None:
        return ""
    what, values = found
    advised[what] = _remedy(values)
    if not what.startswith("argument"):
        head = f"{name} is compiled for the {len(keys)}th time: {what} varies"
        return f"{head}; each is compiled on its own: keep it the same"
    shown = [_shown(v) for v in dict.fromkeys(values)]
    listed = ", ".join([*shown[:3], "..."] if len(shown) > 4 else shown)
    head = f"{name} is compiled for the {len(keys)}th time: {what} varies ({listed})"
    return f"{head}; {advised[what]}"


def _new_cause(
    keys: Sequence[JitKey], parameters: Sequence[str], advised: dict[str, str]
) -> tuple[str, list[Hashable]] | None:
    """Return the part of the cache keys that varies most and that needs a warning, or None.

    Before the first warning, it is the part with the most different values. Later, parts that the
    user was warned about are excluded, and so are parts with at most `FEW` (8) different values. A
    part that varies only together with an excluded one, such as the shapes of two arguments, has
    the same cause; it is also excluded, unless the advice for it is different.

    Returns:
        (name of the part, its value in every key).
    """
    columns = _columns(keys, parameters, ())
    if not advised:
        return max(columns, key=_variety)
    known = list(zip(*[values for what, values in columns if what in advised]))
    known = known if len(known) == len(keys) else [()] * len(keys)
    for what, values in sorted(_columns(keys, parameters, advised), key=_variety, reverse=True):
        if what in advised or len(set(values)) <= FEW:
            continue
        beside: dict[Hashable, set[Hashable]] = {}
        for others, value in zip(known, values):
            beside.setdefault(others, set()).add(value)
        if max(map(len, beside.values())) > FEW or _remedy(values) not in advised.values():
            return what, values
    return None


def _variety(column: tuple[str, list[Hashable]]) -> int:
    return len(set(column[1]))


def advice_on_captures(name: str, count: int, captures: str) -> str:
    """Return the warning for a function that is compiled again because captured values change.

    `captures` names them; `count` is how many programs the function has for the same arguments.
    """
    return (
        f"{name} is compiled for the {count}th time with the same arguments: {captures} varies; "
        "make it an argument that is a Tensor or mutable(), whose values do not compile again"
    )


def _columns(
    keys: Sequence[JitKey], parameters: Sequence[str], advised: Collection[str]
) -> list[tuple[str, list[Hashable]]]:
    """Return the parts of cache keys as columns: pairs (name of a part, its value in each key).

    A container argument is represented by its item with the most different values; items whose name
    is in `advised` are not considered. `parameters` are the names of the positional arguments, as
    far as they are known; the others are named by position.
    """
    columns: list[tuple[str, list[Hashable]]] = []
    if len({len(k.arguments) for k in keys}) > 1:
        columns.append(("the number of arguments", [len(k.arguments) for k in keys]))
    for i, column in enumerate(itertools.zip_longest(*[k.arguments for k in keys])):
        columns.append(_inside(argument_label(parameters, i), list(column), advised))
    for word in sorted({word for k in keys for word, _ in k.keywords}):
        given = [dict(k.keywords).get(word) for k in keys]
        columns.append(_inside(f"argument {word}", given, advised))
    columns.append(("the device", [k.device for k in keys]))
    columns.append(("which arguments are one object", [k.sharing for k in keys]))
    columns.append(("the gradient rules", [k.rules_version for k in keys]))
    for field in keys[0].context._fields:
        columns.append((f"the setting {field}", [getattr(k.context, field) for k in keys]))
    return columns


def _inside(
    label: str, values: list[Hashable], advised: Collection[str]
) -> tuple[str, list[Hashable]]:
    """Return the column of the item that varies most in a column of containers.

    For example, ("argument x", [(list, A, B), (list, A, C)]) becomes ("argument x[1]", [B, C]). A
    column whose values are not all containers of the same class and length is returned unchanged.
    Items whose name is in `advised` are not considered.
    """
    found = [v for v in values if isinstance(v, tuple) and _is_container(v)]
    if len(found) < len(values) or len({(v[0], len(v)) for v in found}) > 1:
        return label, values
    best: tuple[str, list[Hashable]] = (label, values[:1])
    kind = found[0][0]
    for i in range(1, len(found[0])):
        items: list[Hashable] = [v[i] for v in found]
        inner = f"{label}[{i - 1}]"
        if issubclass(kind, dict):
            names = {v[i][0] for v in found}
            if len(names) > 1:
                return label, values
            inner, items = f"{label}[{names.pop()!r}]", [v[i][1] for v in found]
        deepest = _inside(inner, items, advised)
        if deepest[0] not in advised and len(set(deepest[1])) > len(set(best[1])):
            best = deepest
    return best


def _is_container(value: Hashable) -> bool:
    """Return whether a part of a cache key describes a tuple, list or dict argument."""
    return (
        isinstance(value, tuple)
        and bool(value)
        and isinstance(value[0], type)
        and issubclass(value[0], (tuple, list, dict))
    )


def _shown(value: Hashable) -> str:
    """Return a part of a cache key as text for a message, such as `float32[2, 3]` for a tensor."""
    if isinstance(value, TensorType):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, tuple) and value and isinstance(value[0], type):
        kind, *rest = value
        if issubclass(kind, float):
            return str(rest[0])
        if _is_container(value):
            return f"{kind.__name__} of {len(rest)}"
        if kind not in _PLAIN:
            return f"{kind.__name__}"
        value = rest[0]
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _remedy(values: Sequence[Hashable]) -> str:
    """Return advice for an argument that makes a function be compiled again and again.

    Args:
        values: the argument's part in each of the cache keys. The advice depends on what most of
            them are: tensor types, numbers, containers, arrays or other objects.
    """
    values = list(dict.fromkeys(values))
    tensors = [v for v in values if isinstance(v, TensorType)]
    if 2 * len(tensors) > len(values):
        if len({v.shape for v in tensors}) > 1:
            return "each shape is compiled on its own: pad to a few shapes"
        return "cast it to one dtype"
    kinds = {v[0] for v in values if isinstance(v, tuple) and v}
    if kinds and kinds <= {int, float, bool}:
        return "pass a Tensor or mutable(), whose values do not compile again"
    if kinds <= _PLAIN:
        return "each value is compiled on its own: pass fewer values"
    if all(map(_is_container, values)):
        return "each length is compiled on its own: pad to a few lengths, or stack into a Tensor"
    if np.ndarray in kinds:
        return "arrays are constants: pass a Tensor, whose values do not compile again"
    return "each object is compiled on its own: pass the same one, or what varies as a Tensor"
