"""Tensors without data: those with an Initializer that has not run, and placeholders.

`Tensor(shape=..., dtype=..., init=...)` and `Tensor(shape=(None, 3))` call `initial_value`; what it
returns stays in the tensor until its first use. The module knows shapes and types only: it must not
make a tensor, and must not run an Initializer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .dtype import DType, float32
from .errors import ArgumentValueError, MissingDataError, ShapeError
from .host_arrays import Array, shape_tuple
from .symbol import Symbol
from .types import TensorType

__all__ = [
    "Initializer", "Placeholder", "check_data_options", "initial_value",
    "install_named_initializers", "uninitialised_text",
]  # fmt: skip

Initializer: TypeAlias = Callable[[Array], object]  # fills an array
_named_initializer: Callable[[object, tuple[int, ...]], Initializer] | None = None


def install_named_initializers(find: Callable[[object, tuple[int, ...]], Initializer]) -> None:
    """Set the function that finds an Initializer by name, as in ``Tensor(init="zeros")``."""
    global _named_initializer
    _named_initializer = find


class Placeholder:
    """Marks a tensor that describes a shape and has no data.

    Attributes:
        declared: the shape as it was declared; None and a `Symbol` are sizes that vary.
        shape: the shape with None for all sizes that vary.
    """

    def __init__(self, declared: tuple[int | Symbol | None, ...]) -> None:
        self.declared = declared
        self.shape = tuple([None if isinstance(n, Symbol) else n for n in declared])

    def __call__(self, array: Array) -> object:
        raise ArgumentValueError(
            f"Tensor: got a placeholder of shape {self.shape} where values are wanted; it is for "
            f"input_signature and set_inputs only"
        )

    def __repr__(self) -> str:
        return f"placeholder of shape {self.shape}"


def initial_value(
    dtype: DType | None, shape: object, init: object
) -> tuple[TensorType, Initializer]:
    """Return the type of a tensor without data, and the Initializer that will make its values.

    A `Placeholder` takes the Initializer's place if `init` is None and a size in `shape` varies
    (None, -1 or a `Symbol`). `dtype` None means float32.

    Raises:
        MissingDataError: there is no shape.
        ArgumentValueError: there is neither `init` nor a size that varies.
    """
    if shape is None:
        raise MissingDataError(
            "Tensor: got no input_data (or None); wanted data, or shape, dtype and init"
        )
    if (
        init is None
        and isinstance(shape, (tuple, list))
        and any(n is None or isinstance(n, Symbol) or n == -1 for n in shape)
    ):
        # a placeholder, for `input_signature` and `set_inputs`; None is a symbolic dimension
        declared = (n if isinstance(n, Symbol) or n != -1 else None for n in shape)
        return TensorType.of((0,) * len(shape), dtype or float32), Placeholder(tuple(declared))
    if init is None:
        raise ArgumentValueError(
            "Tensor: got a shape without init; wanted init, such as "
            "duograph.common.initializer.One()"
        )
    dims = shape_tuple(shape)
    if any(n < 0 for n in dims):
        raise ArgumentValueError(f"Tensor: got shape={dims}; wanted lengths of at least 0")
    if not callable(init):  # a name or a number stands for an Initializer
        assert _named_initializer is not None
        init = _named_initializer(init, dims)
    return TensorType.of(dims, dtype or float32), init


def check_data_options(data: tuple[int, ...], shape: object, init: object) -> None:
    """Raise an error unless `shape` and `init` of `Tensor(input_data, ...)` fit the data.

    `data` is the shape of the data.
    """
    if init is not None:
        raise ArgumentValueError("Tensor: got both input_data and init; wanted one of them")
    if shape is not None and shape_tuple(shape) != data:
        raise ShapeError(
            f"Tensor: got shape={tuple(shape_tuple(shape))} and data of shape {data}; wanted the "
            "same, or shape with init"
        )


def uninitialised_text(type_: TensorType, init: Initializer) -> str:
    """Return the repr of a tensor whose Initializer `init` has not run."""
    if isinstance(init, Placeholder):
        sizes = [-1 if n is None else n for n in init.shape]
        return f"Tensor(shape={sizes}, dtype={type_.dtype}, value=\n)"
    return f"Tensor(shape={list(type_.shape)}, dtype={type_.dtype}, init={init})"
