"""Matrices with unaligned rows, padded once for all matmuls of cuBLASLt that read them."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from cublaslt_fixtures import NAME, backend, fake, path  # noqa: F401
from duograph.op import OPS
from duograph_cuda import cublaslt, padded_operands

NEAR = {"float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture
def eager_to_copy(monkeypatch):
    """Fixture: copies pay for matmuls of any size."""
    monkeypatch.setattr(cublaslt, "LEAST_WORK", 0)
    monkeypatch.setattr(cublaslt, "WORK_PER_COPY", 0)


def tensors(dtype, *shapes):
    """Return random tensors of the given shapes on the device under test."""
    rng = np.random.default_rng(1)
    return [ms.Tensor(rng.normal(size=s), getattr(ms, dtype), device=NAME) for s in shapes]


def matmul(x, y, transpose_a=False, transpose_b=False):
    """Multiply matrices, each transposed if so said."""
    return OPS["matmul"](x, y, transpose_a, transpose_b)


# (name, function of g (20, 13), w (13, 16), x (20, 24), expected number of paddings)
PROGRAMS = {
    "summed along rows, and not": (
        lambda g, w, x: (matmul(g, w), matmul(g, x, True)), 2),
    "summed twice, with one operand": (
        lambda g, w, x: (matmul(g, w), matmul(g * 1, w), matmul(g, w + 1)), 3),
    "rows of the second operand": (
        lambda g, w, x: (matmul(x, g, True), matmul(w, g, True, True)), 2),
    "one reader": (lambda g, w, x: (matmul(g, w),), 0),
    "multiplied by itself": (lambda g, w, x: (matmul(g, g, False, True), matmul(g, g, True)), 0),
    "read by others": (lambda g, w, x: (matmul(g, w), matmul(g, x, True), g + 1, g.sum()), 2),
    "aligned": (lambda g, w, x: (matmul(x, x, True), matmul(x, x, False, True)), 0),
}  # fmt: skip


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_paddings(backend, eager_to_copy, monkeypatch, name, dtype, level):
    """Results agree with the CPU's, and each matrix is padded once."""
    function, wanted = PROGRAMS[name]
    given = tensors(dtype, (20, 13), (13, 16), (20, 24))
    pads = []
    real = padded_operands.pad_operands

    def watched(graph):
        made = real(graph)
        pads.append(sum(node.op.name == "pad_constant" for node in made.nodes))
        return made

    monkeypatch.setattr(padded_operands, "pad_operands", watched)
    got = ms.jit(function, jit_level=level)(*given)
    want = function(*(ms.Tensor(t.asnumpy(), t.dtype, device="CPU") for t in given))
    assert pads == [wanted]
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape and mine.dtype is theirs.dtype
        expected = theirs.asnumpy().astype(np.float64)
        tolerance = NEAR[dtype] * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(mine.asnumpy().astype(np.float64), expected, atol=tolerance)


def test_small_matmuls_are_left_alone(backend, monkeypatch):
    """Below the least work, the pass changes nothing."""
    given = tensors("bfloat16", (20, 13), (13, 16), (20, 24))
    seen = []
    real = padded_operands.pad_operands
    monkeypatch.setattr(
        padded_operands, "pad_operands", lambda g: (seen.append(real(g) is g), real(g))[1]
    )
    ms.jit(PROGRAMS["read by others"][0])(*given)
    assert seen == [True]


SHAPES = [
    ((5, 7), (0, 3)), ((5, 7), (2, 0)), ((5, 7), (3, 9)), ((1, 1), (0, 15)), ((0, 5), (4, 3)),
    ((2, 3, 5), (0, 0, 3)), ((5, 0), (0, 8)), ((4, 4096), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", ["bool_", "uint8", "int16", "float16", "bfloat16", "float32", "int64"]
)
@pytest.mark.parametrize("shape, high", SHAPES)
def test_padding_with_zeros(backend, shape, high, dtype):
    """The kernel of rows of another pitch pads at the ends, for all sizes of elements."""
    array = (np.arange(1, np.prod(shape) + 1).reshape(shape) % 90).astype(np.float32)
    x = ms.Tensor(array, getattr(ms, dtype), device=NAME)
    got = OPS["pad_constant"](x, low=(0,) * len(shape), high=high, value=0)
    want = np.pad(x.asnumpy(), [(0, n) for n in high])
    np.testing.assert_array_equal(got.asnumpy().astype(np.float64), want.astype(np.float64))
