"""The JSON description of an exported graph's parameters and results.

It tells which graph parameter is which argument or weight, and how results are nested. `exported`
writes the description, and reads it with this module. Reading checks every entry against the graph
and the weights of the file, because the file may be malicious.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ..dtype import as_dtype
from ..ir.graph import Graph
from ..types import TensorType

__all__ = ["decoded", "read_form"]

if TYPE_CHECKING:

    class Form(TypedDict):
        """The description of an exported graph's parameters and results, as JSON holds it."""

        version: int
        name: str
        order: Sequence[tuple[str, int]]  # of the graph's arguments: "arg" or "weight", and which
        weights: Sequence[tuple[str, bool]]  # names, and whether each is trained
        writes: Sequence[tuple[int, int]]  # weights, and the results that they get
        results: Mapping[str, object]


VERSION = 1
# Containers inside containers of a result; deeper ones would end in a RecursionError.
_DEPTH = 100


def read_form(text: str, graph: Graph, entries: Mapping[str, object]) -> Form:
    """Parse the JSON description of an exported graph's parameters and results, and return it.

    The description is checked against `graph` and the weights in `entries`.

    Raises:
        ValueError: the text is no JSON, has another version, or does not fit graph and weights.
    """
    try:
        form = json.loads(text)
    except RecursionError:
        raise ValueError("its form is nested too deeply") from None
    if not isinstance(form, dict) or form.get("version") != VERSION:
        version = form.get("version") if isinstance(form, dict) else None
        raise ValueError(f"it has version {version!r} of the format; this duograph reads {VERSION}")
    weights = _pairs(form, "weights")
    if any(not isinstance(n, str) or not isinstance(t, bool) for n, t in weights):
        raise ValueError("its weights are no names with flags")
    names = [n for n, _ in weights]
    if len(set(names)) != len(names) or any(not _is_array(entries.get(n)) for n in names):
        raise ValueError("its weights are not those of the file")
    order = _pairs(form, "order")
    if len(order) != graph.n_params:
        raise ValueError(f"it has {len(order)} arguments, and its graph takes {graph.n_params}")
    types = [_type(cast("NDArray[np.generic]", entries[n])) for n in names]
    n_inputs = sum(kind == "arg" for kind, _ in order)
    for i, (kind, k) in enumerate(order):
        known = {"arg": n_inputs, "weight": len(names)}.get(str(kind), 0)
        wanted = types[k] if kind == "weight" and _below(k, known) else graph.types[i]
        if not _below(k, known) or graph.types[i] != wanted or not isinstance(wanted, TensorType):
            raise ValueError(
                f"its argument {i} is {kind!r} {k!r}; the graph takes {graph.types[i]}"
            )
    if sorted(k for kind, k in order if kind == "arg") != list(range(n_inputs)):
        raise ValueError("its arguments are no permutation of the inputs")
    for k, i in _pairs(form, "writes"):
        if not _below(k, len(names)) or not _below(i, len(graph.outputs)):
            raise ValueError(f"it writes result {i!r} to weight {k!r}")
        if graph.types[graph.outputs[i]] != types[k]:
            raise ValueError(f"it writes {graph.types[graph.outputs[i]]} to {names[k]}")
    _check_results(form.get("results"), len(graph.outputs), n_inputs, _DEPTH)
    return cast("Form", {**form, "name": str(form.get("name"))})


def _pairs(form: Mapping[str, object], key: str) -> list[list[Any]]:
    found = form.get(key)
    if not isinstance(found, list) or any(type(p) is not list or len(p) != 2 for p in found):
        raise ValueError(f"its {key} are no list of pairs")
    return found


def _below(value: object, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _type(array: NDArray[np.generic]) -> TensorType:
    return TensorType.of(array.shape, as_dtype(array.dtype))


def _check_results(encoded: object, n_results: int, n_inputs: int, depth: int) -> None:
    """Raise ValueError unless a result structure refers only to existing results and inputs.

    `encoded` is the JSON of the structure, which may have at most `depth` levels of nesting.
    `n_results` and `n_inputs` count the existing results and inputs.
    """
    if not isinstance(encoded, dict) or len(encoded) != 1 or not depth:
        raise ValueError("the structure of its results is damaged, or too deep")
    ((kind, inner),) = encoded.items()
    if kind in ("result", "input"):
        good = _below(inner, n_results if kind == "result" else n_inputs)
    elif kind in ("tuple", "list", "dict"):
        good = isinstance(inner, dict if kind == "dict" else list)
        for part in (inner.values() if kind == "dict" else inner) if good else ():
            _check_results(part, n_results, n_inputs, depth - 1)
    else:
        good = kind == "value" and (inner is None or isinstance(inner, (bool, int, float, str)))
    if not good:
        raise ValueError(f"its results have {kind} {inner!r:.80}")


def decoded(encoded: Mapping[str, Any], results: Sequence[object], inputs: Sequence[object]) -> Any:
    """Return a network's nested results, rebuilt from the description of their structure.

    `encoded` is that description, parsed from JSON. `results` are the results of the graph.
    `inputs` are the arguments of the network, because a network may return an argument.
    """
    ((kind, inner),) = encoded.items()
    if kind == "result":
        return results[inner]
    if kind == "input":
        return inputs[inner]
    if kind == "tuple":
        return tuple(decoded(v, results, inputs) for v in inner)
    if kind == "list":
        return [decoded(v, results, inputs) for v in inner]
    if kind == "dict":
        return {k: decoded(v, results, inputs) for k, v in inner.items()}
    return inner
