"""Shapes that users declare for the arguments of a compiled function.

`jit(input_signature=...)` and `Cell.set_inputs` declare shapes with placeholder Tensors, in whose
shapes None or a `Symbol` stands for a size that varies. `compiler.function` checks calls against
these shapes; `compiler.symbolic` makes the declared sizes symbolic at the first call. The module
compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import ArgumentValueError
from ..frontend.types import Args, Value
from ..initial_values import Placeholder
from ..symbol import Symbol
from ..tensor import Tensor
from .arguments import Slots, signature
from .key import argument_label

__all__ = ["check_signature", "open_axes"]

# A size in a declared shape: None is any.
Declared = int | Symbol | None


def check_signature(name: str, wanted: Value, given: Args, parameters: Sequence[str]) -> None:
    """Raise ArgumentValueError if arguments do not match `wanted`, an `input_signature`.

    Args:
        name: the name of the function, for messages.
        wanted: a Tensor, or a tuple or list with an item for each argument.
        given: the arguments.
        parameters: names of the arguments, as far as they are known.
    """
    items = _items(wanted)
    if len(items) != len(given):
        raise ArgumentValueError(
            f"{name}: got {len(given)} arguments; its input_signature has {len(items)}"
        )
    same: dict[int, tuple[int, str]] = {}
    for i, (want, x) in enumerate(zip(items, given)):
        for place, one, other in _pairs(want, x, argument_label(parameters, i)):
            shape = _shape(one)
            fits = len(shape) == len(other.shape) and all(map(_fits, shape, other.shape))
            if not fits or one.dtype is not other.dtype:
                shown = f"({', '.join(map(repr, shape))}{',' if len(shape) == 1 else ''})"
                raise ArgumentValueError(
                    f"{name}: got a Tensor of shape {other.shape} and dtype {other.dtype} for "
                    f"{place}; its input_signature says shape {shown} and dtype {one.dtype}"
                )
            for axis, (size, n) in enumerate(zip(shape, other.shape)):
                if isinstance(size, Symbol) and size.unique:
                    was, where = same.setdefault(id(size), (n, f"axis {axis} of {place}"))
                    if was != n:
                        raise ArgumentValueError(
                            f"{name}: got size {n} for axis {axis} of {place} and {was} for "
                            f"{where}; its input_signature has one Symbol with unique=True there: "
                            "wanted equal sizes"
                        )


def open_axes(wanted: Value, given: Args) -> dict[tuple[int, int], Symbol | None]:
    """Return the axes whose size a signature does not fix, as (index of tensor argument, axis).

    The result is a dict. The value for an axis is the `Symbol` that describes its size, or None for
    any size. The dict is empty if `wanted`, the signature, is None. `given` are the arguments.
    """
    found: dict[tuple[int, int], Symbol | None] = {}
    if wanted is None:
        return found
    numbers: dict[int, int] = {}
    slots = Slots()
    for x in given:
        signature(x, slots)
    for number, x in enumerate(slots.leaves):
        numbers.setdefault(id(x), number)
    for want, x in zip(_items(wanted), given):
        for _, one, other in _pairs(want, x, ""):
            for axis, size in enumerate(_shape(one)):
                if size is None or isinstance(size, Symbol):
                    found[numbers[id(other)], axis] = size
    return found


def _items(wanted: Value) -> Value:
    return wanted if isinstance(wanted, (tuple, list)) else (wanted,)


def _pairs(want: Value, x: Value, place: str) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield (description, declared Tensor, given Tensor) for each Tensor in an argument.

    `want` is the declared argument, `x` the given one, and `place` its description for messages.
    """
    if isinstance(want, Tensor) and isinstance(x, Tensor):
        yield place, want, x
    elif isinstance(want, (tuple, list)) and isinstance(x, (tuple, list)):
        for k, (one, other) in enumerate(zip(want, x)):
            yield from _pairs(one, other, f"item {k} of {place}")


def _shape(want: Tensor) -> tuple[Declared, ...]:
    placeholder = getattr(want, "_init", None)
    return placeholder.declared if isinstance(placeholder, Placeholder) else want.shape


def _fits(want: Declared, size: int) -> bool:
    if isinstance(want, Symbol):
        return want.accepts(size)
    return want is None or want == -1 or want == size
