"""Primitives that layers hold as attributes: subclasses in user code compute with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops

X4 = np.linspace(-2, 2, 2 * 4 * 5 * 5, dtype=np.float32).reshape(2, 4, 5, 5)
X3 = np.ascontiguousarray(X4[:, :, 0])
X5 = X4.reshape(2, 4, 5, 5, 1)
X2 = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def first(values: Any) -> Any:
    """Return the first of several results."""
    return values[0]


def folded(operation: Any, x: Any, weight: Any) -> Any:
    """Run a 2-D operation on a 3-D input."""
    return ops.squeeze(operation(ops.expand_dims(x, 2), weight), 2)


# layer, its input, and what a subclass computes with the layer's attributes: the layer's own output
ROWS: list[tuple[Callable[[], Any], np.ndarray, Callable[[Any, Any], Any]]] = [
    (nn.ReLU, X2, lambda c, x: c.relu(x)),
    (nn.ReLU6, X2, lambda c, x: c.relu6(x)),
    (nn.Sigmoid, X2, lambda c, x: c.sigmoid(x)),
    (nn.Tanh, X2, lambda c, x: c.tanh(x)),
    (nn.FastGelu, X2, lambda c, x: c.fast_gelu(x)),
    (nn.Mish, X2, lambda c, x: c.mish(x)),
    (nn.HSwish, X2, lambda c, x: c.hswish(x)),
    (nn.HSigmoid, X2, lambda c, x: c.hsigmoid(x)),
    (nn.LogSigmoid, X2, lambda c, x: c.log(c.rec(c.add(c.exp(c.mul(x, -1)), 1)))),
    (lambda: nn.ELU(1.0), X2, lambda c, x: c.elu(x)),
    (nn.SeLU, X2, lambda c, x: c.selu(x)),
    (lambda: nn.CELU(0.5), X2, lambda c, x: c.celu(x)),
    (lambda: nn.PReLU(4), X4, lambda c, x: c.prelu(x, c.w)),
    (nn.Softsign, X2, lambda c, x: c.softsign(x)),
    (lambda: nn.HShrink(0.7), X2, lambda c, x: c.hshrink(x)),
    (lambda: nn.SoftShrink(0.7), X2, lambda c, x: c.softshrink(x)),
    (lambda: nn.Softmax(0), X2, lambda c, x: c.softmax(x)),
    (lambda: nn.LogSoftmax(0), X2, lambda c, x: c.log_softmax(x)),
    (nn.Softmax2d, X4, lambda c, x: c.softmax(x)),
    (nn.GLU, X2, lambda c, x: c.spilt(x)[0] * c.sigmoid(c.spilt(x)[1])),
    (lambda: nn.Dense(4, 3), X2, lambda c, x: c.bias_add(c.matmul(x, c.weight), c.bias)),
    (lambda: nn.Dense(4, 3), X2,
     lambda c, x: c.reshape(c.matmul(x, c.weight) + c.bias, (c.shape_op(x)[0], 3))),
    (lambda: nn.Dropout(p=0.0), X2, lambda c, x: first(c.dropout(x))),
    (lambda: nn.Conv2d(4, 6, 3, 2, "pad", 1, has_bias=True), X4,
     lambda c, x: c.bias_add(c.conv2d(x, c.weight), c.bias)),
    (lambda: nn.Conv2d(4, 6, 3, group=2), X4, lambda c, x: c.conv2d(x, c.weight)),
    (lambda: nn.Conv1d(4, 6, 3, pad_mode="pad", padding=1), X3,
     lambda c, x: folded(c.conv2d, x, c.weight)),
    (lambda: nn.Conv3d(4, 2, (3, 3, 1), pad_mode="valid"), X5,
     lambda c, x: c.conv3d(x, c.weight)),
    (lambda: nn.BatchNorm2d(4), X4, lambda c, x: first(
        c.bn_infer(x, c.gamma, c.beta, c.moving_mean, c.moving_variance))),
    (lambda: nn.LayerNorm((5,), -1, -1), X4,
     lambda c, x: first(c.layer_norm(x, c.gamma, c.beta))),
    (lambda: nn.MaxPool2d(2, 2), X4, lambda c, x: c.max_pool(x)),
    (lambda: nn.MaxPool2d(3, 2, "same"), X4, lambda c, x: c.max_pool(x)),
    (lambda: nn.AvgPool2d(2, 2), X4, lambda c, x: c.avg_pool(x)),
    (lambda: nn.AdaptiveAvgPool2d(2), X4, lambda c, x: c.adaptive_avgpool2d(x)),
    (lambda: nn.Norm(axis=1), X2, lambda c, x: c.squeeze(c.sqrt(c.reduce_sum(x * x, 1)))),
    (lambda: nn.Unflatten(1, (2, 2)), X2, lambda c, x: c.reshape(x, (c.shape(x)[0], 2, 2))),
]  # fmt: skip


def names(rows: list[Any]) -> list[str]:
    """Return the names of the layers in a table."""
    return [f"{i}-{type(row[0]()).__name__}" for i, row in enumerate(rows)]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("make, x, compute", ROWS, ids=names(ROWS))
def test_operators_compute_the_layer(make: Any, x: Any, compute: Any, mode: int) -> None:
    layer = make()
    kind = type(layer)
    derived = type("Derived", (kind,), {"construct": lambda self, x: compute(self, x)})
    made = derived.__new__(derived)
    made.__setstate__(layer.__getstate__())
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        expected = layer(ms.Tensor(x)).asnumpy()
        for _ in range(2):
            np.testing.assert_allclose(made(ms.Tensor(x)).asnumpy(), expected, 1e-5, 1e-6)
    finally:
        ms.set_context(mode=before)


def test_an_operator_is_made_once_and_a_subclass_may_replace_it() -> None:
    layer = nn.ReLU()
    assert layer.relu is layer.relu
    layer.relu = ops.Tanh()
    np.testing.assert_allclose(layer.relu(ms.Tensor([1.0])).asnumpy(), np.tanh([1.0]), 1e-6)


@pytest.mark.parametrize(
    "reduction, average, reduced",
    [("mean", True, True), ("sum", False, True), ("none", True, False)],
)
def test_a_loss_computes_with_its_operators(reduction: str, average: bool, reduced: bool) -> None:
    class Mine(nn.LossBase):
        def construct(self, x: ms.Tensor) -> ms.Tensor:
            wide = self.mul(self.cast(x, ms.float32), 2.0)
            if not self.reduce:
                return wide
            axes = self.get_axis(wide)
            return self.reduce_mean(wide, axes) if self.average else self.reduce_sum(wide, axes)

    loss = Mine(reduction)
    assert (loss.average, loss.reduce) == (average, reduced)
    x = ms.Tensor(X2)
    np.testing.assert_allclose(loss(x).asnumpy(), loss.get_loss(x, 2.0).asnumpy(), 1e-6)


def test_batch_norm_stores_the_weight_of_the_new_statistics() -> None:
    layer = nn.BatchNorm2d(4, momentum=0.9)
    assert layer.momentum == 1 - 0.9  # as MindSpore's layer shows it
    layer.set_train()
    layer(ms.Tensor(X4))
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), 0.1 * X4.mean((0, 2, 3)), 1e-5)


def test_what_subclasses_of_optimizers_see() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    plain = nn.SGD([w], 0.1)
    assert not plain._is_dynamic_lr_or_weight_decay()
    assert plain.optim_filter == (True,) and not plain.use_parallel and not plain.need_scale
    assert plain.dynamic_decay_flags is False
    assert plain.global_step_increase_tensor.asnumpy() == [1]
    assert plain.broadcast_params((1, 2)) == (1, 2)
    assert plain.hyper_map(lambda x: x + 1, (1, 2)) == (2, 3)
    assert plain._grad_sparse_indices_deduplicate((1,)) == (1,)
    plain._set_base_target(plain.target)
    with pytest.raises(ValueError, match="the updates run on"):
        plain._set_base_target("elsewhere")
    rates = nn.SGD([w], nn.ExponentialDecayLR(0.1, 0.9, 3))
    assert rates._is_dynamic_lr_or_weight_decay()
    groups = nn.SGD([{"params": [w], "weight_decay": 0.1}], 0.1, loss_scale=2.0)
    assert isinstance(plain.get_weight_decay(), ms.Tensor)
    assert [float(d.asnumpy()) for d in groups.get_weight_decay()] == [np.float32(0.1)]
    assert groups.dynamic_decay_flags == (False,) and groups.need_scale
