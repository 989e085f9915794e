"""Random tensors with the signatures of `duograph.mint`, with `generator` and `device`.

`mint/__init__.py` exports these functions. Every function draws its numbers with `duograph.ops`,
from the given generator or from the global one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .. import ops as _ops
from ..dtype import DTypeLike, as_dtype, int64
from ..errors import ArgumentError, ArgumentValueError
from ..random_state import Generator
from ..tensor import Tensor

__all__ = [
    "bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm",
]  # fmt: skip


def rand(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return uniform random numbers in [0, 1) (`mindspore.mint.rand`).

    Args:
        size: ints, or one tuple or list of them.
        generator: Generator to draw from; default the global one.
        dtype: floating dtype; default float32.
        device: name of a device such as ``"CPU"``; default the current one.

    Raises:
        TypeError: sizes that are not ints, another generator, or another dtype.

    Examples:
        >>> from duograph import mint
        >>> mint.rand(2, 3).shape
        (2, 3)
    """
    return _on(_ops.rand(*size, dtype=dtype, generator=generator), device)


def randn(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return standard normal random numbers (`mindspore.mint.randn`).

    Args:
        size: ints, or one tuple or list of them.
        generator: Generator to draw from; default the global one.
        dtype: floating dtype; default float32.
        device: name of a device such as ``"CPU"``; default the current one.

    Raises:
        TypeError: sizes that are not ints, another generator, or another dtype.

    Examples:
        >>> from duograph import mint
        >>> mint.randn((2, 3)).shape
        (2, 3)
    """
    return _on(_ops.randn(*size, dtype=dtype, generator=generator), device)


def rand_like(
    input: Tensor, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return uniform random numbers in [0, 1), in the shape of a tensor
    (`mindspore.mint.rand_like`).

    Args:
        input: Tensor.
        dtype: floating dtype; default that of `input`.
        device: name of a device such as ``"CPU"``.

    Examples:
        >>> from duograph import mint
        >>> mint.rand_like(mint.ones((2, 3))).shape
        (2, 3)
    """
    return _on(_ops.rand_like(input, dtype=dtype), device)


def randn_like(
    input: Tensor, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return standard normal random numbers, in the shape of a tensor
    (`mindspore.mint.randn_like`).

    Args:
        input: Tensor.
        dtype: floating dtype; default that of `input`.
        device: name of a device such as ``"CPU"``.

    Examples:
        >>> from duograph import mint
        >>> mint.randn_like(mint.ones((2, 3))).shape
        (2, 3)
    """
    return _on(_ops.randn_like(input, dtype=dtype), device)


def randint(
    *args: object,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return random integers in [low, high): ``randint(low=0, high, size)``
    (`mindspore.mint.randint`).

    Args:
        args: low, high and size, or high and size; `size` is a tuple of ints.
        generator: Generator to draw from; default the global one.
        dtype: integer or floating dtype; default int64.
        device: name of a device such as ``"CPU"``; default the current one.

    Raises:
        TypeError: bounds or sizes that are not ints, or too many of them.
        ValueError: low is not below high.

    Examples:
        >>> from duograph import mint
        >>> mint.randint(0, 10, (2, 3)).shape
        (2, 3)
    """
    if len(args) not in (2, 3):
        raise ArgumentError(f"randint: got {len(args)} arguments; wanted (low=0, high, size)")
    low, high, size = (0, *args) if len(args) == 2 else args
    target = int64 if dtype is None else as_dtype(dtype)
    whole = target if target.is_integer else int64
    made = _ops.randint(low, high, size, _seeded("randint", generator), dtype=whole)
    return _on(made.astype(target), device)


def randint_like(
    *args: object, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return random integers in the shape of a tensor: ``randint_like(input, low=0, high)``
    (`mindspore.mint.randint_like`).

    Args:
        args: a Tensor that gives the shape, then low and high, or high.
        dtype: integer or floating dtype; default that of the Tensor.
        device: name of a device such as ``"CPU"``.

    Raises:
        TypeError: bounds that are not ints, or too many of them.
        ValueError: low is not below high.

    Examples:
        >>> from duograph import mint
        >>> mint.randint_like(mint.ones((2, 3)), 10).shape
        (2, 3)
    """
    if len(args) not in (2, 3) or not isinstance(args[0], Tensor):
        raise ArgumentError(
            f"randint_like: got {len(args)} arguments; wanted (input, low=0, high) with a Tensor"
        )
    input, *bounds = cast("tuple[Tensor, int]", args)
    kind = input.dtype if dtype is None else dtype
    return randint(*bounds, input.shape, dtype=kind, device=device)


def randperm(n: int, *, generator: Generator | None = None, dtype: DTypeLike = int64) -> Tensor:
    """Return the numbers 0 to n - 1 in random order (`mindspore.mint.randperm`).

    Args:
        n: non-negative int.
        generator: Generator to draw from; default the global one.
        dtype: default int64.

    Raises:
        ValueError: n is negative.

    Examples:
        >>> from duograph import mint
        >>> print(mint.sort(mint.randperm(4))[0])
        [0 1 2 3]
    """
    return _ops.randperm(n, _seeded("randperm", generator), dtype=dtype)


def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers (`mindspore.mint.normal`).

    Args:
        mean, std: Tensors or numbers; the shapes broadcast.
        size: shape of the result, only if both are numbers.
        generator: Generator to draw from; default the global one.

    Returns:
        float32 Tensor.

    Raises:
        ValueError: `size` together with Tensors, or a negative number `std`.

    Examples:
        >>> from duograph import mint
        >>> mint.normal(0.0, 1.0, (2, 3)).shape
        (2, 3)
    """
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if tensors and size is not None:
        raise ArgumentValueError("normal: got size together with a Tensor; wanted one of them")
    if not isinstance(std, Tensor) and std < 0:
        raise ArgumentValueError(f"normal: got std={std!r}; wanted 0 or more")
    shape: Sequence[int] = () if size is None else size
    return _ops.normal(shape, mean, std, _seeded("normal", generator))


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Return random zeros and ones; each element is the probability of a 1
    (`mindspore.mint.bernoulli`).

    Args:
        input: floating Tensor of probabilities.
        generator: Generator to draw from; default the global one.

    Returns:
        Tensor of the shape and dtype of `input`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.bernoulli(Tensor([0.0, 1.0])))
        [0. 1.]
    """
    return _ops.bernoulli(input, input, _seeded("bernoulli", generator))


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn with given weights (`mindspore.mint.multinomial`).

    Args:
        input: Tensor (k,) or (n, k) of weights, not negative; they need not sum to 1.
        num_samples: number of indices to draw for each row.
        replacement: whether an index may be drawn again.
        generator: Generator to draw from; default the global one.

    Returns:
        int64 Tensor (num_samples,) or (n, num_samples).

    Raises:
        ValueError: another number of axes, or more samples than indices without replacement.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.multinomial(Tensor([0.0, 1.0]), 3, True))
        [1 1 1]
    """
    seed = _seeded("multinomial", generator)
    return _ops.multinomial(input, num_samples, replacement, seed).astype(int64)


def _seeded(name: str, generator: object) -> object:
    """Return the argument `generator` if it is a Generator or None; raise otherwise.

    The functions of `ops` accept a Generator as their `seed`. `name` is the calling function, for
    the error.
    """
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(
            f"{name}: got {type(generator).__name__} for 'generator'; wanted a Generator"
        )
    return generator


def _on(made: Tensor, device: str | None) -> Tensor:
    """Move the new tensor `made` to `device`; return it unchanged if `device` is None."""
    return made if device is None else made.move_to(device)
