"""SampledSoftmaxLoss: approximates softmax cross entropy over many classes by a random sample.

`nn` exports it, for training. It computes the logits of the right classes and of the sampled ones
only, so that the cost does not grow with the number of classes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import ops
from ...dtype import int32, int64
from ...errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ...tensor import Tensor
from .. import _check
from .base import LossBase, reduce

__all__ = ["SampledSoftmaxLoss"]


class SampledSoftmaxLoss(LossBase):
    """Softmax cross entropy over the right classes and a random sample of the other classes
    (`mindspore.nn.SampledSoftmaxLoss`).

    The logarithm of the expected number of draws of a class is subtracted from its logit (Jean et
    al., 2015). The target probability is divided equally among the right classes.

    Args:
        num_sampled: number of classes to draw.
        num_classes: number of all classes.
        num_true: number of right classes of each row.
        sampled_values: what a sampler such as `ops.uniform_candidate_sampler` returned: drawn
            classes (num_sampled,), expected counts of the right ones (N, num_true) and of the drawn
            ones (num_sampled,). By default `ops.uniform_candidate_sampler` draws unique classes at
            every call.
        remove_accidental_hits: whether to draw no right class; used only without `sampled_values`.
        seed: non-negative int, see `ops.uniform_candidate_sampler`; used only without
            `sampled_values`.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Inputs: weights (num_classes, D) and biases (num_classes,), float; labels of int32 or int64,
        (N, num_true), or (N,) for one; logits (N, D), float: the features that the weights
        multiply.

    Outputs: losses (N,) for the reduction ``"none"``, else a number.

    Raises:
        TypeError: labels of another dtype, or an argument of another type.
        ValueError: `num_sampled` or `num_true` above `num_classes`, or inputs of other shapes.
        IndexError: a class outside the range.

    Examples:
        >>> import duograph as ms
        >>> loss = ms.nn.SampledSoftmaxLoss(num_sampled=2, num_classes=3)
        >>> weights, biases = ms.ops.ones((3, 4)), ms.ops.zeros(3)
        >>> print(loss(weights, biases, ms.Tensor([0, 2]), ms.ops.ones((2, 4))).shape)
        (2,)
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Sequence[Tensor] | None = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        owner = "SampledSoftmaxLoss"
        self.num_classes = _check.positive_int(owner, "num_classes", num_classes)
        self.num_sampled = _at_most(owner, "num_sampled", num_sampled, num_classes)
        self.num_true = _at_most(owner, "num_true", num_true, num_classes)
        self.seed = _check.non_negative_int(owner, "seed", seed)
        self.remove_accidental_hits = _check.boolean(
            owner, "remove_accidental_hits", remove_accidental_hits
        )
        if sampled_values is not None:
            if not isinstance(sampled_values, (list, tuple)):
                raise ArgumentError(
                    f"{owner}: got sampled_values of {type(sampled_values).__name__}; wanted a "
                    "tuple of three Tensors"
                )
            if len(sampled_values) != 3:
                raise ArgumentValueError(
                    f"{owner}: got {len(sampled_values)} sampled_values; wanted three Tensors"
                )
            for value in sampled_values:
                _check.instance(owner, "sampled_values", value, Tensor)
        self.sampled_values = sampled_values

    def construct(self, weights: Tensor, biases: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        inputs = {"weights": weights, "biases": biases, "labels": labels, "logits": logits}
        for name, value in inputs.items():
            _check.instance("SampledSoftmaxLoss", name, value, Tensor)
        if labels.dtype not in (int32, int64):
            raise DTypeError(
                f"SampledSoftmaxLoss: got labels of {labels.dtype}; wanted int32 or int64"
            )
        if labels.size != logits.shape[0] * self.num_true:
            raise ShapeError(
                f"SampledSoftmaxLoss: got labels of shape {labels.shape} for {logits.shape[0]} "
                f"rows of logits; wanted {self.num_true} a row"
            )
        labels = labels.reshape(-1, self.num_true)
        if self.sampled_values is None:
            sampled, expected_true, expected = ops.uniform_candidate_sampler(
                labels, self.num_true, self.num_sampled, True, self.num_classes, self.seed,
                self.remove_accidental_hits,
            )  # fmt: skip
        else:
            sampled, expected_true, expected = self.sampled_values
        own = (logits.expand_dims(1) * ops.gather(weights, labels, 0)).sum(-1)
        own = own + ops.gather(biases, labels, 0) - ops.log(expected_true)
        others = ops.matmul(logits, ops.gather(weights, sampled, 0).T)
        others = others + ops.gather(biases, sampled, 0) - ops.log(expected)
        log_p = ops.log_softmax(ops.concat((own, others), 1), 1)
        return reduce(-log_p[:, : self.num_true].mean(1), self.reduction)


def _at_most(owner: str, name: str, value: object, most: int) -> int:
    number = _check.positive_int(owner, name, value)
    if number > most:
        raise ArgumentValueError(f"{owner}: got {name}={number}; wanted at most num_classes={most}")
    return number
