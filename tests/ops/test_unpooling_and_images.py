"""Unpooling, fractional pooling, columns of windows, colours of images and choices among boxes."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

T = ms.Tensor
RNG = np.random.default_rng(4)
X = RNG.permutation(2 * 3 * 6 * 6).reshape(2, 3, 6, 6).astype(np.float32)
CUBE = RNG.permutation(2 * 4 * 4 * 4).reshape(1, 2, 4, 4, 4).astype(np.float32)
IMAGE = RNG.uniform(0.05, 0.95, (2, 4, 3))


def colours(function: Callable[..., Any]) -> Any:
    return np.array([[function(*p) for p in row] for row in IMAGE])


def modes(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Return the results of eager and of compiled code."""
    tensors = [T(a) for a in arrays]
    return [function(*tensors), ms.jit(function)(*tensors)]


@pytest.mark.parametrize("n,x", [(1, X[0]), (2, X), (3, CUBE)])
def test_max_unpool_undoes_max_pool(n: int, x: Any) -> None:
    pool, unpool = getattr(ops, f"max_pool{n}d"), getattr(ops, f"max_unpool{n}d")
    values, places = pool(T(x), 2, 2, return_indices=True)
    for out in modes(lambda v, i: unpool(v, i, 2), values.asnumpy(), places.asnumpy()):
        assert out.shape == x.shape
        kept = out.asnumpy() != 0
        np.testing.assert_array_equal(out.asnumpy()[kept], x[kept])
        assert out.asnumpy().sum() == values.asnumpy().sum()


def test_max_unpool_sizes_and_classes() -> None:
    values, places = T([[[[5.0, 7], [13, 15]]]]), T([[[[5, 7], [13, 15]]]])
    want = ops.max_unpool2d(values, places, 2).asnumpy()
    np.testing.assert_array_equal(ops.MaxUnpool2D(2, 2)(values, places).asnumpy(), want)
    assert ops.max_unpool2d(values, places, 2, output_size=(5, 5)).shape == (1, 1, 5, 5)
    assert ops.MaxUnpool3D(1)(T(CUBE), T(np.zeros(CUBE.shape, np.int64))).shape == CUBE.shape
    assert ms.check_gradient(lambda v: ops.max_unpool2d(v, places, 2), values, order=1)


def test_fractional_pooling() -> None:
    samples = np.full((2, 3, 2), 0.4, np.float32)
    for out in modes(lambda x, u: ops.fractional_max_pool2d(x, 2, 3, None, True, u), X, samples):
        values, places = (t.asnumpy() for t in out)
        flat = X.reshape(2, 3, 36)
        np.testing.assert_array_equal(np.take_along_axis(flat, places.reshape(2, 3, 9), 2),
                                      values.reshape(2, 3, 9))  # fmt: skip
        begin = [int((i + 0.4) * 2) - int(0.4 * 2) if i < 2 else 4 for i in range(3)]
        want = [[X[..., a : a + 2, b : b + 2].max((2, 3)) for b in begin] for a in begin]
        np.testing.assert_array_equal(values, np.array(want).transpose(2, 3, 0, 1))
    assert ops.fractional_max_pool3d(T(CUBE), 2, output_ratio=0.5).shape == (1, 2, 2, 2, 2)
    found = ops.FractionalMaxPoolWithFixedKsize(2, (3, 2))(T(X), T(samples))
    assert found[0].shape == (2, 3, 3, 2) and found[1].dtype == ms.int64
    assert ms.check_gradient(
        lambda x: ops.fractional_max_pool2d(x, 2, 3, _random_samples=T(samples)), T(X), order=1
    )


def test_columns_of_windows() -> None:
    columns = ops.Im2Col((2, 3))(T(X))
    assert columns.shape == (2, 3, 6, 20)
    windows = np.lib.stride_tricks.sliding_window_view(X, (2, 3), (2, 3))
    want = windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 3, 6, 20)
    np.testing.assert_array_equal(columns.asnumpy(), want)
    image = ops.Col2Im((2, 3))(columns, T([6, 6])).asnumpy()
    count = ops.Col2Im((2, 3))(ops.ones_like(columns), T([6, 6])).asnumpy()
    np.testing.assert_allclose(image / count, X)
    other = ops.col2im(columns, (6, 6), (2, 3), (1, 1), (0, 0), (1, 1)).asnumpy()
    np.testing.assert_array_equal(other, image)


COLOURS: dict[str, tuple[Callable[..., Any], Any]] = {
    "RGBToHSV": (ops.RGBToHSV(), colours(colorsys.rgb_to_hsv)),
    "HSVToRGB": (ops.HSVToRGB(), colours(colorsys.hsv_to_rgb)),
    "AdjustHue": (
        lambda x: ops.AdjustHue()(x, 0.3),
        colours(lambda r, g, b: colorsys.hsv_to_rgb(
            (colorsys.rgb_to_hsv(r, g, b)[0] + 0.3) % 1, *colorsys.rgb_to_hsv(r, g, b)[1:])),
    ),
    "AdjustSaturation": (
        lambda x: ops.AdjustSaturation()(x, 0.5),
        colours(lambda r, g, b: colorsys.hsv_to_rgb(
            colorsys.rgb_to_hsv(r, g, b)[0], colorsys.rgb_to_hsv(r, g, b)[1] / 2, max(r, g, b))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLOURS)
def test_colours(name: str) -> None:
    function, want = COLOURS[name]
    for out in modes(function, IMAGE):
        np.testing.assert_allclose(out.asnumpy(), want, atol=1e-9)
    assert ms.check_gradient(function, T(IMAGE), order=1)


def test_grey_and_black_have_no_hue() -> None:
    grey = ops.RGBToHSV()(T([[0.5, 0.5, 0.5], [0.0, 0.0, 0.0]])).asnumpy()
    np.testing.assert_array_equal(grey, [[0, 0, 0.5], [0, 0, 0]])


def test_choices_among_boxes() -> None:
    boxes = T([[0.0, 0, 1, 1], [0.0, 0.1, 1, 1.1], [1.0, 0.9, 0.0, -0.1], [0.0, 10, 1, 11],
               [0.0, 10.1, 1, 11.1], [0.0, 100, 1, 101]])  # fmt: skip
    scores = T([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
    choose = ops.NonMaxSuppressionV3()
    assert choose(boxes, scores, T(4), T(0.5), T(0.0)).asnumpy().tolist() == [3, 0, 5]
    assert choose(boxes, scores, 2, 0.5, 0.0).asnumpy().tolist() == [3, 0]
    assert choose(boxes, scores, 9, 0.5, 0.4).asnumpy().tolist() == [3, 0]
    by_overlap = ops.NonMaxSuppressionWithOverlaps()
    found = by_overlap(T(np.eye(3)), T([0.1, 0.5, 0.3]), 2, 0.5, 0.2)
    assert found.asnumpy().tolist() == [1, 2] and found.dtype == ms.int32


def test_sizes() -> None:
    x = T(np.arange(16.0).reshape(1, 1, 4, 4))
    small = ops.ResizeNearestNeighborV2()(x, T([2, 3])).asnumpy()
    assert small.tolist() == [[[[0, 1, 2], [8, 9, 10]]]]
    line = ops.ResizeLinear1D()(T([[[1.0, 2, 3]]]), (5,)).asnumpy()
    np.testing.assert_allclose(line, [[[1, 1.5, 2, 2.5, 3]]])
    assert ops.DataFormatVecPermute()(T([1, 2, 3, 4])).asnumpy().tolist() == [1, 4, 2, 3]
    assert ops.CheckNumerics()(x).asnumpy().tolist() == x.asnumpy().tolist()


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unpool": (lambda: ops.max_unpool2d(T(X), T([1]), 2), ValueError, "wanted the same"),
    "unpool size": (
        lambda: ops.max_unpool1d(T([[1.0]]), T([[0]]), 2, output_size=(9,)),
        ValueError,
        "output_size",
    ),
    "fractional": (lambda: ops.fractional_max_pool2d(T(X), 2), ValueError, "one of"),
    "fractional size": (lambda: ops.fractional_max_pool2d(T(X), 2, 6), ValueError, "windows"),
    "col2im": (
        lambda: ops.col2im(T([1.0]), (2, 2), (1, 1), (1, 1), (0, 0), (1, 1)),
        ValueError,
        "wanted",
    ),
    "channels": (lambda: ops.RGBToHSV()(T([1.0, 2.0])), ValueError, "three channels"),
    "ints": (lambda: ops.RGBToHSV()(T([1, 2, 3])), TypeError, "floating"),
    "boxes": (
        lambda: ops.NonMaxSuppressionV3()(T([[1.0]]), T([1.0]), 1, 0.5, 0.0),
        ValueError,
        "shapes",
    ),
    "numerics": (lambda: ops.CheckNumerics()(T([float("nan")])), ValueError, "finite"),
    "sizes": (lambda: ops.DataFormatVecPermute()(T([1, 2])), ValueError, "shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()
