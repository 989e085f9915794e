"""Export of models with open sizes, such as the number of rows of a batch.

`export` is the only caller. The front end traces a network for fixed sizes. Here it is traced for
three assignments of sizes, and the three models are compared: they must have the same nodes, and a
constant that differs must be a number that follows from the open sizes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import onnx

from ..common.initializer import initializer
from ..errors import DuographError, OnnxError
from ..initial_values import Placeholder
from ..tensor import Tensor
from ..types import TensorType
from .writer import Writer

if TYPE_CHECKING:
    from ..host_arrays import Array
    from ..types import ValueType

__all__ = ["Sizes", "open_sizes", "unified"]

# Sizes of the first three open axes in each of the three traces: any two have another sum,
# product and quotient, so that no relation between them holds by chance.
_ASSIGNMENTS = ((24, 40, 56, 88), (32, 52, 68, 100), (44, 60, 92, 116))


@dataclasses.dataclass
class Sizes:
    """The inputs of a model with open (symbolic) sizes.

    Attributes:
        inputs: example inputs; a Tensor without data may have None in its shape, for an open size.
        symbols: for each symbol the axes that have this size, as (input, axis).
        named: the shape of each input, with the name of the symbol for an open size.
        fixed_results: for each result and axis, whether its size is fixed.
    """

    inputs: Sequence[Tensor]
    symbols: list[list[tuple[int, int]]] = dataclasses.field(default_factory=list)
    named: list[list[int | str]] = dataclasses.field(default_factory=list)
    fixed_results: list[list[bool]] = dataclasses.field(default_factory=list)

    def group(self, key: Callable[[int, int], object]) -> None:
        """Assign one symbol to all open axes (input, axis) for which `key` returns equal values."""
        found: dict[object, list[tuple[int, int]]] = {}
        self.named = []
        for i, x in enumerate(self.inputs):
            shape = _shape(x)
            self.named.append([0 if n is None else n for n in shape])
            for axis, n in enumerate(shape):
                if n is None:
                    found.setdefault(key(i, axis), []).append((i, axis))
        self.symbols = list(found.values())
        for k, places in enumerate(self.symbols):
            for i, axis in places:
                self.named[i][axis] = f"size_{k}"

    def examples(self, sizes: Sequence[int]) -> list[Tensor]:
        """Return example inputs whose open axes have the given sizes, one size per symbol."""
        shapes = [[0 if n is None else n for n in _shape(x)] for x in self.inputs]
        for places, n in zip(self.symbols, sizes):
            for i, axis in places:
                shapes[i][axis] = n
        return [
            initializer("ones", tuple(shape), x.dtype) if _is_open(x) else x
            for shape, x in zip(shapes, self.inputs)
        ]


def _is_open(x: Tensor) -> bool:
    return isinstance(getattr(x, "_init", None), Placeholder)


def _shape(x: Tensor) -> tuple[int | None, ...]:
    return x._init.shape if _is_open(x) else x.shape


def open_sizes(inputs: Sequence[Tensor]) -> Sizes | None:
    """Return a description of the inputs if the shape of one of them contains None, else None."""
    return Sizes(inputs) if any(map(_is_open, inputs)) else None


class Written(Protocol):
    """Protocol of a model that was written for fixed sizes."""

    writer: Writer
    inputs: list[tuple[str, TensorType, int]]
    outputs: list[tuple[str, ValueType]]


M = TypeVar("M", bound=Written)


def unified(sizes: Sizes, write: Callable[[Sequence[Tensor]], M]) -> M:
    """Return a model that is valid for all sizes above 1 of the open axes.

    Open axes are first assumed to be independent; if the network refuses that, axes in the same
    position of different inputs are assumed to be equal, and finally all of them. Axes that are
    assumed to be equal have one name in the model.

    Args:
        sizes: the description of the inputs, which receives the names of the sizes.
        write: function that writes the model for given inputs.

    Raises:
        OnnxError: a number in the network depends on the sizes in a way that this module does not
            recognise, or the graph differs between sizes.
    """
    groupings: list[Callable[[int, int], object]] = [
        lambda i, axis: (i, axis), lambda i, axis: axis, lambda i, axis: None,
    ]  # fmt: skip
    problem: Exception | None = None
    for key in groupings:
        sizes.group(key)
        if len(sizes.symbols) > len(_ASSIGNMENTS[0]):
            problem = OnnxError(f"export: got {len(sizes.symbols)} open sizes; wanted up to 4")
            continue
        try:
            models = [write(sizes.examples(row)) for row in _ASSIGNMENTS]
        except DuographError as error:
            problem = problem or error
            continue
        _merge(sizes, models)
        return models[0]
    assert problem is not None
    raise problem


def _merge(sizes: Sizes, models: Sequence[Written]) -> None:
    """Change the first of three models so that it is valid for all sizes.

    `models` were written for three assignments of sizes. Constants that differ among them are
    computed from the sizes; any other difference raises OnnxError.
    """
    first, *others = [m.writer for m in models]
    for other in others:
        _compare(first.scope.nodes, other.scope.nodes, first)
        if list(first.initializers) != list(other.initializers):
            raise OnnxError("export: the constants of the network depend on its open sizes")
    computed = _Computed(sizes, first, {i: x for x, _, i in models[0].inputs})
    for name in list(first.initializers):
        arrays = [m.writer.initializers[name] for m in models]
        if any(a.shape != arrays[0].shape for a in arrays):
            raise _depends(first, name, [f"shape {a.shape}" for a in arrays])
        if not all(np.array_equal(arrays[0], a, equal_nan=a.dtype.kind == "f") for a in arrays):
            computed.replace(name, arrays)
    first.scope.nodes[:0] = computed.nodes
    shapes = [[t.shape if isinstance(t, TensorType) else () for _, t in m.outputs] for m in models]
    sizes.fixed_results = [
        [len({shape[axis] for shape in row}) == 1 for axis in range(len(row[0]))]
        for row in zip(*shapes)
    ]


def _compare(a: Sequence[onnx.NodeProto], b: Sequence[onnx.NodeProto], w: Writer) -> None:
    """Raise OnnxError at the first node that differs between two models."""
    for x, y in itertools.zip_longest(a, b):
        if x is None or y is None or x.SerializeToString() != y.SerializeToString():
            found = x if x is not None else y
            raise OnnxError(
                f"export: the attributes or kind of {found.op_type} at {found.doc_string} depend "
                "on an open size; wanted a network whose graph is the same for all sizes"
            )


def _depends(w: Writer, name: str, values: Sequence[object]) -> OnnxError:
    """Return the error for a constant that depends on the open sizes in an unknown way.

    `values` are its values for the three assignments of sizes.
    """
    where = next((n for n in _readers(w.scope.nodes, name)), None)
    at = "a result" if where is None else f"{where.op_type} at {where.doc_string}"
    return OnnxError(
        f"export: an operand of {at} depends on an open size in a way that ONNX cannot say here: "
        f"it is {', '.join(str(v) for v in values)} for the sizes "
        f"{', '.join(str(row[0]) for row in _ASSIGNMENTS)}"
    )


def _readers(nodes: Sequence[onnx.NodeProto], name: str) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that have `name` as an input, those of branches and loop bodies included."""
    for node in nodes:
        if name in node.input:
            yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _readers(attribute.g.node, name)


class _Computed:
    """Writes the nodes, at the start of a model, that compute constants from the open sizes."""

    def __init__(self, sizes: Sizes, w: Writer, inputs: Mapping[int, str]) -> None:
        self.inputs = inputs
        self.sizes = sizes
        self.w = w
        self.names: dict[int, str] = {}
        self.nodes: list[onnx.NodeProto] = []

    def replace(self, name: str, arrays: Sequence[Array]) -> None:
        """Replace an initializer by nodes that compute it from the open sizes.

        The shape operand of a single Reshape stays an initializer, with -1 for its changing size,
        if only one size changes.

        Args:
            name: name of the initializer.
            arrays: values of the initializer for the three assignments of sizes.

        Raises:
            OnnxError: an element has no known formula, or there are more than 64 elements.
        """
        w = self.w
        rows = list(zip(*[a.reshape(-1).tolist() for a in arrays]))
        found = [_formula(row, len(self.sizes.symbols)) for row in rows]
        unknown = [k for k, f in enumerate(found) if f is None]
        readers = list(_readers(w.scope.nodes, name))
        shape_of_one = len(readers) == 1 and readers[0].op_type == "Reshape"
        changing = [k for k, row in enumerate(rows) if len(set(row)) > 1]
        if arrays[0].dtype == np.int64 and shape_of_one and len(changing) == 1:
            flat = arrays[0].reshape(-1).copy()  # the size of this axis follows from the others
            flat[changing[0]] = -1
            w.initializers[name] = flat
            return
        if unknown or arrays[0].size > 64:
            raise _depends(w, name, [a.reshape(-1).tolist()[:8] for a in arrays])
        with w.graph() as scope:
            dtype = arrays[0].dtype
            parts = []
            for f in found:
                assert f is not None
                parts.append(self._number(f, dtype))
            flat_parts = [w.call("Reshape", p, w.ints([1])) for p in parts]
            joined = w.call("Concat", *flat_parts, axis=0)
            made = w.call("Reshape", joined, w.ints(arrays[0].shape))
            w.rename(made, name)
        del w.initializers[name]
        self.nodes += scope.nodes

    def _size(self, symbol: int) -> str:
        """Return the ONNX name of an open size, a 0-d int64 value read from an input's shape."""
        made = self.names.get(symbol)
        if made is None:
            i, axis = self.sizes.symbols[symbol][0]
            source = self.inputs[i]
            shape = self.w.call("Shape", source, start=axis, end=axis + 1)
            made = self.names[symbol] = self.w.call("Reshape", shape, self.w.ints([]))
        return made

    def _number(self, formula: Formula, dtype: np.dtype[np.generic]) -> str:
        """Write nodes that evaluate a formula.

        Return the ONNX name of the 0-d result of `dtype`.
        """
        w = self.w
        wide: type[np.generic] = (
            np.int64 if formula.inverse is False and dtype.kind == "i" else np.float64
        )
        value = w.constant(np.array(formula.factor, wide))
        for symbol in formula.symbols:
            value = w.call("Mul", value, w.cast(self._size(symbol), wide))
        if formula.added:
            value = w.call("Add", value, w.constant(np.array(formula.added, wide)))
        if formula.inverse:
            value = w.call("Reciprocal", value)
        return w.cast(value, dtype.type)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A number as a function of open sizes: factor * (product of sizes) + added.

    Attributes:
        symbols: the symbols of the sizes in the product.
        inverse: whether the number is the reciprocal of this expression.
    """

    factor: int
    symbols: tuple[int, ...]
    added: int
    inverse: bool = False


def _formula(row: Sequence[float], n_symbols: int) -> Formula | None:
    """Return a formula that has the values `row` for the three assignments of sizes, or None.

    `n_symbols` is the number of open sizes.
    """
    if len(set(row)) == 1 and isinstance(row[0], int):
        return Formula(int(row[0]), (), 0)
    for inverse in (False, True):
        values = row if not inverse else [1 / v if v else 0.0 for v in row]
        if any(abs(v - round(v)) > 1e-6 * abs(v) for v in values):
            continue
        whole = [round(v) for v in values]
        for degree in (1, 2, 3):
            for symbols in itertools.combinations_with_replacement(range(n_symbols), degree):
                made = _fitted(whole, symbols, inverse)
                if made is not None:
                    return made
    return None


def _fitted(values: Sequence[int], symbols: tuple[int, ...], inverse: bool) -> Formula | None:
    """Return the formula ``factor * product of sizes + added`` with three given values, or None.

    `values` belong to the three rows of sizes in `_ASSIGNMENTS`; `symbols` are the sizes in the
    product. With `inverse`, the values are reciprocals of the constant. Only integer factors and
    addends are accepted, because the rounding of a division by a size is not known.
    """
    products = [int(np.prod([sizes[s] for s in symbols])) for sizes in _ASSIGNMENTS]
    factor = Fraction(values[1] - values[0], products[1] - products[0])
    added = values[0] - factor * products[0]
    if factor.denominator != 1 or added.denominator != 1 or not factor:
        return None
    if values[2] != factor * products[2] + added:
        return None
    return Formula(factor.numerator, symbols, int(added), inverse)
