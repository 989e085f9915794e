"""The inputs of the cases for all frameworks, as NumPy arrays by the name of the case."""

import numpy as np

LARGE = 16 * 1024 * 1024


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# Names of the functions that `small_mindspore` and `small_torch` return.
SMALL_CALLS = (
    "a + b", "a * 2.0", "a > b", "a @ b", "matmul", "exp", "relu", "sigmoid", "clamp", "where",
    "sum", "sum of rows", "mean, kept axis", "max", "max of rows", "argmax", "softmax",
    "cross entropy", "concat", "stack", "transpose", "reshape", "squeeze", "a[1:5, ::2]", "gather",
    "cast", "ones", "conv2d", "Dense", "LayerNorm",
)  # fmt: skip


def three() -> tuple[np.ndarray, np.ndarray]:
    return _normal(0, 3), _normal(1, 3)


def small() -> tuple[np.ndarray, ...]:
    """Return operands of the small calls: two matrices, image, weight, index, labels, mask."""
    a, b = _normal(20, 8, 8), _normal(21, 8, 8)
    index = np.array([1, 3, 5], np.int64)
    labels = np.arange(8, dtype=np.int64)
    return a, b, _normal(22, 1, 3, 8, 8), _normal(23, 4, 3, 3, 3), index, labels, a > 0


def chain() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _normal(2, 3), _normal(3, 3), _normal(4, 3)


def matrices() -> tuple[np.ndarray, np.ndarray]:
    return _normal(5, 1024, 1024), _normal(6, 1024, 1024)


def convolution() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images, weights and the cotangent of the output."""
    return _normal(7, 16, 64, 56, 56), _normal(8, 64, 64, 3, 3), _normal(9, 16, 64, 56, 56)


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an (8192, 1024) array, and the scale and shift of its normalisation."""
    return _normal(10, 8192, 1024), _normal(11, 1024), _normal(12, 1024)


def large() -> tuple[np.ndarray, np.ndarray]:
    return _normal(13, LARGE), _normal(14, LARGE)


def chain_of_100(x, w, b, tanh, sin, exp, sqrt):
    """Return the result of 100 small ops that repeat ten kinds; every value stays near 1."""
    y = x
    for _ in range(10):
        y = y * w
        y = y + b
        y = tanh(y)
        y = y - w
        y = sin(y)
        y = y * y
        y = y / 2.0
        y = exp(y)
        y = sqrt(y)
        y = y * 0.5
    return y
