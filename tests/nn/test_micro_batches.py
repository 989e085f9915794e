"""Cells that run a network on parts of a batch; the results are MindSpore's line by line.

MindSpore compiles none of them outside of training on several processes.
"""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import OptionWarning

CELLS = [nn.GradAccumulationCell, nn.MicroBatchInterleaved, nn.PipelineCell]
WAYS: list[Any] = [lambda f: f, ms.jit]


class Loss(nn.Cell):
    def construct(self, x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        return ops.square(x - y).sum()


class Twice(nn.Cell):
    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x * 2


X = ms.Tensor(np.arange(8).reshape(4, 2).astype(np.float32))
Y = ms.Tensor(np.ones((4, 2), np.float32))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cell", CELLS)
def test_values(cell: Any, way: Any) -> None:
    assert way(cell(Loss(), 2))(X, Y).asnumpy() == way(cell(Loss(), 1))(X, Y).asnumpy() == 92
    assert way(cell(Twice(), 2))(X).asnumpy().tolist() == [[8, 12], [16, 20]]
    assert [p.name for p in cell(nn.Dense(2, 3), 2).get_parameters()] == ["weight", "bias"]


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_are_those_of_the_whole_batch(cell: Any) -> None:
    layer = nn.Dense(2, 2)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def construct(self, x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
            return ops.square(self.layer(x) - y).sum()

    weights = layer.trainable_params()
    parts, whole = (ms.grad(net, None, weights)(X, Y) for net in (cell(Net(), 4), Net()))
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError)])
def test_refusals(cell: Any, count: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"_size|_num"):
        cell(Loss(), count)
    with pytest.raises(TypeError, match="network"):
        cell(3, 2)
    with pytest.raises(ValueError, match=r"shape \(4, 2\); wanted a first axis that 3 divides"):
        cell(Loss(), 3)(X, Y)


def test_segments_have_no_meaning() -> None:
    ms.option_checks.forget_warnings()
    with pytest.warns(OptionWarning, match="segment_config has no meaning"):
        nn.PipelineCell(Loss(), 2, segment_config={"network": 0})


@pytest.mark.parametrize("name", ["thor", "DenseThor", "AdaSumByGradWrapCell", "OptTFTWrapper"])
def test_names_without_a_meaning_say_why(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"^{name} "):
        getattr(nn, name)(nn.Dense(2, 3))


def test_a_tensor_is_moved() -> None:
    assert ops.move_to(X, "CPU").device == ops.MoveTo()(X).device == "CPU:0"
    with pytest.raises(RuntimeError):
        ops.move_to(X, "Nowhere")


def test_images_of_private_names() -> None:
    from duograph.compat.private_data import hwc_to_chw, is_numpy

    assert is_numpy(np.ones(2)) and not is_numpy([1])
    assert hwc_to_chw(np.ones((2, 3, 4))).shape == (4, 2, 3)
    assert hwc_to_chw(np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(TypeError, match="got list"):
        hwc_to_chw([1])
