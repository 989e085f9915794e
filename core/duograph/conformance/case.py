"""The format of a conformance test case, which says how to test one op or public function.

The modules of `cases` list cases; `cases/__init__.py` explains the format by example. A case holds
data only: the test functions decide what to check.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..dtype import ALL, DType, bool_, float32, int64
from ..host_arrays import Array
from ..op import Op

__all__ = [
    "CUBE", "FOUR", "KINDS", "NUMBER", "ROWS", "Oracle", "Array", "Bad", "Make", "OpCase", "Sample",
    "Samples", "binary", "by_shape", "of_op", "reduction", "ternary", "unary",
]  # fmt: skip

Oracle: TypeAlias = Callable[..., Any]  # a NumPy function with the arguments of a case's function

# The kinds of samples. An op needs one sample of each kind that applies to it (test_coverage.py).
KINDS = ("normal", "broadcast", "zero_d", "empty", "odd", "noncontiguous", "nan", "error", "edge")


@dataclasses.dataclass(frozen=True)
class Sample:
    """The arguments of one test call of an op; NumPy arrays among the arguments become Tensors.

    Attributes:
        kind: what the sample tests, one of KINDS; "edge" is for samples that fit no other kind.
        grad: whether to test gradients at this sample; samples of kind nan and empty are never used
            for gradients.
        name: name of the sample in messages; by default its kind.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    kind: str = "normal"
    grad: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Sample: got kind={self.kind!r}; wanted one of {', '.join(KINDS)}")
        if not isinstance(self.args, tuple):
            raise TypeError(f"Sample: got {type(self.args).__name__} for args; wanted a tuple")


@dataclasses.dataclass(frozen=True)
class Bad:
    """A test call that must raise `exception`, with a message in which regex `pattern` is found."""

    args: tuple[object, ...]
    exception: type[BaseException] | tuple[type[BaseException], ...]
    pattern: str
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Make:
    """Factory of random test arrays of one dtype: `make(3, 4)` returns an array of shape (3, 4).

    Values are uniform in [low, high], clipped to the range of the dtype. The default range is -2 to
    2, and -5 to 5 for integers. Of complex values, the real and the imaginary part are
    uniform. Bools are True or False with equal probability.
    """

    def __init__(self, dtype: DType, seed: str = "") -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(zlib.crc32(f"{seed}/{dtype.name}".encode()))

    def __call__(
        self,
        *shape: int,
        low: float | None = None,
        high: float | None = None,
        dtype: DType | None = None,
    ) -> Array:
        dtype = dtype or self.dtype
        if dtype is bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        bound = 5.0 if dtype.is_integer else 2.0
        low = -bound if low is None else low
        high = bound if high is None else high
        if dtype.is_integer:
            info = np.iinfo(dtype.np)
            first = max(int(np.ceil(low)), int(info.min))
            last = min(int(np.floor(high)), int(info.max))
            return np.asarray(self.rng.integers(first, max(first, last), shape, dtype.np, True))
        if dtype.is_complex:
            real, imag = self.rng.uniform(low, high, (2, *shape))
            return np.asarray(real + 1j * imag).astype(dtype.np)
        return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype.np)

    def distinct(self, *shape: int, step: float = 0.25, dtype: DType | None = None) -> Array:
        """Return an array of values in random order, all distinct as far as the dtype allows.

        Floating values are multiples of `step` around 0. Integers are from 0 to 119; they occur
        repeatedly in arrays of more than 120 elements. `dtype` None stands for the dtype of the
        factory.
        """
        dtype = dtype or self.dtype
        size = int(np.prod(shape))
        values = self.rng.permutation(size)
        if dtype.kind in "biu":
            return (values % 120).astype(dtype.np).reshape(shape)
        return ((values - size // 2) * step).astype(dtype.np).reshape(shape)

    def index(self, *shape: int, below: int, low: int = 0, dtype: DType = int64) -> Array:
        """Return an array of random ints from `low` to `below` - 1, for indices in tests."""
        return np.asarray(self.rng.integers(low, below, shape)).astype(dtype.np)

    def strided(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """Return an array of the given shape whose elements are not contiguous in memory.

        It is a transposed view of every second element of a larger array, with values between `low`
        and `high` as in `make(...)`. An array with no axes is contiguous.
        """
        doubled = (*reversed(shape),) if shape else ()
        if not doubled:
            return self(low=low, high=high)
        wide = self(*doubled[:-1], 2 * doubled[-1], low=low, high=high)
        return wide[..., ::2].transpose()

    def special(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """Return an array whose first elements are NaN, both infinities and both zeros.

        The other elements are between `low` and `high`. An array of fewer than five
        elements has only the first of these values, as many as fit.
        """
        out = self(*shape, low=low, high=high)
        flat = out.reshape(-1)
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0]
        flat[: len(values)] = np.array(values[: flat.size]).astype(out.dtype)
        if out.dtype.kind == "c" and flat.size > 6:
            flat[6] = complex(1.0, np.nan)
        return out

    @property
    def inexact(self) -> bool:
        """Whether the dtype of these test arrays is floating or complex (can hold NaN)."""
        return self.dtype.kind in "fc"


Samples = Callable[[Make], Iterable[Sample]]

# Arrays for the calls in `OpCase.errors`.
NUMBER = np.ones((), np.float32)
FOUR = np.ones(4, np.float32)
ROWS = np.ones((2, 3), np.float32)
CUBE = np.ones((2, 3, 4), np.float32)


@dataclasses.dataclass(frozen=True, repr=False)
class OpCase:
    """The samples and checks of one op or public function.

    Attributes:
        function: an Op (`gathering.gather_batch`) or a public function (`ops.clip_by_value`).
        samples: `samples(make)` yields Samples for `make.dtype`; see `unary`, `binary`, `ternary`,
            `reduction`.
        dtypes: dtypes to create samples for; by default all that the op accepts. A shorter list
            needs `why`.
        oracle: NumPy function with the same arguments. By default it is the op's `reference` or,
            for a composite or a function, its body computed with the references of the ops that it
            calls.
        errors: calls that must fail.
        grad: whether to test gradients; a tuple lists the positions of the arrays to differentiate
            with respect to.
        second: whether to test second derivatives too.
        tol: dtype -> tolerance, both relative and absolute, in place of the one in `tolerance.py`;
            needs `why`.
        grad_tol: dtype -> tolerance of gradients, both relative and absolute; needs `why`.
        why: the reason for `tol`, `grad_tol` or fewer `dtypes`.
        without: kinds of samples that do not apply to the op -> the reason.
        name: name of the case in test ids and reports; by default the function's name.
        covers: further ops that this case tests completely, such as the primitive of a function.
    """

    function: Callable[..., object]
    samples: Samples
    dtypes: Sequence[DType] | None = None
    oracle: Oracle | None = None
    errors: Sequence[Bad] = ()
    grad: bool | tuple[int, ...] = True
    second: bool = True
    tol: Mapping[DType, float] = dataclasses.field(default_factory=dict)
    grad_tol: Mapping[DType, float] = dataclasses.field(default_factory=dict)
    why: str = ""
    without: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""
    covers: Sequence[Op] = ()

    def __post_init__(self) -> None:
        if not self.name:
            found = of_op(self.function)
            own = found.name if found is not None else self.function.__name__
            object.__setattr__(self, "name", own)
        if (self.tol or self.grad_tol) and not self.why:
            raise ValueError(f"{self.name}: a tolerance of its own needs a reason in `why`")
        for kind in self.without:
            if kind not in KINDS:
                raise ValueError(f"{self.name}: without names {kind!r}; the kinds are {KINDS}")

    def __repr__(self) -> str:
        return f"<case {self.name}>"

    @property
    def op(self) -> Op | None:
        """The op that this test case is about, or None if its function calls several ops."""
        return of_op(self.function)

    @property
    def takes(self) -> tuple[DType, ...]:
        """The dtypes for which the conformance suite tests this op or function."""
        if self.dtypes is not None:
            return tuple(self.dtypes)
        own = self.op
        if own is None:
            return (float32,)
        if own.dtypes is None or own.promote == "float":  # integers are promoted to float32
            declared = own.dtypes or ALL
            return tuple(d for d in ALL if d in declared or d.kind in "biu")
        return tuple(d for d in ALL if d in own.dtypes)

    @property
    def differentiable(self) -> bool:
        """Whether the conformance suite tests gradients of this op or function."""
        return self.grad is not False and (self.op is None or self.op.differentiable)

    def made(self, dtype: DType) -> list[Sample]:
        """Return the test samples of this case for a dtype, which are the same at each call."""
        return list(self.samples(Make(dtype, self.name)))


def of_op(function: Callable[..., object]) -> Op | None:
    """Return the op that `function` is or wraps; None if it wraps no op or several."""
    if isinstance(function, Op):
        return function
    found = getattr(function, "op", None)
    return found if isinstance(found, Op) else None


# ---- samples of the standard kinds --------------------------------------------------------------


def by_shape(*rows: tuple[Any, ...], **kwargs: object) -> Samples:
    """Return a function that yields one test sample per row; nan rows only for inexact dtypes.

    A row is the kind of sample, the shape of the first operand, and the other positional arguments;
    `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        for kind, shape, *args in rows:
            if kind == "nan" and not make.inexact:
                continue
            array_of = {"nan": make.special, "noncontiguous": make.strided}.get(kind, make)
            yield Sample((array_of(*shape), *args), kwargs, kind)

    return samples


def unary(low: float | None = None, high: float | None = None, **kwargs: object) -> Samples:
    """Return a function that yields test samples for elementwise functions on [low, high].

    `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make(*shape, low=low, high=high)

        yield Sample((x(3, 4),), kwargs)
        yield Sample((x(),), kwargs, "zero_d")
        yield Sample((x(0, 3),), kwargs, "empty")
        yield Sample((x(7, 11, 3),), kwargs, "odd")
        yield Sample((x(1031),), kwargs, "odd", grad=False)  # longer than any vector, with a tail
        yield Sample((make.strided(4, 5, low=low, high=high),), kwargs, "noncontiguous")
        if make.inexact:
            yield Sample((make.special(9, low=low, high=high),), kwargs, "nan")

    return samples


def binary(
    low: float | None = None,
    high: float | None = None,
    *,
    second: tuple[float, float] | None = None,
    scalar: float | int | None = 2,
    **kwargs: object,
) -> Samples:
    """Return a function that yields test samples for broadcasting functions of two tensors.

    `low` and `high` bound the operands' values; `second` is (low, high) of the second operand if it
    differs. `scalar` is a Python number to pass as the first and as the second operand; None is for
    functions that accept only tensors.
    """
    low2, high2 = second or (low, high)

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make(*shape, low=low, high=high)

        def y(*shape: int) -> Array:
            return make(*shape, low=low2, high=high2)

        yield Sample((x(3, 4), y(3, 4)), kwargs)
        yield Sample((x(3, 1, 4), y(2, 1)), kwargs, "broadcast")
        yield Sample((x(1, 5), y(4, 5)), kwargs, "broadcast")
        yield Sample((x(2, 3), y()), kwargs, "broadcast")
        yield Sample((x(), y()), kwargs, "zero_d")
        yield Sample((x(0, 3), y(3)), kwargs, "empty")
        yield Sample((x(7, 13), y(7, 13)), kwargs, "odd")
        yield Sample((x(1031), y(1031)), kwargs, "odd", grad=False)
        strided = make.strided(4, 5, low=low, high=high)
        yield Sample((strided, y(4, 5)), kwargs, "noncontiguous")
        if make.inexact:
            yield Sample((make.special(9, low=low, high=high), y(9)), kwargs, "nan")
            yield Sample((x(9), make.special(9, low=low2, high=high2)), kwargs, "nan")
        if scalar is not None and make.dtype is not bool_:
            yield Sample((x(4, 3), scalar), kwargs, "edge", name="number on the right")
            yield Sample((scalar, y(4, 3)), kwargs, "edge", name="number on the left")

    return samples


def ternary(low: float | None = None, high: float | None = None, **kwargs: object) -> Samples:
    """Return a function that yields test samples for broadcasting functions of three tensors.

    `low` and `high` bound the operands' values; `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make(*shape, low=low, high=high)

        yield Sample((x(3, 4), x(3, 4), x(3, 4)), kwargs)
        yield Sample((x(3, 1, 4), x(2, 1), x(4)), kwargs, "broadcast")
        yield Sample((x(), x(), x()), kwargs, "zero_d")
        yield Sample((x(0, 3), x(3), x(1, 3)), kwargs, "empty")
        yield Sample((x(7, 13), x(7, 13), x(7, 13)), kwargs, "odd")
        strided = make.strided(4, 5, low=low, high=high)
        yield Sample((strided, x(4, 5), x(4, 5)), kwargs, "noncontiguous")
        if make.inexact:
            yield Sample((make.special(9, low=low, high=high), x(9), x(9)), kwargs, "nan")

    return samples


def reduction(
    low: float | None = None,
    high: float | None = None,
    *,
    axis: str = "axis",
    keepdims: str | None = "keep_dims",
    several: bool = True,
    empty: bool = True,
    distinct: bool = False,
    primitive: bool = False,
    **kwargs: object,
) -> Samples:
    """Return a function that yields test samples for a reduction, over all kinds of axes.

    Args:
        axis, keepdims: names of the tested function's arguments; `keepdims` is None if there is no
            such argument.
        several: whether the function accepts a tuple of axes.
        empty: whether an axis of length 0 may be reduced.
        distinct: whether to make all values different, for functions whose result for ties is not
            defined.
        primitive: whether the function is a primitive, whose axes are tuples of non-negative ints
            and which requires both arguments.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make.distinct(*shape) if distinct else make(*shape, low=low, high=high)

        def call(array: Array, at: Any, keep: bool = False, kind: str = "normal") -> Sample:
            where = dict(kwargs)
            if primitive:
                if at is None:
                    at = tuple(range(array.ndim))
                at = (at,) if isinstance(at, int) else at
                at = tuple(i % array.ndim for i in at)
            if at is not None:
                where[axis] = at
            if keepdims is not None and (keep or primitive):
                where[keepdims] = keep
            return Sample((array,), where, kind)

        yield call(x(3, 4), 1)
        yield call(x(3, 4, 2), 0, keepdims is not None)
        yield call(x(3, 4), None)
        yield call(x(2, 3, 4), -2)
        if several:
            yield call(x(2, 3, 4), (0, 2))
        if several or not primitive:
            yield call(x(), None, kind="zero_d")
        yield call(x(0, 3), 1, kind="empty")  # nothing to reduce, an empty result
        if empty:
            yield call(x(0, 3), 0, kind="empty")
        yield call(x(7, 13), 0, kind="odd")
        yield call(x(5, 1031), 1, kind="odd")
        yield call(make.strided(4, 5, low=low, high=high), 0, kind="noncontiguous")
        if make.inexact:
            yield call(make.special(9, 2, low=low, high=high), 0, kind="nan")

    return samples
