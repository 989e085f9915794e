"""Jacobian transforms: `jacrev` pulls back once per row, `jacfwd` pushes forward once per column.

`jacrev` stacks the rows, `jacfwd` the columns. Each calls the function once, and can differentiate
every function that `vjp` can. Users call them as part of the public API. The module computes
derivatives only through `vjp` and `linearized`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import ArgumentError
from ..ops.joining import stack
from ..ops.movement import reshape
from ..ops.shape_primitives import transpose_by
from ..tensor import Tensor
from .pytrees import tensors_of
from .transforms import Position, linearized, positions_of, vjp

__all__ = ["jacrev", "jacfwd"]


def _of_chosen(
    fn: Callable[..., object], args: tuple[object, ...], positions: tuple[int, ...]
) -> Callable[..., object]:
    """Return `fn` as a function of the arguments at `positions`; the others are fixed to `args`.

    Raises:
        ArgumentError: an argument at one of the positions is not a Tensor.
    """
    for i in positions:
        if i >= len(args) or not isinstance(args[i], Tensor):
            raise ArgumentError(
                f"jacobian: argument {i} is no Tensor; wanted one to differentiate by"
            )

    def of_chosen(*chosen: object) -> object:
        full = list(args)
        for i, x in zip(positions, chosen, strict=True):
            full[i] = x
        return fn(*full)

    return of_chosen


def _basis(like: Tensor) -> list[Tensor]:
    """Return one tensor per element of `like`: 1 at that element and 0 elsewhere."""
    eye = np.eye(like.size, dtype=like.dtype.np)
    return [Tensor(row.reshape(like.shape), like.dtype) for row in eye]


def _stacked(rows: list[Tensor], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Return the rows stacked to a Tensor of `shape`; without rows, an empty one of `dtype`."""
    return reshape(stack(rows, 0), shape) if rows else Tensor(np.zeros(shape, dtype.np), dtype)


def _only_output(name: str, value: object) -> Tensor:
    """Return the only Tensor in the value of a function.

    Raises:
        ArgumentError: the value has several Tensors. `name` is that of the transform.
    """
    outputs = list(tensors_of(value))
    if len(outputs) != 1:
        raise ArgumentError(f"{name}: the function returned {len(outputs)} Tensors; wanted one")
    return outputs[0]


def _check_positions(name: str, positions: Sequence[int], args: Sequence[object]) -> None:
    """Raise ArgumentError if a position is not less than the number of arguments.

    `name` is the name of the transform, for the message.
    """
    for i in positions:
        if i >= len(args):
            raise ArgumentError(
                f"{name}: got grad_position {i} and {len(args)} positional arguments; wanted a "
                f"position below {len(args)}"
            )


def jacrev(
    fn: Callable[..., object], grad_position: Position = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fn` by rows (`mindspore.jacrev`).

    It calls `fn` once, and its pullback, reverse mode, once per element of the result.

    Args:
        fn: function or Cell returning a Tensor (or a tuple whose first item is differentiated, with
        `has_aux`).
        grad_position: position of the argument to differentiate by, or a tuple of positions.
        has_aux: whether `fn` returns further results, which are returned unchanged.

    Returns:
        For one position a Tensor of shape `output.shape + input.shape`, for a tuple a tuple of
        them; with `has_aux` the pair of that and the further results.

    Examples:
        >>> import duograph as ms
        >>> print(ms.jacrev(lambda x: x * x)(ms.Tensor([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]
    """
    positions, single = positions_of(grad_position)

    def run(*args: Any) -> object:
        _check_positions("jacrev", positions, args)
        chosen = tuple(args[i] for i in positions)
        found = vjp(_of_chosen(fn, args, positions), *chosen, has_aux=has_aux)
        value, pull = found[0], found[1]
        out = _only_output("jacrev", value)
        rows = [pull(seed) for seed in _basis(out)]
        columns = []
        for k, x in enumerate(chosen):
            parts = [r[k] for r in rows]
            columns.append(_stacked(parts, out.shape + x.shape, x.dtype))
        result: object = columns[0] if single else tuple(columns)
        return (result, found[2]) if has_aux else result

    return run


def jacfwd(
    fn: Callable[..., object], grad_position: Position = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fn` by columns (`mindspore.jacfwd`).

    It calls the push-forward of `fn`, made of two pullbacks, once per element of the input. This is
    cheaper than `jacrev` for functions with fewer input than output elements. Arguments and results
    are those of `jacrev`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.jacfwd(lambda x: x * x)(ms.Tensor([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]
    """
    positions, single = positions_of(grad_position)

    def run(*args: Any) -> object:
        _check_positions("jacfwd", positions, args)
        chosen = tuple(args[i] for i in positions)
        choices = [(k,) for k in range(len(chosen))]
        found, pushes = linearized(_of_chosen(fn, args, positions), chosen, has_aux, choices)
        out = _only_output("jacfwd", found[0])
        columns = []
        for x, push in zip(chosen, pushes, strict=True):
            tangents = [push(direction)[0] for direction in _basis(x)]
            stacked = _stacked(tangents, (x.size, *out.shape), out.dtype)
            order = (*range(1, len(out.shape) + 1), 0)
            columns.append(reshape(transpose_by(stacked, order), out.shape + x.shape))
        result: object = columns[0] if single else tuple(columns)
        return (result, found[2]) if has_aux else result

    return run
