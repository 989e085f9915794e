"""Ops on sequences of labels: CTC decoding, edit distance, repeated n-grams.

Users call them. Functions whose result sizes depend on values run on the host.
"""

from __future__ import annotations

import numpy as np

from ..dtype import float32, int32, largest_finite
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..host_arrays import Array
from ..tensor import Tensor
from . import ctc
from .creation import fill
from .creation_functions import one_hot_mask
from .logic import select_by
from .primitive import Primitive

__all__ = ["CTCGreedyDecoder", "CTCLossV2", "EditDistance", "NoRepeatNGram", "ctc_greedy_decoder"]


def ctc_greedy_decoder(
    inputs: Tensor, sequence_length: Tensor, merge_repeated: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Decode by the best class of every step (`mindspore.ops.ctc_greedy_decoder`), on the host.

    Args:
        inputs: (T, N, C) logits; the last class is the blank.
        sequence_length: int32 (N,), the number of steps of each item.
        merge_repeated: whether a class that repeats without a blank between counts once.

    Returns:
        The decoded classes as a sparse matrix: int64 indices (n, 2), int64 values (n,), int64 shape
        (2,); and (N, 1) sums of the largest logits, negated.

    Raises:
        ValueError: a length beyond T, or shapes that do not match.

    Examples:
        >>> import duograph as ms
        >>> logits = ms.Tensor([[[0.6, 0.4, 0.2]], [[0.0, 0.6, 0.0]]], ms.float32)
        >>> found = ms.ops.ctc_greedy_decoder(logits, ms.Tensor([2], ms.int32))
        >>> print(found[1], found[3])
        [0 1] [[-1.2]]
    """
    if inputs.ndim != 3 or sequence_length.shape != inputs.shape[1:2]:
        raise ShapeError(
            f"ctc_greedy_decoder: got inputs {inputs.shape} and sequence_length "
            f"{sequence_length.shape}; wanted (T, N, C) and (N,)"
        )
    logits, lengths = inputs.asnumpy(), sequence_length.asnumpy()
    steps, batch, classes = logits.shape
    if lengths.size and (lengths.max() > steps or lengths.min() < 0):
        raise ArgumentValueError(
            f"ctc_greedy_decoder: got sequence_length {lengths.tolist()}; wanted 0 to {steps}"
        )
    best = logits.argmax(2)
    indices, values, longest = [], [], 0
    scores = np.zeros((batch, 1), logits.dtype)
    for item in range(batch):
        path = best[: lengths[item], item]
        scores[item, 0] = -logits[: lengths[item], item].max(1).sum()
        fresh = np.ones(len(path), bool)
        if merge_repeated:
            fresh[1:] = path[1:] != path[:-1]
        labels = path[fresh & (path != classes - 1)]
        indices += [(item, k) for k in range(len(labels))]
        values += labels.tolist()
        longest = max(longest, len(labels))
    return (
        Tensor(np.array(indices, np.int64).reshape(-1, 2)),
        Tensor(np.array(values, np.int64)),
        Tensor(np.array([batch, longest], np.int64)),
        Tensor(scores, inputs.dtype),
    )


class CTCGreedyDecoder(Primitive):
    """Greedy CTC decoding: `CTCGreedyDecoder(merge_repeated=True)(inputs, sequence_length)`.

    See `ops.ctc_greedy_decoder`.
    """

    def __init__(self, merge_repeated: bool = True) -> None:
        super().__init__()
        if not isinstance(merge_repeated, bool):
            raise ArgumentError(f"CTCGreedyDecoder: got {merge_repeated!r}; wanted True or False")
        self.merge_repeated = merge_repeated

    def __call__(
        self, inputs: Tensor, sequence_length: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return (indices, values, shape, scores) of the decoded classes.

        The first three are a sparse matrix; see `ops.ctc_greedy_decoder`.
        """
        return ctc_greedy_decoder(inputs, sequence_length, self.merge_repeated)


class CTCLossV2(Primitive):
    """CTC loss: the losses (N,) and the logarithms of the forward variables of `ctc_loss`.

    `CTCLossV2(blank=0, reduction="none", zero_infinity=False)(log_probs, targets, input_lengths,
    target_lengths)`.
    """

    def __init__(
        self, blank: int = 0, reduction: str = "none", zero_infinity: bool = False
    ) -> None:
        super().__init__()
        if reduction != "none":
            raise ArgumentValueError(f"CTCLossV2: got reduction={reduction!r}; wanted 'none'")
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def __call__(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return (losses, logarithms of the forward variables); see `ops.ctc_loss`."""
        return ctc.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, "none",
            self.zero_infinity,
        )  # fmt: skip


def _rows(indices: Tensor, values: Tensor) -> dict[tuple[int, ...], list[float]]:
    """Return the sequences of a sparse tensor, keyed by the indices of all axes but the last."""
    found: dict[tuple[int, ...], list[float]] = {}
    for index, value in zip(indices.asnumpy().tolist(), values.asnumpy().tolist(), strict=True):
        found.setdefault(tuple(index[:-1]), []).append(value)
    return found


def _levenshtein(a: list[float], b: list[float]) -> int:
    """Return the least number of insertions, deletions and replacements from `a` to `b`."""
    costs = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, costs[0] = costs[0], i
        for j, y in enumerate(b, 1):
            diagonal, costs[j] = costs[j], min(costs[j] + 1, costs[j - 1] + 1, diagonal + (x != y))
    return costs[-1]


class EditDistance(Primitive):
    """Levenshtein distances of sequences in sparse tensors, computed on the host.

    `EditDistance(normalize=True)(hypothesis_indices, hypothesis_values, hypothesis_shape,
    truth_indices, truth_values, truth_shape)`. With `normalize`, a distance is divided by the
    length of the true sequence.

    Examples:
        >>> import duograph as ms
        >>> place = ms.Tensor([[0, 0], [0, 1]])
        >>> shape = ms.Tensor([1, 2])
        >>> first, second = ms.Tensor([1, 2]), ms.Tensor([1, 3])
        >>> print(ms.ops.EditDistance()(place, first, shape, place, second, shape))
        [0.5]
    """

    def __init__(self, normalize: bool = True) -> None:
        super().__init__()
        if not isinstance(normalize, bool):
            raise ArgumentError(f"EditDistance: got {normalize!r}; wanted True or False")
        self.normalize = normalize

    def __call__(
        self,
        hypothesis_indices: Tensor,
        hypothesis_values: Tensor,
        hypothesis_shape: Tensor,
        truth_indices: Tensor,
        truth_values: Tensor,
        truth_shape: Tensor,
    ) -> Tensor:
        """Return the float32 edit distance of each hypothesis sequence to its true sequence.

        The operands are two sparse tensors as (indices, values, shape), whose last axis runs along
        the sequences. The result has the larger of the two sizes of each other axis. With the
        constructor's `normalize`, a distance is divided by the length of the true sequence.
        """
        sizes = [np.asarray(t.asnumpy()) for t in (hypothesis_shape, truth_shape)]
        if sizes[0].shape != sizes[1].shape:
            raise ShapeError(
                f"EditDistance: got shapes {sizes[0].tolist()} and {sizes[1].tolist()}; wanted as "
                "many axes"
            )
        shape = tuple(np.maximum(*sizes)[:-1].tolist())
        mine = _rows(hypothesis_indices, hypothesis_values)
        truth = _rows(truth_indices, truth_values)
        found: Array = np.zeros(shape, np.float32)
        for place in np.ndindex(shape):
            a, b = mine.get(place, []), truth.get(place, [])
            distance = float(_levenshtein(a, b))
            if self.normalize and distance:
                distance = distance / len(b) if b else float("inf")
            found[place] = distance
        return Tensor(found, float32)


class NoRepeatNGram(Primitive):
    """Scores that forbid classes that would repeat an n-gram.

    `NoRepeatNGram(ngram_size=1)(state_seq, log_probs)`.

    `state_seq` (N, beams, L) has the classes chosen so far, `log_probs` (N, beams, C) the scores of
    the next class. The score of a class becomes the least finite number if the last `ngram_size` -
    1 classes, followed by it, already occur in the sequence.

    Examples:
        >>> import duograph as ms
        >>> state = ms.Tensor([[[1, 2, 1]]], ms.int32)
        >>> scores = ms.ops.NoRepeatNGram(2)(state, ms.ops.ones((1, 1, 4), ms.float32))
        >>> print(scores > 0)
        [[[ True  True False  True]]]
    """

    def __init__(self, ngram_size: int = 1) -> None:
        super().__init__()
        if isinstance(ngram_size, bool) or not isinstance(ngram_size, int) or ngram_size < 1:
            raise ArgumentValueError(f"NoRepeatNGram: got {ngram_size!r}; wanted 1 or more")
        self.ngram_size = ngram_size

    def __call__(self, state_seq: Tensor, log_probs: Tensor) -> Tensor:
        """Return `log_probs` with the least finite number for classes that would repeat an n-gram.

        `state_seq` (N, beams, L) has the classes chosen so far, `log_probs` (N, beams, C) the
        scores of the next class. A class would repeat an n-gram if the last `ngram_size` - 1
        classes, followed by it, already occur in the sequence.
        """
        if state_seq.ndim != 3 or log_probs.ndim != 3 or state_seq.shape[:2] != log_probs.shape[:2]:
            raise ShapeError(
                f"NoRepeatNGram: got {state_seq.shape} and {log_probs.shape}; wanted (N, beams, L) "
                "and (N, beams, C)"
            )
        length, before = state_seq.shape[2], self.ngram_size - 1
        count = length - before
        if count < 1:
            return log_probs
        last = state_seq[:, :, length - before :]
        banned = one_hot_mask(state_seq[:, :, before:], log_probs.shape[2], 3)
        hits = fill((*state_seq.shape[:2], count), 1, int32)
        for k in range(before):
            hits = hits * (state_seq[:, :, k : k + count] == last[:, :, k : k + 1]).astype(int32)
        forbidden = (banned.astype(int32) * hits.expand_dims(-1)).sum(2) > 0
        least = -largest_finite(log_probs.dtype)
        return select_by(forbidden, fill((), least, log_probs.dtype), log_probs)
