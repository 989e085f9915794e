"""`Symbol`, with which users describe a size that varies between calls.

It stands in the shape of a placeholder Tensor, for `set_inputs` and `input_signature`.
`compiler.signature` reads the Symbols. The module must not import tensors.
"""

from __future__ import annotations

from .errors import ArgumentError, ArgumentValueError

__all__ = ["Symbol"]


class Symbol:
    """A size of a Tensor that varies between calls, in the shape of a placeholder
    (`mindspore.Symbol`).

    Args:
        max: the largest size, where it is greater than `min`; 0 is no limit.
        min: the smallest size, at least 1.
        divisor, remainder: the size is ``divisor * n + remainder`` for an int n of at least 1, or
            at least 0 if there is a remainder.
        unique: whether all axes described by this object have the same size in each call.

    Raises:
        TypeError: a number is no int; `unique` is no bool; an argument is unknown.
        ValueError: `min` or `divisor` is not positive; `remainder` is not in [0, divisor).

    Examples:
        >>> import duograph as ms
        >>> length = ms.Symbol(max=64, divisor=8)
        >>> x = ms.Tensor(shape=[length], dtype=ms.float32)
        >>> f = ms.jit(lambda x: x.sum(0), input_signature=x)
        >>> print(f(ms.ops.ones(16)), f(ms.ops.ones(24)), f.cache_info().misses)
        16.0 24.0 1
    """

    __slots__ = ("max", "min", "divisor", "remainder", "unique")

    def __init__(
        self,
        max: int = 0,
        min: int = 1,
        divisor: int = 1,
        remainder: int = 0,
        unique: bool = False,
        **kwargs: object,
    ) -> None:
        if kwargs:
            raise ArgumentError(f"Symbol: got the unknown argument {next(iter(kwargs))!r}")
        for name, value in (
            ("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)
        ):  # fmt: skip
            if not isinstance(value, int) or isinstance(value, bool):
                raise ArgumentError(f"Symbol: got {name}={value!r}; wanted an int")
        if not isinstance(unique, bool):
            raise ArgumentError(f"Symbol: got unique={unique!r}; wanted True or False")
        if min < 1 or divisor < 1:
            raise ArgumentValueError(
                f"Symbol: got min={min} and divisor={divisor}; wanted at least 1"
            )
        if not 0 <= remainder < divisor:
            raise ArgumentValueError(
                f"Symbol: got remainder={remainder}; wanted 0 to {divisor - 1}, below the divisor"
            )
        self.max, self.min, self.divisor = max, min, divisor
        self.remainder, self.unique = remainder, unique

    @property
    def limit(self) -> int | None:
        """The largest size that is allowed, or None if there is no limit."""
        return self.max if self.max > self.min else None

    def accepts(self, size: int) -> bool:
        """Return whether an axis that this Symbol describes may have the given size."""
        in_range = self.min <= size and (self.limit is None or size <= self.limit)
        return in_range and size % self.divisor == self.remainder

    def __repr__(self) -> str:
        parts = [f"min={self.min}"] if self.min != 1 else []
        parts += [] if self.limit is None else [f"max={self.limit}"]
        parts += [f"divisor={self.divisor}"] if self.divisor != 1 else []
        parts += [f"remainder={self.remainder}"] if self.remainder else []
        parts += ["unique=True"] if self.unique else []
        return f"Symbol({', '.join(parts)})"
