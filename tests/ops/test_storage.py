"""Tests of Tensor methods about storage, such as `storage` and `set_`, and of their refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor
from duograph.common.initializer import One, initializer


def six(dtype: ms.dtype.DType = ms.float32) -> Tensor:
    return Tensor(np.arange(6), dtype)


@pytest.mark.parametrize(
    ("dtype", "size"), [(ms.float32, 24), (ms.float16, 12), (ms.int64, 48), (ms.bool_, 6)]
)
@pytest.mark.parametrize("method", ["storage", "untyped_storage"])
def test_a_storage_knows_its_bytes(method: str, dtype: ms.dtype.DType, size: int) -> None:
    x = six(dtype)
    storage = getattr(x, method)()
    assert storage.size() == storage.nbytes() == len(storage) == size
    assert storage.dtype is dtype and storage.element_size() == 1
    assert storage.device == "CPU" and storage.is_shared() is False
    assert storage.data_ptr() == x.data_ptr()
    assert storage.resize_(size) is storage


def test_bytes_are_copied_between_storages() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([0], ms.int64)
    y.storage().copy_(x.storage())
    assert y.item() == int(np.array([1.0, 2.0], np.float32).view(np.int64)[0])
    x.storage().copy_(Tensor([5.0, 6.0]).storage())
    np.testing.assert_array_equal(x.asnumpy(), [5.0, 6.0])


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (lambda: (six(),), [0, 1, 2, 3, 4, 5]),
        (lambda: (six().reshape(2, 3),), [[0, 1, 2], [3, 4, 5]]),
        (lambda: (six().reshape(2, 3).storage(),), [0, 1, 2, 3, 4, 5]),
        (lambda: (six(), 1, (2, 2), (2, 1)), [[1, 2], [3, 4]]),
        (lambda: (six(), 1, (2, 2), (1, 0)), [[1, 1], [2, 2]]),
        (lambda: (six().storage(), 0, (3,), (2,)), [0, 2, 4]),
        (lambda: (six(), 2, [4]), [2, 3, 4, 5]),
        (lambda: (six(), 6, (0,), (1,)), []),
        (tuple, []),
    ],
)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_set_takes_shape_and_elements(
    arguments: Callable[[], tuple[Any, ...]], wanted: Any, mode: str
) -> None:
    def function(x: Tensor) -> Tensor:
        return x.set_(*given)

    given, x = arguments(), Tensor([9.0])
    found = (function if mode == "eager" else ms.jit(function))(x)
    assert found.dtype is ms.float32
    np.testing.assert_array_equal(found.asnumpy(), np.array(wanted, np.float32))
    np.testing.assert_array_equal(x.asnumpy(), np.array(wanted, np.float32))


def test_a_source_and_its_copy_are_separate() -> None:
    x, source = Tensor([9.0]), six()
    x.set_(source)
    x[0] = 7.0
    assert source[0] == 0.0


def test_the_gradient_of_set_reaches_the_source() -> None:
    def function(source: Tensor) -> Tensor:
        return (Tensor([0.0]).set_(source, 1, (2,), (2,)) * Tensor([2.0, 3.0])).sum()

    found = ms.grad(function)(six())
    np.testing.assert_array_equal(found.asnumpy(), [0, 2, 0, 3, 0, 0])


def test_to_moves_in_place() -> None:
    x = six()
    assert x.to_("CPU") is x and x.device.startswith("CPU")


@pytest.mark.parametrize("value", [True, None])
def test_a_tensor_takes_part_in_every_gradient(value: bool | None) -> None:
    x = six()
    arguments = () if value is None else (value,)
    assert getattr(x, "requires_grad_")(*arguments) is None  # noqa: B009  (mypy: it returns None)
    np.testing.assert_array_equal(ms.grad(lambda t: (t * 2.0).sum())(x).asnumpy(), [2.0] * 6)


def test_a_parameter_keeps_its_flag() -> None:
    p = Parameter(six())
    p.requires_grad_(False)
    assert p.requires_grad is False


WRONG: Any = "x"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: six().set_(WRONG), TypeError),
        (lambda: six().set_(six(ms.int32)), TypeError),
        (lambda: six().set_(six(), 1, (6,), (1,)), ValueError),
        (lambda: six().set_(six(), 0, (2, 2), (1,)), ValueError),
        (lambda: six().set_(six(), 0, (2,), (-1,)), ValueError),
        (lambda: six().set_(six(), -1, (2,), (1,)), ValueError),
        (lambda: six().storage().resize_(3), RuntimeError),
        (lambda: six().storage().copy_(Tensor([1.0]).storage()), ValueError),
        (lambda: six().storage().copy_(WRONG), TypeError),
        (lambda: six().requires_grad_(False), RuntimeError),
        (lambda: six().delete_(), RuntimeError),
        (lambda: six().delete_(non_blocking=True), RuntimeError),
        (lambda: six().to_(), ValueError),
        (lambda: initializer(One(), (2,)).init_data(slice_index=1), RuntimeError),
        (lambda: initializer(One(), (4,)).init_data(shape=(2,)), RuntimeError),
        (lambda: Parameter(six()).init_data(layout=(1,)), RuntimeError),
    ],
)
def test_refusals(call: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
