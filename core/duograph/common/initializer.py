"""Initializers: fill new Parameters with zeros, random numbers and the like, on the host.

Users and layers call `initializer`. The values are the same on every device. Random values must not
depend on when the Tensor is filled: for this, each call of `initializer` reserves the next position
of the global random state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..advice import meant
from ..call_errors import explain_methods
from ..dtype import as_dtype, float32
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..host_arrays import Array, shape_tuple
from ..initial_values import install_named_initializers
from ..option_checks import warn_unused
from ..tensor import Tensor
from ._stream import Stream

__all__ = [
    "Initializer", "initializer", "One", "Zero", "Constant", "Normal", "TruncatedNormal", "Uniform",
    "XavierUniform", "XavierNormal", "HeUniform", "HeNormal", "Orthogonal", "Identity", "Sparse",
    "Dirac", "VarianceScaling",
]  # fmt: skip

_by_name: dict[str, type[Initializer]] = {}


class Initializer:
    """Base class of initial values; a subclass fills a NumPy array in `_initialize(arr)`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.common.initializer import Initializer, initializer
        >>> class Two(Initializer):
        ...     def _initialize(self, arr):
        ...         arr[...] = 2
        >>> print(initializer(Two(), (2,)).asnumpy())
        [2. 2.]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__", "_initialize")

    def __init__(self, **kwargs: object) -> None:
        self._kwargs = kwargs
        self.stream: Stream | None = None

    def _initialize(self, arr: Array) -> object:
        raise NotImplementedError(f"{type(self).__name__}: has no _initialize(arr)")

    def __call__(self, arr: Array) -> object:
        return self._initialize(arr)

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.__dict__.get("_kwargs", {}).items())
        return f"{type(self).__name__}({shown})"

    def _random(self) -> Stream:
        """Return the random stream from which this initializer draws: its own, or a new one."""
        stream = self.__dict__.get("stream")
        return Stream() if stream is None else stream


class _Bound:
    """An Initializer with a random stream of its own: called with an array, it fills the array.

    Every call rewinds the stream, so that it fills in the same numbers.
    """

    def __init__(self, init: Initializer, stream: Stream) -> None:
        self.init = init
        self.stream = stream

    def __call__(self, arr: Array) -> object:
        before = self.init.__dict__.get("stream")
        self.stream.rewind()
        self.init.stream = self.stream
        try:
            return self.init(arr)
        finally:
            self.init.stream = before

    def __repr__(self) -> str:
        return repr(self.init)


# names of other libraries -> ours
_ELSEWHERE = {"kaiming": "he", "glorot": "xavier", "msra": "he", "gaussian": "normal"}


def _meant(name: str) -> str:
    """Return the suggestion of similar names for an error message about an unknown initialiser."""
    known = sorted(n for n in _by_name if "_" in n or n in ("normal", "uniform", "zeros", "ones"))
    for theirs, ours in _ELSEWHERE.items():
        if name.lower().startswith(theirs):
            name = ours + name.lower()[len(theirs) :]
    return meant(name, known)


def _named(*names: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Decorator that registers an Initializer class under names that `initializer` accepts."""

    def register(cls: type[Initializer]) -> type[Initializer]:
        for name in (*names, cls.__name__):
            _by_name[name.lower()] = cls
        return cls

    return register


def initializer(init: object, shape: object = None, dtype: object = float32) -> Tensor:
    """Return a Tensor of initial values, which are created at its first use
    (`mindspore.common.initializer.initializer`).

    Args:
        init: an `Initializer`, the name of one such as ``"he_uniform"``, a number, or a Tensor of
            that shape.
        shape: int, tuple or list; lengths of at least 1.
        dtype: element type; a Tensor given as `init` keeps its own, and one warning says so.

    Raises:
        ValueError: an unknown name, a length below 1, or a Tensor of another shape.
        TypeError: `init` is none of the above.

    Examples:
        >>> from duograph.common.initializer import initializer, Normal
        >>> print(initializer("ones", (2,)).asnumpy())
        [1. 1.]
        >>> initializer(Normal(0.02), (3, 4)).shape
        (3, 4)
    """
    if isinstance(init, Tensor):
        if shape is not None and shape_tuple(shape) != init.shape:
            raise ShapeError(
                f"initializer: got a Tensor of shape {init.shape} and shape={shape_tuple(shape)}; "
                f"wanted the same"
            )
        asked = as_dtype(dtype)
        if asked not in (float32, init.dtype):  # float32 is also what callers do not ask for
            kept = f"{asked} has no effect: the initial value is a Tensor and stays {init.dtype}"
            warn_unused("initializer", "dtype", f"{kept}; cast it with x.astype({asked!r})")
        return init
    if shape is None:
        raise ArgumentValueError("initializer: got no shape; wanted an int or a tuple of ints")
    dims = shape_tuple(shape)
    if any(n < 1 for n in dims):
        raise ArgumentValueError(f"initializer: got shape={dims}; wanted lengths of at least 1")
    if isinstance(init, str):
        cls = _by_name.get(init.lower())
        if cls is None:
            raise ArgumentValueError(f"initializer: got init={init!r}; {_meant(init)}")
        init = cls()
    elif isinstance(init, (int, float)) and not isinstance(init, bool):
        init = Constant(init)
    if not isinstance(init, Initializer):
        raise ArgumentError(
            f"initializer: got {type(init).__name__}; wanted a Tensor, a name, a number or an "
            f"Initializer"
        )
    return Tensor(shape=dims, dtype=as_dtype(dtype), init=_Bound(init, Stream()))


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return (fan in, fan out), the numbers of inputs and outputs of one unit, for a weight.

    A weight of shape (out, in, kernel...) has fans in * K and out * K, where K is the product
    of the kernel sizes. For one axis, both are its size.

    Raises:
        ShapeError: the shape is 0-d.
    """
    if not shape:
        raise ShapeError("initializer: got a 0-d shape; wanted at least one axis for a fan")
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _fan(shape: Sequence[int], mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentValueError(f"initializer: got mode={mode!r}; wanted 'fan_in' or 'fan_out'")
    return _fans(shape)[0 if mode == "fan_in" else 1]


def _gain(nonlinearity: str, slope: float) -> float:
    fixed = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "sigmoid": 1.0,
             "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0)}  # fmt: skip
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in fixed:
        raise ArgumentValueError(
            f"initializer: got nonlinearity={nonlinearity!r}; "
            f"wanted one of leaky_relu, {', '.join(fixed)}"
        )
    return fixed[nonlinearity]


@_named("zeros", "zero")
class Zero(Initializer):
    """Initial values of zero.

    Examples:
        >>> from duograph.common.initializer import initializer, Zero
        >>> print(initializer(Zero(), (2,)).asnumpy())
        [0. 0.]
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 0


@_named("ones", "one")
class One(Initializer):
    """Initial values of one.

    Examples:
        >>> from duograph.common.initializer import initializer, One
        >>> print(initializer(One(), (2,)).asnumpy())
        [1. 1.]
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 1


class Constant(Initializer):
    """Initial values that are all the same number, or the elements of an array of the same shape.

    Examples:
        >>> from duograph.common.initializer import initializer, Constant
        >>> print(initializer(Constant(3), (2,)).asnumpy())
        [3. 3.]
    """

    def __init__(self, value: object) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        arr[...] = np.asarray(self.value)


@_named("normal")
class Normal(Initializer):
    """Normal random numbers with the standard deviation `sigma` and the mean `mean`.

    Examples:
        >>> from duograph.common.initializer import initializer, Normal
        >>> initializer(Normal(0.02), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: Array) -> None:
        arr[...] = self.mean + self.sigma * self._random().normal(arr.shape)


@_named("truncatednormal", "truncated_normal")
class TruncatedNormal(Initializer):
    """Normal random numbers around `mean`; numbers outside [a, b] are drawn again.

    Raises:
        ValueError: raised when used, if hardly any number falls into [a, b].

    Examples:
        >>> from duograph.common.initializer import initializer, TruncatedNormal
        >>> initializer(TruncatedNormal(0.02), (4, 3)).shape
        (4, 3)
    """

    def __init__(
        self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0
    ) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: Array) -> None:
        arr[...] = _truncated(self._random(), arr.shape, self.sigma, self.mean, self.a, self.b)


def _truncated(
    stream: Stream, shape: Sequence[int], sigma: float, mean: float, low: float, high: float
) -> Array:
    wanted = math.prod(shape)
    found: list[Array] = []
    have = 0
    for _ in range(1000):
        drawn = mean + sigma * stream.normal((max(wanted, 16),))
        kept = drawn[(drawn >= low) & (drawn <= high)]
        found.append(kept)
        have += kept.size
        if have >= wanted:
            return np.concatenate(found)[:wanted].reshape(tuple(shape))
    raise ArgumentValueError(
        f"TruncatedNormal: got bounds [{low}, {high}] for mean {mean} and sigma {sigma}; "
        f"wanted bounds that values fall into"
    )


@_named("uniform")
class Uniform(Initializer):
    """Uniform random numbers in [-scale, scale).

    Examples:
        >>> from duograph.common.initializer import initializer, Uniform
        >>> initializer(Uniform(), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: Array) -> None:
        arr[...] = self._random().uniform(arr.shape, -self.scale, self.scale)


@_named("xavieruniform", "xavier_uniform")
class XavierUniform(Initializer):
    """Uniform random numbers with the variance of Glorot and Bengio (2010), times `gain` squared.

    Examples:
        >>> from duograph.common.initializer import initializer, XavierUniform
        >>> initializer(XavierUniform(), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        bound = self.gain * math.sqrt(6.0 / sum(_fans(arr.shape)))
        arr[...] = self._random().uniform(arr.shape, -bound, bound)


@_named("xaviernormal", "xavier_normal")
class XavierNormal(Initializer):
    """Normal random numbers with the variance of Glorot and Bengio (2010), times `gain` squared.

    Examples:
        >>> from duograph.common.initializer import initializer, XavierNormal
        >>> initializer(XavierNormal(), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        sigma = self.gain * math.sqrt(2.0 / sum(_fans(arr.shape)))
        arr[...] = sigma * self._random().normal(arr.shape)


@_named("heuniform", "he_uniform")
class HeUniform(Initializer):
    """Uniform random numbers with the variance of He et al. (2015).

    `mode` is ``"fan_in"`` or ``"fan_out"``. `negative_slope` matters for the nonlinearity
    ``"leaky_relu"`` only.

    Examples:
        >>> from duograph.common.initializer import initializer, HeUniform
        >>> initializer(HeUniform(), (4, 3)).shape
        (4, 3)
    """

    def __init__(
        self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
    ) -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _initialize(self, arr: Array) -> None:
        gain = _gain(self.nonlinearity, self.negative_slope)
        bound = gain * math.sqrt(3.0 / _fan(arr.shape, self.mode))
        arr[...] = self._random().uniform(arr.shape, -bound, bound)


@_named("henormal", "he_normal")
class HeNormal(Initializer):
    """Normal random numbers with the variance of He et al. (2015).

    The arguments are those of `HeUniform`.

    Examples:
        >>> from duograph.common.initializer import initializer, HeNormal
        >>> initializer(HeNormal(), (4, 3)).shape
        (4, 3)
    """

    def __init__(
        self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
    ) -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _initialize(self, arr: Array) -> None:
        gain = _gain(self.nonlinearity, self.negative_slope)
        sigma = gain / math.sqrt(_fan(arr.shape, self.mode))
        arr[...] = sigma * self._random().normal(arr.shape)


@_named("variancescaling", "variance_scaling")
class VarianceScaling(Initializer):
    """Random numbers with the variance `scale` / fan, where `mode` chooses the fan.

    `distribution` is ``"truncated_normal"`` (at two standard deviations), ``"untruncated_normal"``
    or ``"uniform"``.

    Raises:
        ValueError: a scale of 0 or less, an unknown mode or distribution.

    Examples:
        >>> from duograph.common.initializer import initializer, VarianceScaling
        >>> initializer(VarianceScaling(), (4, 3)).shape
        (4, 3)
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"
    ) -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0:
            raise ArgumentValueError(f"VarianceScaling: got scale={scale}; wanted above 0")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ArgumentValueError(
                f"VarianceScaling: got mode={mode!r}; wanted 'fan_in', 'fan_out' or 'fan_avg'"
            )
        if distribution not in ("uniform", "untruncated_normal", "truncated_normal"):
            raise ArgumentValueError(
                f"VarianceScaling: got distribution={distribution!r}; wanted 'uniform', "
                f"'untruncated_normal' or 'truncated_normal'"
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _initialize(self, arr: Array) -> None:
        fan_in, fan_out = _fans(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        stream = self._random()
        if self.distribution == "uniform":
            bound = math.sqrt(3.0 * variance)
            arr[...] = stream.uniform(arr.shape, -bound, bound)
        elif self.distribution == "untruncated_normal":
            arr[...] = math.sqrt(variance) * stream.normal(arr.shape)
        else:
            # the deviation of a standard normal cut at two deviations is 0.8796
            sigma = math.sqrt(variance) / 0.87962566103423978
            arr[...] = _truncated(stream, arr.shape, sigma, 0.0, -2 * sigma, 2 * sigma)


@_named("orthogonal")
class Orthogonal(Initializer):
    """A (semi-)orthogonal random matrix times `gain` (Saxe et al., 2014).

    The axes after the first are merged into one.

    Raises:
        ValueError: raised when used, if there are fewer than two axes.

    Examples:
        >>> from duograph.common.initializer import initializer, Orthogonal
        >>> initializer(Orthogonal(), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        if arr.ndim < 2:
            raise ShapeError(f"Orthogonal: got shape {arr.shape}; wanted at least two axes")
        rows = arr.shape[0]
        columns = arr.size // rows
        drawn = self._random().normal((rows, columns))
        q, r = np.linalg.qr(drawn if rows >= columns else drawn.T)
        q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
        arr[...] = self.gain * (q if rows >= columns else q.T).reshape(arr.shape)


@_named("identity")
class Identity(Initializer):
    """The identity matrix.

    Raises:
        ValueError: raised when used, if there are not two axes.

    Examples:
        >>> from duograph.common.initializer import initializer, Identity
        >>> print(initializer(Identity(), (2, 2)).asnumpy())
        [[1. 0.]
         [0. 1.]]
    """

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ShapeError(f"Identity: got shape {arr.shape}; wanted two axes")
        arr[...] = np.eye(*arr.shape)


@_named("sparse")
class Sparse(Initializer):
    """Normal random numbers with the deviation `sigma`, and zeros.

    In each column, the fraction `sparsity` of the rows, chosen at random, is 0.

    Raises:
        ValueError: raised when used, if there are not two axes.

    Examples:
        >>> from duograph.common.initializer import initializer, Sparse
        >>> initializer(Sparse(0.5), (4, 3)).shape
        (4, 3)
    """

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ShapeError(f"Sparse: got shape {arr.shape}; wanted two axes")
        rows, columns = arr.shape
        stream = self._random()
        values = self.sigma * stream.normal(arr.shape)
        zeros = math.ceil(self.sparsity * rows)
        order = np.argsort(stream.uniform((rows, columns), 0.0, 1.0), axis=0, kind="stable")
        np.put_along_axis(values, order[:zeros], 0.0, axis=0)
        arr[...] = values


@_named("dirac")
class Dirac(Initializer):
    """A convolution weight that passes as many input channels through as it can.

    Raises:
        ValueError: `groups` is below 1; when used, if there are not 3 to 5 axes, or if `groups`
            does not divide the output channels.

    Examples:
        >>> from duograph.common.initializer import initializer, Dirac
        >>> print(initializer(Dirac(), (1, 1, 3)).asnumpy())
        [[[0. 1. 0.]]]
    """

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
            raise ArgumentValueError(f"Dirac: got groups={groups!r}; wanted an int above 0")
        self.groups = groups

    def _initialize(self, arr: Array) -> None:
        if arr.ndim not in (3, 4, 5):
            raise ShapeError(f"Dirac: got shape {arr.shape}; wanted 3, 4 or 5 axes")
        if arr.shape[0] % self.groups:
            raise ShapeError(
                f"Dirac: got {arr.shape[0]} output channels; wanted a multiple of "
                f"groups={self.groups}"
            )
        arr[...] = 0
        per_group = arr.shape[0] // self.groups
        middle = tuple(n // 2 for n in arr.shape[2:])
        for group in range(self.groups):
            for i in range(min(per_group, arr.shape[1])):
                arr[(group * per_group + i, i, *middle)] = 1


def _of_name(init: object, shape: tuple[int, ...]) -> Callable[[Array], object]:
    """Return the function that fills an array for the `init` argument of ``Tensor(init=...)``.

    `init` is a name, a number or an Initializer.
    """
    return initializer(init, shape)._init


install_named_initializers(_of_name)
