"""Jacobian transforms: `jacrev` runs one vjp per row, and `jacfwd` one jvp per column.

`jacrev` stacks the rows, `jacfwd` the columns. Each can differentiate every function that `vjp`
can. Users call them as part of the public API. The module computes derivatives only through `vjp`
and `jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ops.joining import stack
from ..ops.movement import reshape
from ..ops.shape_primitives import transpose_by
from ..tensor import Tensor
from .pytrees import tensors_of
from .transforms import Position, jvp, positions_of, vjp

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


def _stacked(rows: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    return reshape(stack(rows, 0), shape)


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

    It calls the pullback of `fn`, reverse mode, once per element of the result.

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
        outputs = list(tensors_of(value))
        if len(outputs) != 1:
            raise ArgumentError(f"jacrev: the function returned {len(outputs)} Tensors; wanted one")
        out = outputs[0]
        rows = [pull(seed) for seed in _basis(out)]
        columns = []
        for k, x in enumerate(chosen):
            parts = [r[k] for r in rows]
            columns.append(_stacked(parts, out.shape + x.shape))
        result: object = columns[0] if single else tuple(columns)
        return (result, found[2]) if has_aux else result

    return run


def jacfwd(
    fn: Callable[..., object], grad_position: Position = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fn` by columns (`mindspore.jacfwd`).

    It calls `jvp` once per element of the input, which is cheaper than `jacrev` for functions with
    fewer input than output elements. Arguments and results are those of `jacrev`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.jacfwd(lambda x: x * x)(ms.Tensor([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]
    """
    positions, single = positions_of(grad_position)

    def run(*args: Any) -> object:
        _check_positions("jacfwd", positions, args)
        columns = []
        aux: object = None
        for i in positions:
            alone = _of_chosen(fn, args, (i,))
            x = args[i]
            tangents = []
            out_shape: tuple[int, ...] = ()
            for direction in _basis(x):
                found = jvp(alone, x, direction, has_aux=has_aux)
                tangents.append(found[1])
                out_shape = found[0].shape
                aux = found[2] if has_aux else None
            stacked = _stacked(tangents, (x.size, *out_shape))
            order = (*range(1, len(out_shape) + 1), 0)
            columns.append(reshape(transpose_by(stacked, order), out_shape + x.shape))
        result: object = columns[0] if single else tuple(columns)
        return (result, aux) if has_aux else result

    return run
