"""The loss of connectionist temporal classification (CTC).

Users and the primitive `CTCLoss` call `ctc_loss`. The host turns targets and lengths into index
tables; in compiled functions it does so when the function runs.
Source: Graves et al., Connectionist Temporal Classification, ICML 2006.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import bool_, float32, int32, int64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, LabelRangeError, ShapeError
from ..host_arrays import Array
from ..ir.values import NeedsValue
from ..op import op
from ..runtime_state import staged_builder
from ..tensor import Tensor
from ..types import TensorType
from .comparison import greater, less
from .creation import fill, iota
from .elementwise import maximum, neg
from .exponential import exp, log
from .gather_scatter import gather, gather_elements_by
from .logic import select_by
from .loss import check_reduction
from .movement import concat_by, slice_by, stop_gradient
from .reduction import reduce_mean
from .shape_primitives import reduce_sum, reshape_to, transpose_by

__all__ = ["ctc_loss"]

# The log probability of an impossible path: below that of any real path, and sums do not overflow.
_NEVER = -1e30


@op(composite=True)
def ctc_alpha(log_probs: Tensor, labels: Tensor, skip: Tensor):
    """Composite op: logarithms of the forward variables of CTC, (T, N, L).

    Args:
        log_probs: log probabilities (T, N, C) of T time steps, N batch items and C classes.
        labels: targets (N, L) with a blank before, between and after them.
        skip: bool (N, L), True where a path may come from two states before, without the blank.

    Source: Graves et al., Connectionist Temporal Classification, ICML 2006, equations 6 and 7.
    """
    if not log_probs.dtype.is_floating:
        raise DTypeError(f"ctc_alpha: got {log_probs.dtype.name}; wanted a floating dtype")
    steps, batch, _ = log_probs.shape
    length = labels.shape[1]
    dtype = log_probs.dtype
    never = fill((batch, 2), _NEVER, dtype)
    at: Tensor | None = None
    found = []
    for t in range(steps):
        row = reshape_to(
            slice_by(log_probs, (t, 0, 0), (t + 1, *log_probs.shape[1:]), (1, 1, 1)),
            log_probs.shape[1:],
        )
        emit = gather_elements_by(row, labels, 1)
        if at is None:
            first = less(iota((batch, length), 1, int32), 2)
            at = select_by(first, emit, fill((), _NEVER, dtype))
        else:
            padded = concat_by((never, at), 1)
            one = slice_by(padded, (0, 1), (batch, length + 1), (1, 1))
            two = slice_by(padded, (0, 0), (batch, length), (1, 1))
            two = select_by(skip, two, fill((), _NEVER, dtype))
            top = stop_gradient(maximum(maximum(at, one), two))
            total = exp(at - top) + exp(one - top) + exp(two - top)
            at = top + log(total) + emit
        found.append(reshape_to(at, (1, batch, length)))
    return concat_by(tuple(found), 0)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Array | Sequence[int],
    target_lengths: Tensor | Array | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute the loss of connectionist temporal classification (`mindspore.ops.ctc_loss`).

    Args:
        log_probs: (T, N, C) log probabilities, or (T, C).
        targets: (N, S) classes, or all targets one after another.
        input_lengths, target_lengths: N ints each: Tensor, tuple or list.
        blank: the blank class. A target may have it; it then counts as one more class.
        reduction: ``"mean"`` divides each loss by its target length first.
        zero_infinity: replace infinite losses, of targets that no path reaches, by 0.

    Returns:
        The loss, and the logarithms of the forward variables (N, T, 2 S + 1).

    Raises:
        ValueError: the lengths or shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> log_probs = ms.ops.log_softmax(ms.ops.zeros((2, 1, 2)), -1)
        >>> loss, _ = ms.ops.ctc_loss(log_probs, ms.Tensor([[1]], ms.int32), (2,), (1,))
        >>> print(loss.round(decimals=4))
        0.2877
    """
    name = "ctc_loss"
    check_reduction(name, reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs = reshape_to(log_probs, (log_probs.shape[0], 1, log_probs.shape[1]))
    if log_probs.ndim != 3:
        raise ShapeError(f"{name}: log_probs has shape {log_probs.shape}; wanted (T, N, C)")
    steps, batch, classes = log_probs.shape
    given = (targets, input_lengths, target_lengths)
    longest = targets.shape[1] if targets.ndim == 2 else None

    def prepare(
        targets: Tensor,
        input_lengths: Tensor | Array | Sequence[int],
        target_lengths: Tensor | Array | Sequence[int],
    ) -> tuple[Tensor, ...]:
        lengths = [_lengths(name, x, batch) for x in (input_lengths, target_lengths)]
        table = np.asarray(targets.asnumpy())
        size = (steps, batch, classes, longest)
        found = _tables(name, table, lengths[0], lengths[1], size, blank, single)
        return tuple(map(Tensor, found))

    builder = staged_builder()
    if builder is None:
        labels, skip, last, before, empty, scale = prepare(*given)
    elif longest is None:
        raise NeedsValue(f"{name}: got all targets one after another; their sizes depend on values")
    else:  # compiled: Python computes the tables when the function runs
        wide = 2 * longest + 1
        types = (
            *[TensorType.of((batch, wide), t) for t in (int32, bool_)],
            *[TensorType.of((batch,), t) for t in (int64, int64, bool_, float32)],
        )
        labels, skip, last, before, empty, scale = builder.evaluation.compute_later(
            prepare, given, types, "ctc_tables"
        )
    alpha = ctc_alpha(log_probs, labels, skip)
    loss = _ctc_read(alpha, last, before, empty)
    unreachable = greater(loss, -_NEVER * 0.5)
    limit = 0.0 if zero_infinity else float("inf")
    loss = select_by(unreachable, fill((), limit, loss.dtype), loss)
    if reduction == "mean":
        shown = reduce_mean(loss / scale, (0,), False)
    elif reduction == "sum":
        shown = reduce_sum(loss, (0,), False)
    else:
        shown = reshape_to(loss, ()) if single else loss
    never = less(alpha, fill((), _NEVER * 0.5, alpha.dtype))
    alpha = select_by(never, fill((), float("-inf"), alpha.dtype), alpha)
    return shown, transpose_by(alpha, (1, 0, 2))


def _lengths(name: str, value: object, batch: int) -> Array:
    found = np.asarray(value.asnumpy() if isinstance(value, Tensor) else value).reshape(-1)
    if found.dtype.kind not in "iuf":
        raise ArgumentError(f"{name}: got the lengths {value!r}; wanted ints")
    if found.size != batch:
        raise ArgumentValueError(
            f"{name}: got {found.size} lengths; wanted one for each of {batch}"
        )
    return found.astype(np.int64)


def _tables(
    name: str,
    table: Array,
    in_len: Array,
    out_len: Array,
    size: tuple[int, int, int, int | None],
    blank: int,
    single: bool,
) -> tuple[Array, ...]:
    """Check CTC's targets and lengths; return the index tables and divisors that the loss needs.

    Returns the NumPy arrays (labels, skip, last, before, empty, divisors). `labels` (batch, 2 *
    longest + 1) has the targets with a blank around each. `skip` is True where a path may enter a
    state from two states before, without the blank between. `last` and `before` are the two final
    states of each batch item, as indices into the flattened forward variables. `empty` tells which
    items have no target. `divisors` are the target lengths, at least 1, by which the mean divides.

    Args:
        name: the user's function in errors.
        table: targets, padded (batch, longest) or concatenated (1-d).
        in_len, out_len: number of time steps and of targets of each batch item.
        size: (time steps, batch size, classes, longest target or None for the largest of out_len).
        blank: number of the blank class.
        single: whether the user gave log probabilities without a batch axis.
    """
    steps, batch, classes, longest = size
    if table.ndim == 1 and not (single and table.size == int(out_len.sum())):
        pieces: list[Array] = np.split(table, np.cumsum(out_len)[:-1]) if batch else []
    else:
        pieces = [row[:n] for row, n in zip(table.reshape(batch, -1), out_len, strict=True)]
    if longest is None:
        longest = int(out_len.max(initial=0))
    if (in_len > steps).any() or (in_len < 0).any():
        raise ArgumentValueError(
            f"{name}: got input_lengths {in_len.tolist()}; wanted 0 to {steps}"
        )
    labels = np.full((batch, 2 * longest + 1), blank, np.int32)
    for i, piece in enumerate(pieces):
        if len(piece) != out_len[i]:
            raise ArgumentValueError(
                f"{name}: got {len(piece)} targets for item {i}; wanted target_lengths {out_len[i]}"
            )
        labels[i, 1 : 2 * len(piece) : 2] = piece
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        raise LabelRangeError.of(name, labels[wrong][0], classes)
    skip = np.zeros(labels.shape, bool)
    # only targets differ from the label two states before, blanks never do; a target may be the
    # blank class too, and is then skipped to like any other
    inside = np.arange(2, labels.shape[1]) < 2 * out_len[:, None]
    skip[:, 2:] = inside & (labels[:, 2:] != labels[:, :-2])
    length = labels.shape[1]
    row = np.maximum(in_len - 1, 0) * batch * length + np.arange(batch) * length
    last, before = row + 2 * out_len, row + np.maximum(2 * out_len - 1, 0)
    return labels, skip, last, before, out_len == 0, np.maximum(out_len, 1).astype(np.float32)


def _ctc_read(alpha: Tensor, last: Tensor, before: Tensor, empty: Tensor) -> Tensor:
    """Return each batch item's CTC loss (negative log likelihood) from forward variables `alpha`.

    `last` and `before` are the indices, into the flattened `alpha`, of the two states in which a
    path may end. Where `empty` is True, only `last` counts.
    """
    flat = reshape_to(alpha, (alpha.size,))
    last = gather(flat, last, 0)
    before = select_by(empty, fill((), _NEVER, alpha.dtype), gather(flat, before, 0))
    top = stop_gradient(maximum(last, before))
    return neg(top + log(exp(last - top) + exp(before - top)))
