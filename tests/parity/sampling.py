"""Makes unusual calls from the valid calls that `harvest.py` recorded; `calls.py` uses it.

A sampled call differs from a recorded one in one respect: another dtype, a 0-d or empty tensor, a
negative axis, a keyword argument, a Python number or a wrong type for a tensor. The calls depend
only on the recorded calls, so a name has the same ones in every run.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from parity.plain import array, as_array, is_tensor

Call = dict[str, Any]
Plain = Any
DTYPES = ("float16", "float64", "bfloat16", "int32", "int64", "uint8", "bool", "complex64")
NUMPY = {"bfloat16": "float32", "bool": "bool"}


def seeds_for(name: str, recorded: dict[str, list[Call]]) -> list[Call]:
    """Return the recorded calls of a name, or else those of a function with this name elsewhere."""
    if recorded.get(name):
        return recorded[name]
    parts = name.split(".")
    last = parts[-1]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    for other in (f"ops.{last}", f"ops.{snake}", f"mint.{last}", f"Tensor.{last}", f"ops.{last}_"):
        found = recorded.get(other, [])
        made = [_as_kind(call, name) for call in found]
        if found and all(made):
            return [m for m in made if m]
    return []


def _as_kind(call: Call, name: str) -> Call | None:
    """Convert a recorded call to a call of `name`; None if the two differ in form."""
    head, last = name.split(".")[0], name.split(".")[-1]
    kind = "method" if head == "Tensor" else "class" if last[0].isupper() else "function"
    made = {**call, "path": name, "kind": kind}
    if kind == "class" and call["kind"] != "class":
        if call["kwargs"][1] or not all(map(is_tensor, call["args"][1])):
            return None
        made |= {"init": ["tuple", []], "init_kwargs": ["dict", []]}
    elif call["kind"] == "class" and kind != "class":
        return None
    if kind == "method" and not (call["args"][1] and is_tensor(call["args"][1][0])):
        return None
    return made


Leaf = tuple["str | int", ...]


def leaves(call: Call) -> Iterator[Leaf]:
    """Yield the path (indices) to every value of a call that is no container."""

    def below(plain: Plain, way: Leaf) -> Iterator[Leaf]:
        if isinstance(plain, list) and plain[0] in ("tuple", "list"):
            for k, part in enumerate(plain[1]):
                yield from below(part, (*way, 1, k))
        else:
            yield way

    for slot in ("init", "args"):
        for k, part in enumerate(call[slot][1] if slot in call else ()):
            yield from below(part, (slot, 1, k))
    for slot in ("init_kwargs", "kwargs"):
        for k, pair in enumerate(call[slot][1] if slot in call else ()):
            yield from below(pair[1], (slot, 1, k, 1))


def at(call: Call, way: Leaf) -> Plain:
    """Return the value at the path `way` in a call."""
    found: Any = call
    for step in way:
        found = found[step]
    return found


def changed(call: Call, changes: Iterable[tuple[Leaf, Plain]], what: str, sort: str) -> Call:
    """Return a copy of a call with some values replaced; `what` and `sort` describe the change."""
    made = copy.deepcopy(call)
    for way, value in changes:
        at(made, way[:-1])[way[-1]] = value
    made["what"], made["sort"] = what, sort
    return made


def cast(plain: Plain, name: str) -> Plain:
    """Return a serialised tensor with another dtype."""
    with np.errstate(all="ignore"):
        numbers = as_array(plain)
        if numbers.dtype.kind == "c" and name != "complex64":
            numbers = numbers.real
        return array(numbers.astype(NUMPY.get(name, name)), plain[0], name)


def reshaped(plain: Plain, form: str) -> Plain:
    """Return a serialised tensor made 0-d, empty, of size 1, or one axis longer."""
    numbers = as_array(plain)
    if form == "0-d":
        numbers = numbers.reshape(-1)[:1].reshape(()) if numbers.size else np.zeros(())
    elif form == "empty":
        numbers = numbers[:0] if numbers.ndim else numbers.reshape(1)[:0]
    elif form == "size 1":
        numbers = numbers[(slice(0, 1),) * numbers.ndim]
    else:
        numbers = numbers[None]
    kept = as_array(plain).dtype
    return array(np.asarray(numbers, kept), plain[0], plain[1])


def special(plain: Plain) -> Plain:
    """Return a serialised float tensor that contains NaN, infinities and a negative zero."""
    numbers = as_array(plain)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0], numbers.dtype)
    flat = numbers.reshape(-1)
    flat[: min(4, len(flat))] = odd[: min(4, len(flat))]
    return array(numbers, plain[0], plain[1])


def _is_float(plain: Plain) -> bool:
    return "float" in str(plain[1])


def _tensor_changes(call: Call, ways: list[Leaf]) -> Iterator[Call]:
    tensors = [w for w in ways if is_tensor(at(call, w))]
    first = {at(call, w)[1] for w in tensors}
    for dtype in DTYPES:
        for old in sorted(first):
            if old != dtype and ("float" in old) == (len(first) > 1 or "float" in old):
                group = [w for w in tensors if at(call, w)[1] == old]
                changes = [(w, cast(at(call, w), dtype)) for w in group]
                yield changed(call, changes, f"{old} as {dtype}", "dtype")
    for form in ("0-d", "empty", "size 1", "longer"):
        changes = [(w, reshaped(at(call, w), form)) for w in tensors]
        if tensors:
            yield changed(call, changes, f"{form} tensors", "shape")
    for k, way in enumerate(tensors):
        plain = at(call, way)
        if _is_float(plain):
            yield changed(call, [(way, special(plain))], f"tensor {k} with NaN", "value")
        if len(tensors) > 1:
            for dtype in ("float16", "int32"):
                if plain[1] != dtype:
                    what = f"tensor {k} as {dtype}"
                    yield changed(call, [(way, cast(plain, dtype))], what, "mixed dtypes")
            for form in ("0-d", "empty", "size 1"):
                what = f"{form} tensor {k}"
                yield changed(call, [(way, reshaped(plain, form))], what, "shape")
        if call["kind"] == "method" and way == ("args", 1, 0):
            continue
        numbers = as_array(plain)
        number = numbers.reshape(-1)[0].item() if numbers.size else 0
        number = number if not isinstance(number, complex) else 1
        others = (number, _listed(numbers.tolist()), array(numbers), None, "x")
        for other, name in zip(others, ("number", "list", "array", "None", "str"), strict=True):
            if other == other:  # not NaN
                yield changed(call, [(way, other)], f"{name} for tensor {k}", "type")


def _listed(value: Any) -> Plain:
    if isinstance(value, list):
        return ["list", [_listed(v) for v in value]]
    return 0.5 if isinstance(value, complex) or value != value else value


def _number_changes(call: Call, ways: list[Leaf]) -> Iterator[Call]:
    for way in ways:
        plain, name = at(call, way), ".".join(map(str, way))
        others: list[Plain] = []
        if isinstance(plain, bool):
            others = [not plain, int(plain), None]
        elif isinstance(plain, int):
            others = [-1, 0, plain + 1, -plain - 1, 100, float(plain), True, "x", None]
            others.append(["list", [plain]])
        elif isinstance(plain, float):
            others = [-plain, 0.0, int(plain), 2, "x", None, ["float", "nan"]]
        elif isinstance(plain, str):
            others = ["wrong", plain.upper(), None, 1]
        elif isinstance(plain, list) and plain[0] == "dtype":
            others = [["dtype", d] for d in ("float16", "int32", "bool")] + [1, "x"]
        for other in others:
            if other != plain or type(other) is not type(plain):
                yield changed(call, [(way, other)], f"{other!r} at {name}", "argument")
    for slot in ("init", "args"):
        for k, part in enumerate(call[slot][1] if slot in call else ()):
            if isinstance(part, list) and part[0] in ("tuple", "list"):
                tag = "list" if part[0] == "tuple" else "tuple"
                what = f"{tag} at {slot}.{k}"
                yield changed(call, [((slot, 1, k), [tag, part[1]])], what, "argument")
                yield changed(
                    call, [((slot, 1, k), [part[0], []])], f"empty {slot}.{k}", "argument"
                )


def parameters_of(signature: str) -> list[str]:
    """Return the names of the positional parameters of a signature such as "(x, axis=0)"."""
    try:
        node = ast.parse(f"def f{signature}: pass").body[0]
    except SyntaxError:
        return []
    assert isinstance(node, ast.FunctionDef)
    return [] if node.args.vararg else [a.arg for a in node.args.args]


def _spelling_changes(call: Call, signature: str) -> Iterator[Call]:
    slot, named = ("init", "init_kwargs") if call["kind"] == "class" else ("args", "kwargs")
    names, args = parameters_of(signature), call[slot][1]
    if call["kind"] != "method" and names and len(args) <= len(names):
        for k in range(len(args)):
            made = changed(call, [], f"keywords from {k}", "keywords")
            made[slot][1], moved = args[:k], args[k:]
            made[named][1] = [[n, v] for n, v in zip(names[k:], moved, strict=False)]
            made[named][1] += call[named][1]
            yield made
    if args[1:] or (args and call["kind"] == "function"):
        made = changed(call, [], "last argument dropped", "keywords")
        made[slot][1] = args[:-1]
        yield made
    made = changed(call, [], "unknown keyword", "keywords")
    made[named][1] = [*call[named][1], ["no_such_keyword", 1]]
    yield made


def sampled(name: str, signature: str, seeds: list[Call], most: int) -> list[Call]:
    """Return up to `most` calls of a name: the recorded ones and changes of them."""
    choice = random.Random(name)
    valid = [changed(seed, [], "recorded", "recorded") for seed in seeds]
    makers: list[Callable[[Call, list[Leaf]], Iterator[Call]]] = [
        _tensor_changes,
        _number_changes,
        lambda call, _ways: _spelling_changes(call, signature),
    ]
    others = [c for seed in seeds for make in makers for c in make(seed, list(leaves(seed)))]
    choice.shuffle(others)
    calls = (valid + others)[:most]
    for k, call in enumerate(calls):
        call["id"] = f"{name}#{k}"
        call["gradient"] = call["sort"] in ("recorded", "dtype", "shape", "value")
        has_parameter = any(
            (at(call, w) or [""])[:1] == ["parameter"]
            for w in leaves(call)
            if isinstance(at(call, w), list)
        )
        call["graph"] = not has_parameter and (call["sort"] == "recorded" or k % 3 == 0)
    return calls
