"""The table of `mint.distributed` and `comm_func`: what each call gives on every rank.

`python distributed_calls.py` checks all of it on the ranks that a launcher started. The values are
small integers, so that every dtype holds every result exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import duograph as ms
import numpy as np
from duograph import mint, ops
from duograph.communication import comm_func as F
from duograph.communication import get_group_size, get_rank

D = mint.distributed
DTYPES = (ms.float32, ms.float16, ms.bfloat16, ms.float64, ms.int32, ms.int8, ms.uint8, ms.bool_,
          ms.complex64)  # fmt: skip
MODES = ("eager", "async", "compiled")
Arrays = list[np.ndarray]


def own(rank: int, *shape: int) -> np.ndarray:
    """What a rank contributes: 0, 1 or 2 everywhere, and always the same."""
    return np.random.default_rng([rank, *shape]).integers(0, 3, shape)


class Case(NamedTuple):
    """A call.

    Attributes:
        shape: of what each rank contributes, of (rank, size).
        call: of (x, a Call) with the results.
        expected: of (what all ranks contribute, rank) the same results.
        real: the call has no meaning for bool and complex dtypes.
    """

    shape: Callable[[int, int], tuple[int, ...]]
    call: Callable[..., list[ms.Tensor]]
    expected: Callable[[Arrays, int], Arrays]
    real: bool = False


class Call(NamedTuple):
    """How a collective is called, and what it may ask."""

    rank: int
    size: int
    asynchronous: bool

    def done(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Call a function of `mint.distributed`, and wait for its handle."""
        handle = function(*arguments, **options, async_op=self.asynchronous)
        assert (handle is not None) is self.asynchronous
        if handle is not None:
            handle.wait()

    def returned(self, function: Callable[..., Any], *arguments: Any) -> list[ms.Tensor]:
        """Call a function of `comm_func`, wait for its handle, and return its result."""
        out, handle = function(*arguments, async_op=self.asynchronous)
        assert (handle is not None) is self.asynchronous
        if handle is not None:
            handle.wait()
        return [out]


def blank(*shape: int, like: ms.Tensor) -> ms.Tensor:
    return ops.zeros(shape, like.dtype)


def in_place(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """A call that writes a copy of x."""

    def call(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
        y = x.copy()
        how.done(function, y, *arguments, **options)
        return [y]

    return call


def into(
    function: Callable[..., Any], shape: Callable[..., tuple[int, ...]], **options: Any
) -> Callable[..., Any]:
    """A call that writes a new Tensor of a shape of (x, call)."""

    def call(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
        out = blank(*shape(x, how), like=x)
        how.done(function, out, x, **{k: v(how) for k, v in options.items()})
        return [out]

    return call


def total(values: Arrays) -> np.ndarray:
    return np.sum(values, 0)


def parts(x: np.ndarray, lengths: list[int]) -> Arrays:
    return np.split(x, np.cumsum(lengths)[:-1])


def gathered(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    out = [blank(*(r + 1, 2), like=x) for r in range(how.size)]
    how.done(D.all_gather, out, x)
    return out


def gathered_at_last(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    last = how.size - 1
    out = [blank(*x.shape, like=x) for _ in range(how.size)] if how.rank == last else []
    how.done(D.gather, x, out, last)
    return out


def scattered(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    out = blank(3, like=x)
    rows = [x[i].copy() for i in range(how.size)] if how.rank == 0 else []
    how.done(D.scatter, out, rows)
    return [out]


def list_reduced(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    lengths = list(range(how.size))
    rows = list(ops.split(x, lengths)) if how.size > 1 else [x]
    out = blank(lengths[how.rank], 2, like=x)
    how.done(D.reduce_scatter, out, rows)
    return [out]


def exchanged(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    """Rank r sends r + s elements to rank s."""
    inputs = [x[: how.rank + s].copy() for s in range(how.size)]
    out = [blank(r + how.rank, like=x) for r in range(how.size)]
    how.done(D.all_to_all, out, inputs)
    return out


def exchanged_shapes(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    inputs = [x[: how.rank + s].copy() for s in range(how.size)]
    shapes = [(r + how.rank,) for r in range(how.size)]
    out, handle = F.all_to_all_with_output_shape(shapes, inputs, async_op=how.asynchronous)
    if handle is not None:
        handle.wait()
    return list(out)


def around(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    """Every rank sends to the next one, and receives from the one before, all at once."""
    if how.size == 1:
        return [x.copy()]
    after, before = (how.rank + 1) % how.size, (how.rank - 1) % how.size
    out = blank(*x.shape, like=x)
    handles = [D.irecv(out, before), D.isend(x, after)]
    for handle in handles:
        handle.wait()
    return [out]


def around_in_batch(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    if how.size == 1:
        return [x.copy(), x.copy()]
    after, before = (how.rank + 1) % how.size, (how.rank - 1) % how.size
    out = blank(*x.shape, like=x)
    batch = [D.P2POp("isend", x, after), D.P2POp(D.irecv, out, before)]
    for handle in D.batch_isend_irecv(batch):
        handle.wait()
    _, new = F.batch_isend_irecv([
        F.P2POp("isend", x, after), F.P2POp("irecv", tuple(x.shape), before, recv_dtype=x.dtype)
    ])  # fmt: skip
    return [out, new]


def passed_on(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    """Rank 0 sends two Tensors to the last one, the second first by tag."""
    last = how.size - 1
    if last == 0 or 0 < how.rank < last:
        return []
    if how.rank == 0:
        D.send(x, last, tag=5)
        F.send(x * x, last, tag=6)
        return []
    second = F.recv(blank(*x.shape, like=x), 0, tag=6)
    first = blank(*x.shape, like=x)
    assert D.recv(first, 0, tag=5) == 0
    return [first, second]


def waited(x: ms.Tensor, how: Call) -> list[ms.Tensor]:
    how.done(D.barrier)
    F.barrier()
    return [x.copy()]


def fixed(*shape: int) -> Callable[[int, int], tuple[int, ...]]:
    return lambda rank, size: shape


def uneven(rank: int, size: int) -> tuple[int, ...]:
    return (rank + 1, 2)


def last_only(values: Arrays, rank: int) -> bool:
    return rank == len(values) - 1


NOTHING = np.zeros(1, np.int64)  # what comm_func returns where the result has no meaning
CASES: dict[str, Case] = {
    "all_reduce": Case(fixed(2, 3), in_place(D.all_reduce), lambda v, r: [total(v)]),
    "all_reduce of 0-d": Case(fixed(), in_place(D.all_reduce), lambda v, r: [total(v)]),
    "all_reduce of nothing": Case(fixed(0, 2), in_place(D.all_reduce), lambda v, r: [total(v)]),
    "all_reduce max": Case(
        fixed(5), in_place(D.all_reduce, "max"), lambda v, r: [np.max(v, 0)], real=True
    ),
    "all_reduce min": Case(
        fixed(5), in_place(D.all_reduce, "min"), lambda v, r: [np.min(v, 0)], real=True
    ),
    "all_reduce prod": Case(fixed(5), in_place(D.all_reduce, "prod"), lambda v, r: [np.prod(v, 0)]),
    "all_reduce above the limit of small ones": Case(
        fixed(33001), in_place(D.all_reduce), lambda v, r: [total(v)]
    ),
    "reduce": Case(
        fixed(3), in_place(D.reduce, 0), lambda v, r: [v[r] if r else total(v)]
    ),
    "reduce above the limit of small ones": Case(
        fixed(33001), in_place(D.reduce, 0, "max"),
        lambda v, r: [v[r] if r else np.max(v, 0)], real=True,
    ),
    "broadcast": Case(fixed(2, 2), in_place(D.broadcast, 0), lambda v, r: [v[0]]),
    "broadcast of 0-d": Case(fixed(), in_place(D.broadcast, 0), lambda v, r: [v[0]]),
    "all_gather_into_tensor": Case(
        fixed(2, 3), into(D.all_gather_into_tensor, lambda x, c: (2 * c.size, 3)),
        lambda v, r: [np.concatenate(v)],
    ),
    "all_gather_into_tensor_uneven": Case(
        uneven,
        into(
            D.all_gather_into_tensor_uneven, lambda x, c: (c.size * (c.size + 1) // 2, 2),
            output_split_sizes=lambda c: list(range(1, c.size + 1)),
        ),
        lambda v, r: [np.concatenate(v)],
    ),
    "all_gather of several shapes": Case(uneven, gathered, lambda v, r: v),
    "gather": Case(fixed(3), gathered_at_last, lambda v, r: v if last_only(v, r) else []),
    "gather of 0-d": Case(fixed(), gathered_at_last, lambda v, r: v if last_only(v, r) else []),
    "scatter": Case(lambda r, n: (n, 3), scattered, lambda v, r: [v[0][r]]),
    "reduce_scatter": Case(
        lambda r, n: (n * (n - 1) // 2, 2), list_reduced,
        lambda v, r: [parts(total(v), list(range(len(v))))[r]],
    ),
    "reduce_scatter_tensor": Case(
        lambda r, n: (2 * n, 3), into(D.reduce_scatter_tensor, lambda x, c: (2, 3)),
        lambda v, r: [parts(total(v), [2] * len(v))[r]],
    ),
    "reduce_scatter_tensor_uneven": Case(
        lambda r, n: (n * (n - 1) // 2, 2),
        into(
            D.reduce_scatter_tensor_uneven, lambda x, c: (c.rank, 2),
            input_split_sizes=lambda c: list(range(c.size)),
        ),
        lambda v, r: [parts(total(v), list(range(len(v))))[r]],
    ),
    "all_to_all": Case(
        fixed(8), exchanged, lambda v, r: [x[: s + r] for s, x in enumerate(v)]
    ),
    "all_to_all_single": Case(
        lambda r, n: (2 * n, 2), into(D.all_to_all_single, lambda x, c: (2 * c.size, 2)),
        lambda v, r: [np.concatenate([x[2 * r : 2 * r + 2] for x in v])],
    ),
    "all_to_all_single uneven": Case(
        lambda r, n: (r * n, 2),
        into(
            D.all_to_all_single, lambda x, c: (c.size * (c.size - 1) // 2, 2),
            output_split_sizes=lambda c: list(range(c.size)),
            input_split_sizes=lambda c: [c.rank] * c.size,
        ),
        lambda v, r: [np.concatenate([x[s * r : s * r + s] for s, x in enumerate(v)])],
    ),
    "barrier": Case(fixed(2), waited, lambda v, r: [v[r]]),
    "isend and irecv": Case(fixed(2), around, lambda v, r: [v[r - 1]]),
    "large messages at once": Case(fixed(50001), around, lambda v, r: [v[r - 1]]),
    "batch_isend_irecv": Case(fixed(3, 1), around_in_batch, lambda v, r: [v[r - 1]] * 2),
    "send and recv": Case(
        fixed(2), passed_on,
        lambda v, r: [v[0], v[0] * v[0]] if last_only(v, r) and r else [],
    ),
    "comm_func.all_reduce": Case(
        fixed(3), lambda x, c: c.returned(F.all_reduce, x, "sum"), lambda v, r: [total(v)]
    ),
    "comm_func.all_gather_into_tensor": Case(
        fixed(2, 1), lambda x, c: c.returned(F.all_gather_into_tensor, x),
        lambda v, r: [np.concatenate(v)],
    ),
    "comm_func.reduce_scatter_tensor": Case(
        lambda r, n: (2 * n, 1), lambda x, c: c.returned(F.reduce_scatter_tensor, x),
        lambda v, r: [parts(total(v), [2] * len(v))[r]],
    ),
    "comm_func.reduce": Case(
        fixed(2), lambda x, c: [F.reduce(x, 0)], lambda v, r: [NOTHING if r else total(v)]
    ),
    "comm_func.broadcast": Case(
        fixed(), lambda x, c: [F.broadcast(x, c.size - 1)], lambda v, r: [v[-1]]
    ),
    "comm_func.gather_into_tensor": Case(
        fixed(2, 2), lambda x, c: [F.gather_into_tensor(x)],
        lambda v, r: [NOTHING if r else np.concatenate(v)],
    ),
    "comm_func.scatter_tensor": Case(
        lambda r, n: (2 * n,), lambda x, c: [F.scatter_tensor(x, 0)],
        lambda v, r: [v[0][2 * r : 2 * r + 2]],
    ),
    "comm_func.all_to_all_with_output_shape": Case(
        fixed(8), exchanged_shapes, lambda v, r: [x[: s + r] for s, x in enumerate(v)]
    ),
    "comm_func.all_to_all_single_with_output_shape": Case(
        lambda r, n: (n, 2),
        lambda x, c: c.returned(F.all_to_all_single_with_output_shape, x.shape, x),
        lambda v, r: [np.stack([x[r] for x in v])],
    ),
}  # fmt: skip


def check(name: str, mode: str, dtype: Any) -> None:
    """Run a case on this rank; raise an AssertionError if a result is another one."""
    case = CASES[name]
    call = Call(get_rank(), get_group_size(), mode == "async")
    kind = np.bool_ if dtype is ms.bool_ else np.int64
    values = [own(r, *case.shape(r, call.size)).astype(kind) for r in range(call.size)]
    x = ms.Tensor(values[call.rank]).astype(dtype)

    def run(x: ms.Tensor) -> list[ms.Tensor]:
        return case.call(x, call)

    found = (ms.jit(run) if mode == "compiled" else run)(x)
    expected = case.expected(values, call.rank)
    assert len(found) == len(expected), (name, mode)
    for out, wanted in zip(found, expected, strict=True):
        assert out.dtype is dtype, (name, mode, out.dtype)
        wide = out.astype(ms.complex64 if dtype is ms.complex64 else ms.int64).asnumpy()
        np.testing.assert_array_equal(
            wide, wanted.astype(kind), f"{name}, {mode}, {dtype}", strict=dtype is not ms.complex64
            and dtype is not ms.bool_,
        )  # fmt: skip


def dtypes_of(name: str, mode: str) -> Iterator[Any]:
    """The dtypes for which a case has a meaning; all of them in eager mode, which has the copies
    from and to the host that depend on the dtype in common with the other modes.
    """
    for dtype in DTYPES if mode == "eager" else DTYPES[:3]:
        if not CASES[name].real or dtype not in (ms.bool_, ms.complex64):
            yield dtype


def main() -> None:
    """Check all cases on the ranks of a launcher."""
    for name in CASES:
        for mode in MODES:
            for dtype in dtypes_of(name, mode):
                check(name, mode, dtype)


if __name__ == "__main__":
    main()
