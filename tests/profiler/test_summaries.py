"""Tests that `summary` reports shapes, parameters and costs of Cells."""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops


class Branches(nn.Cell):
    """A network with a shared layer, a fixed parameter, and ops of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.SequentialCell(nn.Flatten(), nn.Dense(8 * 16, 4))
        self.same = nn.Dense(4, 4, has_bias=False)
        self.unused = nn.Dense(2, 2)
        self.scale = ms.Parameter(Tensor(np.ones(4, np.float32)), requires_grad=False)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.head(self.norm(self.conv(x)))
        z = self.same(self.same(y)) * self.scale
        return ops.matmul(z.T, y), z


# row: class, shapes of the results, calls, parameters, trainable ones, multiply-adds
ROWS: dict[str, tuple[str, tuple[tuple[int, ...], ...], int, int, int, int]] = {
    "": ("Branches", ((4, 4), (2, 4)), 1, 4, 0, 4 * 4 * 2),
    "conv": ("Conv2d", ((2, 8, 4, 4),), 1, 72, 72, 2 * 8 * 16 * 9),
    "norm": ("BatchNorm2d", ((2, 8, 4, 4),), 1, 32, 16, 0),
    "head": ("SequentialCell", ((2, 4),), 1, 0, 0, 0),
    "head.0": ("Flatten", ((2, 128),), 1, 0, 0, 0),
    "head.1": ("Dense", ((2, 4),), 1, 128 * 4 + 4, 128 * 4 + 4, 2 * 128 * 4),
    "same": ("Dense", ((2, 4),), 2, 16, 16, 2 * 2 * 4 * 4),
    "unused": ("Dense", (), 0, 6, 6, 0),
}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("given", ["shape", "tensor"])
def test_rows_and_sums(mode: int, given: str) -> None:
    net = Branches().set_train()
    x: Any = (2, 1, 4, 4) if given == "shape" else Tensor(np.ones((2, 1, 4, 4), np.float32))
    before = {q.name: q.asnumpy().copy() for q in net.get_parameters()}
    ms.set_context(mode=mode)
    try:
        found = ms.summary(net, x)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    rows = {r.path: r for r in found.rows}
    assert {
        k: (r.kind, r.output, r.calls, r.parameters, r.trainable, r.multiply_adds)
        for k, r in rows.items()
    } == ROWS
    assert found.parameters == sum(r[3] for r in ROWS.values())
    assert found.trainable == sum(r[4] for r in ROWS.values())
    assert found.multiply_adds == sum(r[5] for r in ROWS.values())
    assert found.parameter_bytes == 4 * found.parameters
    assert found.activation_bytes >= 4 * (2 * 8 * 16 * 2 + 2 * 4 * 4)
    # and nothing has changed
    assert net.training and net.conv.training and not net.conv._forward_hooks
    for q in net.get_parameters():
        np.testing.assert_array_equal(q.asnumpy(), before[q.name])


def test_text_and_html() -> None:
    found = ms.summary(Branches(), (2, 1, 4, 4))
    text = str(found)
    assert [line.split()[0] for line in text.splitlines()[2:10]] == [
        "network", "conv", "norm", "head", "0", "1", "same", "unused",
    ]  # fmt: skip
    assert "(2, 4) x2" in text and f"parameters: {found.parameters:,}" in text
    assert all(kind in found._repr_html_() for kind in ("Conv2d", "BatchNorm2d", "(2, 8, 4, 4)"))


def test_random_numbers_stay() -> None:
    net = nn.SequentialCell(nn.Dropout(p=0.5), nn.Dense(3, 3)).set_train()
    ms.set_seed(1)
    expected = ops.rand(3).asnumpy()
    ms.set_seed(1)
    ms.summary(net, (1, 3))
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), expected)


def test_other_dtypes_and_shared_parameters() -> None:
    embedding = nn.Embedding(10, 4)
    found = ms.summary(nn.SequentialCell(embedding, nn.Dense(4, 2)), (3, 5), dtype=ms.int32)
    assert found.rows[1].output == ((3, 5, 4),)
    dense = nn.Dense(4, 4)
    assert ms.summary(nn.SequentialCell(dense, dense), (1, 4)).parameters == 20


def test_without_inputs() -> None:
    found = ms.summary(Branches())
    assert found.multiply_adds == 0 and found.parameters == sum(r[3] for r in ROWS.values())


WRONG: dict[str, Any] = {
    "no Cell": lambda: ms.summary(len, (1, 2)),
    "no dtype": lambda: ms.summary(nn.ReLU(), (1, 2), dtype="float32"),
    "too few dtypes": lambda: ms.summary(nn.ReLU(), (1, 2), dtype=[]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    with pytest.raises(TypeError, match="summary: got"):
        WRONG[name]()


def test_an_error_of_the_network_leaves_no_hooks() -> None:
    net = nn.SequentialCell(nn.Dense(3, 2))
    with pytest.raises(ValueError):
        ms.summary(net, (2, 5))
    assert not net[0]._forward_hooks and ms.get_context("jit")
