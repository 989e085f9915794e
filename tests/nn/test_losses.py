"""Tests of losses against NumPy formulas, and of their reductions, defaults and errors."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn

R = np.random.RandomState(0)
A, B = R.randn(6, 5).astype(np.float32), R.randn(6, 5).astype(np.float32)
LABELS = np.array([0, 4, 2, 1, 3, 3], np.int32)
P, T = 1 / (1 + np.exp(-A)), (B > 0).astype(np.float32)
SIGNS = np.sign(B)
W = np.array([0.5, 1.0, 1.5, 2.0, 0.1], np.float32)
LOG_P = A - np.log(np.exp(A).sum(1, keepdims=True))
PICKED = LOG_P[np.arange(6), LABELS]
SIZE = np.abs(A - B)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


# name: (loss by reduction, inputs, values per element before the reduction)
LOSSES = {
    "mse": (lambda r: nn.MSELoss(r), (A, B), (A - B) ** 2),
    "l1": (lambda r: nn.L1Loss(r), (A, B), SIZE),
    "smooth l1": (
        lambda r: nn.SmoothL1Loss(0.7, r),
        (A, B),
        np.where(SIZE < 0.7, 0.5 * SIZE**2 / 0.7, SIZE - 0.35),
    ),
    "huber": (
        lambda r: nn.HuberLoss(r, 0.7),
        (A, B),
        np.where(SIZE <= 0.7, 0.5 * SIZE**2, 0.7 * (SIZE - 0.35)),
    ),
    "nll": (lambda r: nn.NLLLoss(reduction=r), (LOG_P, LABELS), -PICKED),
    "cross entropy": (lambda r: nn.CrossEntropyLoss(reduction=r), (A, LABELS), -PICKED),
    "cross entropy of probabilities": (
        lambda r: nn.CrossEntropyLoss(reduction=r),
        (A, P),
        -(LOG_P * P).sum(1),
    ),
    "softmax cross entropy, sparse": (
        lambda r: nn.SoftmaxCrossEntropyWithLogits(True, r),
        (A, LABELS),
        -PICKED,
    ),
    "softmax cross entropy": (
        lambda r: nn.SoftmaxCrossEntropyWithLogits(False, r),
        (A, T),
        -(LOG_P * T).sum(1),
    ),
    "bce": (lambda r: nn.BCELoss(reduction=r), (P, T), -(T * np.log(P) + (1 - T) * np.log(1 - P))),
    "bce with logits": (
        lambda r: nn.BCEWithLogitsLoss(r),
        (A, T),
        T * softplus(-A) + (1 - T) * softplus(A),
    ),
    "bce with weights": (
        lambda r: nn.BCEWithLogitsLoss(r, Tensor(W), Tensor(W + 1)),
        (A, T),
        W * ((W + 1) * T * softplus(-A) + (1 - T) * softplus(A)),
    ),
    "margin ranking": (
        lambda r: nn.MarginRankingLoss(0.2, r),
        (A, B, SIGNS),
        np.maximum(-SIGNS * (A - B) + 0.2, 0),
    ),
    "hinge": (
        lambda r: nn.HingeEmbeddingLoss(1.0, r),
        (A, SIGNS),
        np.where(SIGNS > 0, A, np.maximum(1 - A, 0)),
    ),
    "soft margin": (lambda r: nn.SoftMarginLoss(r), (A, SIGNS), softplus(-SIGNS * A)),
    "multi label": (
        lambda r: nn.MultiLabelSoftMarginLoss(reduction=r),
        (A, T),
        (T * softplus(-A) + (1 - T) * softplus(A)).mean(1),
    ),
    "poisson": (lambda r: nn.PoissonNLLLoss(reduction=r), (A, T), np.exp(A) - T * A),
    "gaussian": (
        lambda r: nn.GaussianNLLLoss(reduction=r),
        (A, B, P),
        0.5 * (np.log(P) + (A - B) ** 2 / P),
    ),
    "cosine": (
        lambda r: nn.CosineEmbeddingLoss(0.1, r),
        (A, B, np.array([1, -1, 1, 1, -1, -1], np.int32)),
        np.where(
            [1, 0, 1, 1, 0, 0],
            1 - (A * B).sum(1) / np.sqrt((A**2).sum(1) * (B**2).sum(1)),
            np.maximum((A * B).sum(1) / np.sqrt((A**2).sum(1) * (B**2).sum(1)) - 0.1, 0),
        ),
    ),
    "triplet": (
        lambda r: nn.TripletMarginLoss(reduction=r, eps=0.0),
        (A, B, P),
        np.maximum(np.linalg.norm(A - B, axis=1) - np.linalg.norm(A - P, axis=1) + 1, 0),
    ),
    "focal": (
        lambda r: nn.FocalLoss(reduction=r),
        (A, LABELS.reshape(6, 1)),
        -((1 - np.exp(PICKED)) ** 2) * PICKED,
    ),
    "multi margin": (
        lambda r: nn.MultiMarginLoss(reduction=r),
        (A, LABELS),
        (np.maximum(1 - A[np.arange(6), LABELS][:, None] + A, 0) * (1 - np.eye(5)[LABELS])).sum(1)
        / 5,
    ),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    make, inputs, each = LOSSES[name]
    wanted = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    found = make(reduction)(
        *[Tensor(np.asarray(x, x.dtype if x.dtype.kind == "i" else np.float32)) for x in inputs]
    )
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=2e-5, atol=2e-5)


def test_class_weights_and_ignored_labels():
    keep = LABELS != 3
    weights = W[LABELS] * keep
    wanted = -(weights * PICKED).sum() / weights.sum()
    given = Tensor(A), Tensor(LABELS)
    found = nn.CrossEntropyLoss(Tensor(W), ignore_index=3)(*given)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5)
    found = nn.NLLLoss(Tensor(W), ignore_index=3)(Tensor(LOG_P), given[1])
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5)


def test_label_smoothing():
    found = nn.CrossEntropyLoss(label_smoothing=0.1)(Tensor(A), Tensor(LABELS))
    wanted = -(0.9 * PICKED + 0.1 * LOG_P.mean(1)).mean()
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5)


def test_kl_and_dice():
    q = P / P.sum(1, keepdims=True)
    each = q * (np.log(q) - LOG_P)
    for reduction, wanted in (
        ("mean", each.mean()),
        ("batchmean", each.sum() / 6),
        ("sum", each.sum()),
    ):
        found = nn.KLDivLoss(reduction)(Tensor(LOG_P), Tensor(q.astype(np.float32)))
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4)
    found = nn.DiceLoss()(Tensor(P), Tensor(T))
    wanted = 1 - (2 * (P * T).sum() + 1e-5) / ((P**2).sum() + (T**2).sum() + 1e-5)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(
        nn.RMSELoss()(Tensor(A), Tensor(B)).asnumpy(), np.sqrt(((A - B) ** 2).mean()), rtol=1e-5
    )


def test_ctc_of_one_label():
    """Two steps, the label 1 once: the paths 1-, -1 and 11."""
    log_p = LOG_P[:2].reshape(2, 1, 5)
    p = np.exp(log_p[:, 0])
    total = p[0, 1] * p[1, 0] + p[0, 0] * p[1, 1] + p[0, 1] * p[1, 1]
    found = nn.CTCLoss(reduction="sum")(
        Tensor(log_p), Tensor(np.array([[1]], np.int32)), Tensor(np.array([2], np.int32)),
        Tensor(np.array([1], np.int32)),
    )  # fmt: skip
    np.testing.assert_allclose(found.asnumpy(), -np.log(total), rtol=1e-5)


# targets, the blank, target lengths, and what MindSpore 2.10 computes for BLANK_LOG_P
BLANK_TARGETS: list[tuple[list[list[int]], int, list[int], list[float]]] = [
    ([[0, 1, 2], [1, 2, 3]], 0, [3, 3], [4.82194, 2.99413]),
    ([[0, 1, 2], [1, 2, 3]], 0, [2, 3], [4.38474, 2.99413]),
    ([[1, 0, 2], [1, 2, 3]], 0, [3, 3], [4.6524, 2.99413]),
    ([[1, 0, 2], [1, 2, 3]], 0, [2, 3], [3.57669, 2.99413]),
    ([[1, 2, 0], [1, 2, 3]], 0, [3, 3], [3.13978, 2.99413]),
    ([[0, 0, 0], [0, 1, 0]], 0, [3, 3], [6.43138, 3.99878]),
    ([[0, 0, 0], [0, 1, 0]], 0, [2, 3], [4.82194, 3.99878]),
    ([[1, 2, 3], [2, 2, 1]], 3, [3, 3], [4.76879, 6.10479]),
    ([[3, 1, 3], [2, 3, 3]], 3, [3, 3], [3.78844, 5.33754]),
    ([[3, 1, 3], [2, 3, 3]], 3, [2, 3], [3.91138, 5.33754]),
]
_LEVELS = np.arange(1, 49).reshape(6, 2, 4) % 7 + 1.0
BLANK_LOG_P = np.log(_LEVELS / _LEVELS.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("targets", "blank", "lengths", "wanted"), BLANK_TARGETS)
def test_ctc_of_targets_with_the_blank(
    targets: list[list[int]], blank: int, lengths: list[int], wanted: list[float]
) -> None:
    """A target with the number of the blank is one more class that paths may skip to."""

    def loss(log_p: Tensor) -> Tensor:
        return ms.ops.ctc_loss(
            log_p, Tensor(targets, ms.int32), (6, 5), tuple(lengths), blank, "none"
        )[0]

    found = loss(Tensor(BLANK_LOG_P))
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4)
    np.testing.assert_allclose(ms.jit(loss)(Tensor(BLANK_LOG_P)).asnumpy(), wanted, rtol=1e-4)
    slope = ms.grad(lambda x: loss(x).sum())(Tensor(BLANK_LOG_P)).asnumpy()
    # each step emits one class
    np.testing.assert_allclose(slope.sum(2), [[-1, -1]] * 5 + [[-1, 0]], atol=1e-4)


def test_default_arguments_of_losses():
    assert nn.SmoothL1Loss().reduction == "none"
    assert nn.SoftmaxCrossEntropyWithLogits().reduction == "none"
    assert nn.MSELoss().reduction == nn.CrossEntropyLoss().reduction == "mean"


def test_user_defined_loss_with_weights():
    class Distance(nn.LossBase):
        def construct(self, x, y, w):
            return self.get_loss(abs(x - y), w)

    found = Distance("sum")(
        Tensor([1.0, 2.0], ms.float16), Tensor([2.0, 4.0], ms.float16), Tensor([1.0, 0.5])
    )
    assert found.dtype is ms.float16 and found.asnumpy() == 2.0


ERRORS = {
    "reduction": (lambda: nn.MSELoss("foo"), ValueError, "reduction='foo'"),
    "beta": (lambda: nn.SmoothL1Loss(0), ValueError, "beta=0"),
    "weight": (lambda: nn.CrossEntropyLoss([1.0]), TypeError, "weight of list"),
    "smoothing": (
        lambda: nn.CrossEntropyLoss(label_smoothing=2.0),
        ValueError,
        "label_smoothing=2.0",
    ),
    "shapes": (
        lambda: nn.BCELoss()(Tensor(P), Tensor(T[:3])),
        ValueError,
        r"\(6, 5\) and labels \(3, 5\)",
    ),
    "probability above 1": (lambda: nn.BCELoss()(Tensor([1.5]), Tensor([1.0])), ValueError, "1.5"),
    "probability below 0": (
        lambda: nn.BCELoss()(Tensor([-0.25]), Tensor([1.0])),
        ValueError,
        "-0.25",
    ),
    "float classes": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(True)(Tensor(A), Tensor(B[:, 0])),
        TypeError,
        "wanted integers",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_losses(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()
