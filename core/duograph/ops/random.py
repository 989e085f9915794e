"""Random numbers: the primitive `random_bits`, and MindSpore's functions that use it.

Users and other op families call them. Each call consumes one position of the random generator
(duograph.random_state). A uniform number uses the top 24 bits of a word, which float32 holds
exactly, so that all backends agree; new functions must keep this property.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .. import random_state
from ..backend import registry
from ..dtype import DType, DTypeLike, as_dtype, float32, int64, uint32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..ir.control import HostCall
from ..ir.control import random_state as state_op
from ..op import op
from ..option_checks import check_options
from ..placement import commit
from ..random_state import Generator
from ..runtime_state import staged_builder, thread_state
from ..sizes import size_like
from ..tensor import Tensor
from ..types import TensorType, broadcast_shapes, size_of
from .creation import cast_to, fill, iota
from .division import remainder
from .elementwise import add, mul
from .exponential import log
from .gather_scatter import gather
from .logic import bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right
from .movement import concat_by, slice_by
from .powers import sqrt
from .shape_primitives import broadcast_to, reshape_to
from .sorting import sort_by
from .trigonometry import cos, sin

__all__ = [
    "random_bits", "rand", "randn", "rand_like", "randn_like", "randint", "randint_like",
    "randperm", "standard_normal", "normal", "uniform", "shuffle",
]  # fmt: skip


Number: TypeAlias = Tensor | int | float
Size: TypeAlias = int | Sequence[int]


@op(differentiable=False)
def random_bits(state: Tensor, shape: Sequence[int]):
    """Primitive op: random uint32 words of the given shape by the generator Philox 4x32-10.

    `state` is uint32 (4,): key low, key high, offset low, offset high. Element i of the flattened
    result is word i % 4 of a block of four words. The counter of that block is (low word of i // 4,
    high word of i // 4, offset low, offset high).
    """


@random_bits.infer
def _(state, shape):
    if state.shape != (4,) or state.dtype is not uint32:
        raise ShapeError(f"random_bits: got state {state}; wanted uint32 of shape (4,)")
    return TensorType.of(tuple(shape), uint32)


@random_bits.reference
def _(state, shape):
    return random_state.philox(state, size_of(shape)).reshape(shape)


def u32(value: int) -> Tensor:
    return fill((), value, uint32)


def _multiplied(a: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Return (high, low): the 32-bit halves of the 64-bit product of uint32 words `a` and `factor`.

    They are computed from 16-bit halves, without 64-bit integers.
    """
    mask, half = u32(0xFFFF), u32(16)
    a0, a1 = bitwise_and(a, mask), shift_right(a, half)
    f0, f1 = u32(factor & 0xFFFF), u32(factor >> 16)
    low = mul(a0, f0)
    middle = add(mul(a1, f0), shift_right(low, half))  # at most 2^32 - 2^16: no overflow
    cross = add(mul(a0, f1), bitwise_and(middle, mask))
    high = add(add(mul(a1, f1), shift_right(middle, half)), shift_right(cross, half))
    return high, mul(a, u32(factor))


@random_bits.decompose
def _(state, shape):
    count = size_of(shape)
    blocks = (count + 3) // 4
    word = [reshape_to(slice_by(state, (i,), (i + 1,), (1,)), ()) for i in range(4)]
    c = [iota((blocks,), 0, uint32), fill((blocks,), 0, uint32)]
    c += [broadcast_to(word[2], (blocks,)), broadcast_to(word[3], (blocks,))]
    k0, k1 = word[0], word[1]
    for _ in range(10):
        high0, low0 = _multiplied(c[0], 0xD2511F53)
        high1, low1 = _multiplied(c[2], 0xCD9E8D57)
        c = [
            bitwise_xor(bitwise_xor(high1, c[1]), k0), low1,
            bitwise_xor(bitwise_xor(high0, c[3]), k1), low0,
        ]  # fmt: skip
        k0, k1 = add(k0, u32(0x9E3779B9)), add(k1, u32(0xBB67AE85))
    words = reshape_to(concat_by([reshape_to(x, (blocks, 1)) for x in c], 1), (4 * blocks,))
    return reshape_to(slice_by(words, (0,), (count,), (1,)), tuple(shape))


def fraction(bits: Tensor) -> Tensor:
    """Convert the top 24 bits of uint32 words to float32 in [0, 1)."""
    return cast_to(shift_right(bits, u32(8)), float32) * 2.0**-24


@op(differentiable=False)
def random_uniform(state: Tensor, shape: Sequence[int], dtype: object):
    """Composite op: uniform random numbers in [0, 1), from one random word per element.

    `state` is uint32 (4,): key and offset of the generator Philox, low words first.
    """
    found = fraction(random_bits(state, shape))
    return found if dtype is float32 else cast_to(found, dtype)


@op(differentiable=False)
def random_normal(state: Tensor, shape: Sequence[int], dtype: object):
    """Composite op: standard normal random numbers, computed in pairs (Box and Muller, 1958).

    `state` is uint32 (4,): key and offset of the generator Philox, low words first.
    """
    count = size_of(shape)
    half = (count + 1) // 2
    unit = fraction(random_bits(state, (2 * half,)))
    # 1 - u is in (0, 1]: its logarithm is finite
    first = slice_by(unit, (0,), (half,), (1,))
    second = slice_by(unit, (half,), (2 * half,), (1,))
    radius = sqrt(log(1.0 - first) * -2.0)
    angle = second * (2.0 * math.pi)
    both = concat_by((radius * cos(angle), radius * sin(angle)), 0)
    found = reshape_to(slice_by(both, (0,), (count,), (1,)), tuple(shape))
    return found if dtype is float32 else cast_to(found, dtype)


@op(differentiable=False)
def random_integers(state: Tensor, shape: Sequence[int], low: int, high: int, dtype: object):
    """Composite op: uniform integers in [low, high): random words modulo high - low.

    If high - low is over 2**16, an element takes two words, so that the bias of the modulus is
    negligible. `state` is uint32 (4,): key and offset of the generator Philox, low words first.
    """
    span = high - low
    if span <= 2**16:  # the modulus changes a probability by a factor of at most 1 + 2^-16
        bits = random_bits(state, shape)
        value = cast_to(remainder(bits, u32(span)), int64)
    else:
        bits = cast_to(random_bits(state, (2, *shape)), int64)
        rest = (1,) * (len(shape) + 1)
        upper = slice_by(bits, (0,) * len(rest), (1, *shape), rest)
        lower = slice_by(bits, (1, *[0] * len(shape)), (2, *shape), rest)
        # 62 bits are never negative in int64
        wide = bitwise_or(
            shift_left(shift_right(upper, fill((), 2, int64)), fill((), 32, int64)), lower
        )
        value = reshape_to(remainder(wide, fill((), span, int64)), tuple(shape))
    value = value + fill((), low, int64)
    return value if dtype is int64 else cast_to(value, dtype)


@op(differentiable=False)
def permutation(state: Tensor, n: int, dtype: object):
    """Composite op: the numbers 0 to n - 1 in random order, by sorting random words.

    `state` is uint32 (4,): key and offset of the generator Philox, low words first.
    """
    bits = random_bits(state, (2 * n,))
    # keys of two words, so that equal keys are improbable
    high = bitwise_and(cast_to(bits, int64), fill((), 0x7FFFFFFF, int64))
    high = slice_by(high, (0,), (n,), (1,))
    low = cast_to(slice_by(bits, (n,), (2 * n,), (1,)), int64)
    word = bitwise_or(shift_left(high, fill((), 32, int64)), low)
    _, order = sort_by(word, 0, False)
    return order if dtype is int64 else cast_to(order, dtype)


# ---- public functions ----------------------------------------------------------------------------


_STATE = TensorType.of((4,), uint32)


def _taker(seed: object, generator: Generator | None) -> HostCall:
    """Return a function without arguments that advances the generator by one random op.

    The function returns the state for that op. A graph node holds the function, and every run of
    the compiled graph calls it. `seed` is combined with the generator's seed unless it is None;
    `generator` None means the global one.
    """
    return HostCall(lambda: random_state.next_state(seed, generator), "take_state")


def take_state(
    seed: object = None, generator: Generator | None = None, like: Tensor | None = None
) -> Tensor:
    """Return the state for one random op as a Tensor, and advance the random generator.

    While a function is compiled, the result is a graph value, and each run advances the generator.

    Args:
        seed: int that is combined with the generator's seed, or None; or a Generator.
        generator: the generator, or None for the global one.
        like: tensor on whose device the numbers will be made, or None for the current device.
    """
    if isinstance(seed, Generator):
        seed, generator = None, seed
    builder = staged_builder()
    if builder is not None:
        return builder.append(state_op, (), {"take": _taker(seed, generator)})
    made = Tensor._make(_STATE, random_state.next_state(seed, generator))
    if thread_state.builder is None:
        device = None if like is None else like._type.device
        commit(made, device or registry.current_device())
    return made


def shape_of(name: str, size: object) -> tuple[int, ...]:
    """Return a shape from an int, or from one tuple, list or Tensor of ints.

    `name` is the user's function in errors.
    """
    if isinstance(size, Tensor):
        size = size.tolist()
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool):
        size = (size,)
    if not isinstance(size, (tuple, list)):
        raise ArgumentError(f"{name}: got shape={size!r}; wanted an int or a tuple of ints")
    if len(size) == 1 and isinstance(size[0], (tuple, list, Tensor)):
        return shape_of(name, size[0])
    for n in size:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise ArgumentError(f"{name}: got {n!r} in the shape; wanted ints")
        if n < 0:
            raise ArgumentValueError(f"{name}: got {n} in the shape; wanted 0 or more")
    return tuple(size_like(n) for n in size)


def probability_of(name: str, p: object) -> float:
    """Return a number in [0, 1] as a float; raise for other values, naming the function `name`."""
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ArgumentError(f"{name}: got p={p!r}; wanted a number")
    if not 0 <= p <= 1:
        raise ArgumentValueError(f"{name}: got p={p!r}; wanted a probability, 0 to 1")
    return float(p)


def _float_dtype(name: str, dtype: DTypeLike | None) -> DType:
    found = float32 if dtype is None else as_dtype(dtype)
    if not found.is_floating:
        raise DTypeError(f"{name}: got dtype {found.name}; wanted a floating one")
    return found


def rand(
    *size: Size,
    dtype: DTypeLike | None = None,
    seed: object = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw uniform numbers in [0, 1) (`mindspore.ops.rand`).

    Args:
        size: ints, or one tuple of them.
        dtype: floating dtype; default float32.
        seed: int that is combined with the global seed for this call, or None. The numbers also
            depend on the number of random ops that ran before.
        generator: Generator to use, or None for the global one.

    Returns:
        Tensor of that shape.

    Raises:
        TypeError: sizes that are not ints; another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rand(2, 3).shape
        (2, 3)
    """
    return random_uniform(
        take_state(seed, generator), shape_of("rand", size), _float_dtype("rand", dtype)
    )


def randn(
    *size: Size,
    dtype: DTypeLike | None = None,
    seed: object = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw standard normal numbers (`mindspore.ops.randn`).

    Args:
        size: ints, or one tuple of them.
        dtype: floating dtype; default float32.
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of that shape.

    Raises:
        TypeError: sizes that are not ints; another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.randn((2, 3)).shape
        (2, 3)
    """
    return random_normal(
        take_state(seed, generator), shape_of("randn", size), _float_dtype("randn", dtype)
    )


def rand_like(input: Tensor, seed: object = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Draw uniform numbers in [0, 1), of the shape and (unless given) dtype of `input`
    (`mindspore.ops.rand_like`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rand_like(ms.ops.ones((2, 3))).shape
        (2, 3)
    """
    return rand(input.shape, dtype=input.dtype if dtype is None else dtype, seed=seed)


def randn_like(input: Tensor, seed: object = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Draw standard normal numbers, of the shape and (unless given) dtype of `input`
    (`mindspore.ops.randn_like`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.randn_like(ms.ops.ones((2, 3))).shape
        (2, 3)
    """
    return randn(input.shape, dtype=input.dtype if dtype is None else dtype, seed=seed)


def _bounds(name: str, low: Number, high: Number) -> tuple[int, int]:
    low, high = (v.item() if isinstance(v, Tensor) else v for v in (low, high))
    for v in (low, high):
        if isinstance(v, bool) or not isinstance(v, (int, np.integer)):
            raise ArgumentError(f"{name}: got bounds {low!r} and {high!r}; wanted ints")
    if low >= high:
        raise ArgumentValueError(f"{name}: got low={low} and high={high}; wanted low < high")
    return int(low), int(high)


def _int_dtype(name: str, dtype: DTypeLike | None) -> DType:
    found = int64 if dtype is None else as_dtype(dtype)
    if not found.is_integer:
        raise DTypeError(f"{name}: got dtype {found.name}; wanted an integer one")
    return found


def randint(
    low: Tensor | int,
    high: Tensor | int,
    size: Size,
    seed: object = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw random integers in [low, high) (`mindspore.ops.randint`).

    Args:
        low, high: bounds, ints; `high` is excluded.
        size: shape of the result.
        seed: int that is combined with the global seed, or None; see `rand`.
        dtype: integer dtype; default int64.

    Returns:
        Tensor of that shape.

    Raises:
        TypeError: bounds or sizes that are not ints; another dtype.
        ValueError: low is not below high.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.randint(0, 10, (2, 3))
        >>> x.shape, bool(x.max() < 10)
        ((2, 3), True)
    """
    low, high = _bounds("randint", low, high)
    return random_integers(
        take_state(seed), shape_of("randint", size), low, high, _int_dtype("randint", dtype)
    )


def randint_like(
    input: Tensor,
    low: Tensor | int,
    high: Tensor | int,
    seed: object = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw random integers in [low, high), of the shape and (unless given) dtype of `input`
    (`mindspore.ops.randint_like`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.randint_like(ms.Tensor([1, 2]), 0, 5).shape
        (2,)
    """
    return randint(low, high, input.shape, seed, dtype=input.dtype if dtype is None else dtype)


def randperm(
    n: Tensor | int, seed: object = 0, offset: int = 0, dtype: DTypeLike = int64
) -> Tensor:
    """Return the numbers 0 to n - 1 in random order (`mindspore.ops.randperm`).

    Args:
        n: how many numbers.
        seed: as in `rand`; 0 means none.
        offset: without effect.
        dtype: dtype of the result.

    Returns:
        Tensor (n,).

    Raises:
        ValueError: n is negative.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.sort(ms.ops.randperm(4))[0])
        [0 1 2 3]
    """
    if offset:
        check_options("ops.randperm", offset=offset)
    (count,) = shape_of("randperm", n.item() if isinstance(n, Tensor) else n)
    return permutation(take_state(seed or None), count, as_dtype(dtype))


def shuffle(x: Tensor, seed: object = None) -> Tensor:
    """Return the slices of `x` along axis 0 in random order (`mindspore.ops.shuffle`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.sort(ms.ops.shuffle(ms.Tensor([2, 1])))[0])
        [1 2]
    """
    if x.ndim == 0:
        return x
    return gather(x, permutation(take_state(seed or None, like=x), x.shape[0], int64), 0)


def standard_normal(shape: Size, seed: object = None) -> Tensor:
    """Draw standard normal float32 numbers (`mindspore.ops.standard_normal`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.standard_normal((2, 3)).shape
        (2, 3)
    """
    return random_normal(take_state(seed), shape_of("standard_normal", shape), float32)


def drawn_shape(name: str, shape: object, *params: object) -> tuple[int, ...]:
    """Return `shape` broadcast with the shapes of `params`, the distribution's parameters.

    `name` is the user's function in errors.
    """
    wanted = shape_of(name, shape)
    given = [p.shape for p in params if isinstance(p, Tensor)]
    found = broadcast_shapes(wanted, *given)
    if found is None:
        raise ShapeError(
            f"{name}: got shape {wanted} and parameters of shapes {given}; wanted ones that "
            "broadcast"
        )
    return found


def normal(shape: Size, mean: Number, stddev: Number, seed: object = None) -> Tensor:
    """Draw normal numbers (`mindspore.ops.normal`).

    Args:
        shape: shape that is broadcast with the shapes of `mean` and `stddev`.
        mean, stddev: Tensors or numbers. Gradients flow to them.
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of float32, or of the parameters' floating dtype.

    Raises:
        ValueError: shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.normal((4, 2), ms.Tensor([0.0, 10.0]), 1.0).shape
        (4, 2)
    """
    unit = random_normal(take_state(seed), drawn_shape("normal", shape, mean, stddev), float32)
    return unit * stddev + mean


def uniform(
    shape: Size, minval: Number, maxval: Number, seed: object = None, dtype: DTypeLike = float32
) -> Tensor:
    """Draw uniform numbers in [minval, maxval) (`mindspore.ops.uniform`).

    Args:
        shape: shape that is broadcast with the shapes of the bounds.
        minval, maxval: Tensors or numbers; each a single int if `dtype` is an integer dtype.
        seed: int that is combined with the global seed, or None; see `rand`.
        dtype: float32, float16, float64 or an integer dtype.

    Returns:
        Tensor of `dtype`.

    Raises:
        ValueError: shapes that do not broadcast; integer bounds without a number between them.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.uniform((3,), 1.0, 2.0)
        >>> bool((x >= 1).all()), bool((x < 2).all())
        (True, True)
    """
    target = as_dtype(dtype)
    if target.is_integer:
        low, high = _bounds("uniform", minval, maxval)
        return random_integers(take_state(seed), shape_of("uniform", shape), low, high, target)
    unit = random_uniform(
        take_state(seed),
        drawn_shape("uniform", shape, minval, maxval),
        _float_dtype("uniform", target),
    )
    return unit * (maxval - minval) + minval
