"""Indices and labels out of range, for every function that takes them, eager and compiled.

No function may read, write or count another element than the one that was asked for: it returns
what its documentation says, or raises an IndexError that names the value and the range.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops

C = 3  # classes, rows, segments: the size of the axis that every row of the table indexes
X = np.linspace(0, 1, 2 * C).reshape(2, C).astype(np.float32)
ROWS = np.ascontiguousarray(X.T)
LOG_P = np.log(np.full((2, C), 1 / C, np.float32))


def t(array: Any, dtype: Any = ms.float32) -> ms.Tensor:
    return ms.Tensor(np.asarray(array), dtype)


def param(array: Any) -> ms.Parameter:
    return ms.Parameter(t(array))


def ones(*shape: int) -> ms.Tensor:
    return t(np.ones(shape))


# What is valid: "index" -C to C-1, negative ones from the end; "label" 0 to C-1; "ignored" and
# "dropped" also any negative value; "any" every value, as documented.
INDEX, LABEL, DROPPED, ANY = "index", "label", "dropped", "any"
# name: (kind, shape of the indices, function of the indices)
TABLE: dict[str, tuple[str, tuple[int, ...], Callable[[ms.Tensor], Any]]] = {
    "ops.cross_entropy": (LABEL, (2,), lambda i: ops.cross_entropy(t(X), i)),
    "ops.cross_entropy of one item": (LABEL, (), lambda i: ops.cross_entropy(t(X[0]), i)),
    "ops.cross_entropy of pixels": (
        LABEL, (1, 2), lambda i: ops.cross_entropy(t(ROWS[None]), i, ones(C)),
    ),
    "ops.nll_loss": (LABEL, (2,), lambda i: ops.nll_loss(t(LOG_P), i)),
    "ops.NLLLoss": (LABEL, (2,), lambda i: ops.NLLLoss()(t(LOG_P), i, ones(C))),
    "ops.SparseSoftmaxCrossEntropyWithLogits": (
        LABEL, (2,), lambda i: ops.SparseSoftmaxCrossEntropyWithLogits()(t(X), i),
    ),
    "ops.SparseSoftmaxCrossEntropyWithLogits gradient": (
        LABEL, (2,), lambda i: ops.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(t(X), i),
    ),
    "ops.multi_margin_loss": (
        LABEL, (2,), lambda i: ops.multi_margin_loss(t(X), i, weight=ones(C)),
    ),
    "ops.multilabel_margin_loss": (
        DROPPED, (2, C), lambda i: ops.multilabel_margin_loss(t(X), i),
    ),
    "ops.ctc_loss": (
        LABEL, (2, 1),
        lambda i: ops.ctc_loss(
            t(np.log(np.full((4, 2, C), 1 / C))), i, t([4, 4], ms.int32), t([1, 1], ms.int32)
        )[0],
    ),
    "ops.unsorted_segment_sum": (DROPPED, (2,), lambda i: ops.unsorted_segment_sum(t(X), i, C)),
    "ops.unsorted_segment_max": (DROPPED, (2,), lambda i: ops.unsorted_segment_max(t(X), i, C)),
    "ops.unsorted_segment_min": (DROPPED, (2,), lambda i: ops.unsorted_segment_min(t(X), i, C)),
    "ops.unsorted_segment_prod": (DROPPED, (2,), lambda i: ops.unsorted_segment_prod(t(X), i, C)),
    "ops.gather": (INDEX, (2,), lambda i: ops.gather(t(X), i, 1)),
    "ops.gather batches": (INDEX, (2, 1), lambda i: ops.gather(t(X), i, 1, 1)),
    "ops.gather_d": (INDEX, (2, 1), lambda i: ops.gather_d(t(X), 1, i)),
    "ops.gather_elements": (INDEX, (2, 1), lambda i: ops.gather_elements(t(X), 1, i)),
    "ops.gather_nd": (INDEX, (2, 1), lambda i: ops.gather_nd(t(ROWS), i)),
    "ops.index_select": (INDEX, (2,), lambda i: ops.index_select(t(X), 1, i)),
    "ops.take": (INDEX, (2,), lambda i: ops.take(t(X[0]), i)),
    "Tensor.take": (ANY, (2,), lambda i: t(X).take(i, 1)),
    "Tensor.take wrap": (ANY, (2,), lambda i: t(X).take(i, 1, mode="wrap")),
    "Tensor.take raise": (INDEX, (2,), lambda i: t(X).take(i, 1, mode="raise")),
    "Tensor.choose": (ANY, (2,), lambda i: i.choose([ones(2), ones(2), ones(2)])),
    "Tensor.choose raise": (
        LABEL, (2,), lambda i: i.choose([ones(2), ones(2), ones(2)], mode="raise"),
    ),
    "ops.one_hot": (ANY, (2,), lambda i: ops.one_hot(i, C)),
    "nn.OneHot": (ANY, (2,), lambda i: nn.OneHot(depth=C)(i)),
    "ops.EmbeddingLookup": (ANY, (2,), lambda i: ops.EmbeddingLookup()(t(ROWS), i, 0)),
    "nn.Embedding": (INDEX, (2,), nn.Embedding(C, 2, embedding_table="ones")),
    "ops.embedding": (INDEX, (2,), lambda i: ops.embedding(i, t(ROWS))),
    "x[:, i]": (INDEX, (2,), lambda i: t(X)[:, i]),
    "ops.scatter": (INDEX, (2, 1), lambda i: ops.scatter(t(X), 1, i, ones(2, 1))),
    "ops.tensor_scatter_elements": (
        INDEX, (2, 1), lambda i: ops.tensor_scatter_elements(t(X), i, ones(2, 1), 1),
    ),
    "ops.scatter_nd": (INDEX, (2, 1), lambda i: ops.scatter_nd(i, ones(2, 2), (C, 2))),
    "ops.index_fill": (INDEX, (2,), lambda i: ops.index_fill(t(X), 1, i, 1.0)),
    "nn.FocalLoss": (LABEL, (2, 1), lambda i: nn.FocalLoss()(t(X), i)),
    "nn.CrossEntropyLoss": (LABEL, (2,), lambda i: nn.CrossEntropyLoss()(t(X), i)),
    "nn.NLLLoss": (LABEL, (2,), lambda i: nn.NLLLoss()(t(LOG_P), i)),
    "nn.MultiMarginLoss": (LABEL, (2,), lambda i: nn.MultiMarginLoss()(t(X), i)),
    "nn.SoftmaxCrossEntropyWithLogits": (
        LABEL, (2,), lambda i: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(t(X), i),
    ),
    "ops.crop_and_resize": (
        LABEL, (2,),
        lambda i: ops.crop_and_resize(
            ones(C, 4, 4, 1), t([[0, 0, 1, 1], [0, 0, 1, 1]]), i, (2, 2)
        ),
    ),
}  # fmt: skip


def writer(name: str, make: Callable[[Any], ms.Tensor]) -> Callable[[ms.Tensor], Any]:
    function = getattr(ops, name)
    return lambda i: function(make(ROWS), i, ones(2, 2))


MODES = ("update", "add", "sub", "mul", "div", "max", "min")
for mode in MODES:
    name = f"tensor_scatter_{mode}"
    TABLE[f"ops.{name}"] = (INDEX, (2, 1), writer(name, t))
# They write a Parameter that is made in the call, so they run eagerly only.
IN_PLACE: dict[str, tuple[str, tuple[int, ...], Callable[[ms.Tensor], Any]]] = {
    "ops.index_add": (INDEX, (2,), lambda i: ops.index_add(param(X), i, ones(2, 2), 1)),
    "ops.inplace_index_add": (
        INDEX, (2,), lambda i: ops.inplace_index_add(param(ROWS), i, ones(2, 2), 0),
    ),
    "Tensor.index_copy_": (INDEX, (2,), lambda i: t(X).index_copy_(1, i, ones(2, 2))),
    "Tensor.index_fill_": (INDEX, (2,), lambda i: t(X).index_fill_(1, i, 1.0)),
    "Tensor.index_put_": (INDEX, (2,), lambda i: t(ROWS).index_put_((i,), ones(2, 2))),
    "Tensor.index_put": (INDEX, (2,), lambda i: t(ROWS).index_put((i,), ones(2, 2))),
    "Tensor.put_": (INDEX, (2,), lambda i: t(X[0]).put_(i, ones(2))),
    "Tensor.scatter_": (INDEX, (2, 1), lambda i: t(X).scatter_(1, i, ones(2, 1))),
    "Tensor.scatter_add_": (INDEX, (2, 1), lambda i: t(X).scatter_add_(1, i, ones(2, 1))),
    "x[:, i] = v": (INDEX, (2,), lambda i: t(X).__setitem__((slice(None), i), 1.0)),
}  # fmt: skip
for mode in MODES:
    for name, shape in ((f"scatter_{mode}", (2,)), (f"scatter_nd_{mode}", (2, 1))):
        IN_PLACE[f"ops.{name}"] = (INDEX, shape, writer(name, param))

VALID = {INDEX: range(-C, C), LABEL: range(C), DROPPED: range(-C - 1, C), ANY: range(-C - 1, C + 2)}
FAR = (-(2**31), -C - 1, -C, -1, C, C + 1, 2**31 - 1)


def check(name: str, kind: str, shape: tuple[int, ...], function: Callable[..., Any]) -> None:
    for value in FAR:
        # one wrong value behind a right one
        indices = np.zeros(shape, np.int32)
        indices[(-1,) * len(shape)] = value
        allowed = value in VALID[kind] or kind == ANY or (kind == DROPPED and value < 0)
        if allowed:
            found = function(t(indices, ms.int32))
            if kind == INDEX and isinstance(found, ms.Tensor):
                indices[(-1,) * len(shape)] = value + C
                same = function(t(indices, ms.int32))
                np.testing.assert_array_equal(found.asnumpy(), same.asnumpy(), f"{name}, {value}")
            continue
        with pytest.raises(IndexError) as caught:
            found = function(t(indices, ms.int32))
            raise AssertionError(f"{name} of {value} returned {found}")
        assert str(value) in str(caught.value), name
        assert "wanted" in str(caught.value), name


@pytest.mark.parametrize("name", [*TABLE, *IN_PLACE])
def test_eager(name: str) -> None:
    kind, shape, function = {**TABLE, **IN_PLACE}[name]
    check(name, kind, shape, function)


@pytest.mark.parametrize("name", TABLE)
def test_compiled(name: str) -> None:
    kind, shape, function = TABLE[name]
    compiled = ms.jit(lambda i: function(i))
    compiled(t(np.zeros(shape), ms.int32))
    if name == "ops.gather batches":  # the message has the index into the merged axes
        with pytest.raises(IndexError, match="wanted"):
            compiled(t(np.full(shape, C), ms.int32))
        return
    check(name, kind, shape, compiled)


NAMES = ("index", "indices", "labels", "segment_ids", "choices", "input_indices", "box_indices")
# Functions with a parameter of such a name that is no index.
OTHERS = {
    "binary_cross_entropy", "kl_div", "softmax_cross_entropy_with_logits",  # distributions
    "select_scatter", "inplace_add", "inplace_sub", "inplace_update",  # Python numbers
    "list_getitem", "list_setitem", "tuple_getitem", "tuple_setitem",
    # checked by the sparse tensors, the gather and the scatter that they are made of
    "make_coo_tensor", "make_csr_tensor", "make_row_tensor", "make_row_tensor_inner",
    "make_sparse_tensor", "csr_gather", "sparse_segment_mean",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
}  # fmt: skip


def test_every_function_that_takes_indices_is_in_the_table() -> None:
    missing = []
    for name in dir(ops):
        function = getattr(ops, name)
        if name.startswith("_") or isinstance(function, type) or not callable(function):
            continue
        taken = {p for p in inspect.signature(function).parameters if p in NAMES}
        listed = any(row.split()[0] == f"ops.{name}" for row in (*TABLE, *IN_PLACE))
        if taken and not listed and name not in OTHERS:
            missing.append(name)
    assert not missing


METRICS: dict[str, Callable[[], nn.Metric]] = {
    "Accuracy": nn.Accuracy,
    "Precision": nn.Precision,
    "Recall": nn.Recall,
    "F1": nn.F1,
    "Fbeta": lambda: nn.Fbeta(2.0),
    "Top1CategoricalAccuracy": nn.Top1CategoricalAccuracy,
    "ConfusionMatrix": lambda: nn.ConfusionMatrix(C),
    "Perplexity": nn.Perplexity,
    "ROC": lambda: nn.ROC(class_num=C),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("label", [-100, -C, -1, C, 2**31 - 1])
def test_metrics(name: str, label: int) -> None:
    metric = METRICS[name]()
    labels = np.array([0, label])
    message = rf"{name}.*got the label {label}; wanted 0 to {C - 1}"
    with pytest.raises(IndexError, match=message) as caught:
        metric.update(X + 0.1, labels)
    assert isinstance(caught.value, ValueError)  # MindSpore's class, where it checks
    metric.update(X + 0.1, np.array([0, C - 1]))  # the failed update counted nothing
    metric.eval()


def test_perplexity_skips_its_ignored_label() -> None:
    metric = nn.Perplexity(ignore_label=-100)
    metric.update(np.full((2, C), 0.5), np.array([0, -100]))
    assert metric.eval() == pytest.approx(2.0)


@pytest.mark.parametrize("dtype", [ms.int8, ms.uint8, ms.int16, ms.int32, ms.int64])
def test_labels_of_every_integer_dtype(dtype: Any) -> None:
    right = ops.nll_loss(t(LOG_P), t([0, 2], dtype))
    assert right.asnumpy() == pytest.approx(np.log(C))
    with pytest.raises(IndexError, match="nll_loss: got the label 3; wanted 0 to 2"):
        ops.nll_loss(t(LOG_P), t([0, 3], dtype)).asnumpy()


@pytest.mark.parametrize("ignored", [-100, -1, C, 255])
def test_ignored_labels_are_not_checked(ignored: int) -> None:
    for mode in (lambda f: f, ms.jit):
        loss = mode(lambda x, i: ops.cross_entropy(x, i, ignore_index=ignored))
        some = loss(t(X), t([0, ignored], ms.int32))
        np.testing.assert_allclose(some.asnumpy(), loss(t(X[:1]), t([0], ms.int32)).asnumpy())
