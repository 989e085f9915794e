"""Brackets against NumPy on random indices, in graphs, on other devices, and the messages of wrong
ones.
"""

from __future__ import annotations

import random
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.errors import UnsupportedOpError
from duograph.ir.builder import trace
from duograph.types import TensorType

T = ms.Tensor


class RandomIndex:
    """Indices of every kind, and shapes with empty and unit axes, from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values = np.random.default_rng(seed)

    def shape(self) -> tuple[int, ...]:
        sizes = [0, 1, 1, 2, 3, 4] if self.rng.random() < 0.15 else [1, 2, 3, 4]
        return tuple(self.rng.choice(sizes) for _ in range(self.rng.randrange(5)))

    def item(self, n: int, together: tuple[int, ...]) -> Any:
        kind = self.rng.random()
        if kind < 0.25 and n:
            return self.rng.randrange(-n, n)
        if kind < 0.55 or not n:
            bound = [None, *range(-n - 2, n + 3)]
            step = self.rng.choice([None, 1, 2, -1, -2, 3])
            return slice(self.rng.choice(bound), self.rng.choice(bound), step)
        shape = tuple(d if self.rng.random() < 0.8 else 1 for d in together)
        return self.values.integers(-n, n, shape)

    def index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        together = self.rng.choice([(2,), (3,), (2, 3), (), (0,), (1, 2)])
        items: list[Any] = []
        axis, last = 0, self.rng.randrange(len(shape) + 1)
        while axis < last:
            if self.rng.random() < 0.08:
                count = self.rng.randrange(1, min(2, len(shape) - axis) + 1)
                items.append(self.values.random(shape[axis : axis + count]) < 0.5)
                axis += count
            else:
                items.append(self.item(shape[axis], together))
                axis += 1
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            items.insert(self.rng.randrange(len(items) + 1), None)
        if self.rng.random() < 0.3:
            items.insert(self.rng.randrange(len(items) + 1), Ellipsis)
        elif self.rng.random() < 0.05:
            items.insert(self.rng.randrange(len(items) + 1), self.rng.choice([True, False]))
        return tuple(items)

    def spelled(self, index: tuple[Any, ...]) -> Any:
        """Arrays as Tensors of either index dtype, as arrays or lists; some ints as NumPy ints or
        0-d Tensors.
        """

        def one(item: Any) -> Any:
            if isinstance(item, np.ndarray):
                forms = [T(item), item]
                if item.ndim and item.size:
                    forms.append(item.tolist())
                if item.dtype.kind == "i":
                    forms.append(T(item.astype(np.int32)))
                return self.rng.choice(forms)
            if isinstance(item, int) and not isinstance(item, bool) and self.rng.random() < 0.15:
                return self.rng.choice([np.int64(item), T(item)])
            return item

        found = tuple(one(i) for i in index)
        return found[0] if len(found) == 1 and self.rng.random() < 0.7 else found


@pytest.mark.parametrize("seed", range(8))
def test_random_indices(seed: int) -> None:
    """B20: whatever NumPy takes gives what NumPy gives, read and written; what it refuses is
    refused
    """
    make = RandomIndex(seed)
    for _ in range(120):
        shape = make.shape()
        x = make.values.standard_normal(shape).astype(np.float32)
        index = make.index(shape)
        given = make.spelled(index)
        try:
            want = x[index]
        except (IndexError, ValueError):
            with pytest.raises((IndexError, ValueError)):
                T(x)[given]
            continue
        try:
            got = T(x)[given].asnumpy()
        except IndexError as error:  # NumPy does not look at a mask when the result is empty anyway
            assert want.size == 0 and "mask" in str(error), (shape, index)
            continue
        assert got.shape == np.shape(want), (shape, index)
        np.testing.assert_array_equal(got, want)
        value_shape = tuple(d if make.rng.random() < 0.8 else 1 for d in got.shape)
        value = make.values.standard_normal(value_shape).astype(np.float32)
        expected = x.copy()
        expected[index] = value
        written = T(x)
        written[given] = T(value) if make.rng.random() < 0.5 else value
        np.testing.assert_array_equal(written.asnumpy(), expected, err_msg=f"{shape} {index}")


def test_in_a_graph() -> None:
    """Everything static is traced: nothing looks at values"""
    rows = np.array([2, 0])

    def use(x: ms.Tensor, v: ms.Tensor, i: ms.Tensor) -> ms.Tensor:
        y = x[1:, None, ..., ::-1]
        x[0] = v
        x[:, rows] = 0.5
        x[i] = x[i] + 1
        x[x > 2] = 2
        return x[i, 0].sum() + y.sum()

    types = [
        TensorType.of(s, d) for s, d in (((3, 4), ms.float32), ((4,), ms.float32), ((2,), ms.int32))
    ]
    graph = trace(use, types)
    assert graph.types[graph.outputs[0]] is TensorType.of((), ms.float32)
    with pytest.raises(UnsupportedOpError, match="depends on values"):
        trace(lambda x: x[x > 0], types[:1])


def test_gradient_with_duplicates() -> None:
    """C01: a gradient is summed over the places that read an element; of those that write it the
    last has one
    """
    x = T(np.arange(4, dtype=np.float32))
    got = ms.grad(lambda x: (x[[1, 1, -3]] * T([1.0, 2.0, 4.0])).sum())(x)
    np.testing.assert_array_equal(got.asnumpy(), [0, 7, 0, 0])

    def write(v: ms.Tensor) -> ms.Tensor:
        y = x * 1
        y[[1, 2, 1]] = v
        return (y * T([1.0, 2.0, 4.0, 8.0])).sum()

    got = ms.grad(write)(T([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(got.asnumpy(), [0, 4, 2])


def test_assignment_rebinds() -> None:
    """B20: what was read before an assignment stays; so does what a gradient kept"""
    x = T([1.0, 2.0, 3.0])
    view = x.reshape(3, 1)
    x[0] = 9
    np.testing.assert_array_equal(view.asnumpy().reshape(-1), [1, 2, 3])

    def use(x: ms.Tensor) -> ms.Tensor:
        y = x * x
        x[0] = 100
        return y.sum() + x.sum()

    np.testing.assert_array_equal(ms.grad(use)(T([1.0, 2.0])).asnumpy(), [2, 5])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, IndexError, "got 3 for axis 0 of size 3; wanted -3 to 2"),
        ((0, -5), IndexError, "got -5 for axis 1 of size 4"),
        ((0, 0, 0), IndexError, r"3 indices for shape \(3, 4\) of 2 axes"),
        ([0, 7], IndexError, "got index 7 for axis 0 of size 3"),
        ((0, T([1, 9])), IndexError, "got index 9 for axis 1 of size 4"),
        ((T([0, 1]), T([1, 9])), IndexError, "got index 9 for axis 1 of size 4"),
        (([0, 1], [0, 1, 2]), IndexError, "shapes that broadcast"),
        (1.5, (IndexError, TypeError), "got 1.5; wanted an int"),
        ("a", (IndexError, TypeError), "got 'a'"),
        (T([1.0]), (IndexError, TypeError), "dtype float32"),
        ([[True, False]], IndexError, "got a mask of shape"),
        (slice(None, None, 0), ValueError, "step 0"),
        (slice("a", None), (IndexError, TypeError), "bound of a slice"),
        ((..., ...), IndexError, "more than one Ellipsis"),
        ([slice(None)], (IndexError, TypeError), "a tuple around it"),
    ],
)
def test_wrong_indices(index: Any, error: Any, message: str) -> None:
    """B20: out of range is IndexError with index, axis and size"""
    x = T(np.ones((3, 4), np.float32))
    with pytest.raises(error, match=message):
        x[index]
    with pytest.raises(error, match=message):
        x[index] = 0


def test_many_rows() -> None:
    """A loop over the rows of a long tensor prepares no call a row"""
    x = T(np.arange(2000, dtype=np.int64).reshape(1000, 2)) * 1
    prepared = ms.ops.indexing.getitem_by.table
    before = len(prepared)
    assert [int(row[1]) for row in x] == list(range(1, 2000, 2))
    assert len(prepared) - before <= ms.ops.indexing.MANY + 2
    with pytest.raises(IndexError, match="got 1000 for axis 0 of size 1000"):
        x[1000]


def test_contains_and_delete() -> None:
    x = T([[1.0, 2.0]])
    assert 2.0 in x and 3 not in x
    with pytest.raises(TypeError):
        del x[0]
