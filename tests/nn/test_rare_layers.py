"""Layers of older programs: values of MindSpore or NumPy, both modes, and gradients.

`rare_layers.json` holds what MindSpore 2.10 computed for `rare_layers_rows.py`. What it cannot do
on the CPU is compared with NumPy.
"""

from __future__ import annotations

import json
import pathlib

import duograph as ms
import numpy as np
import pytest
from duograph import nn
from nn import rare_layers_rows as rows

EXPECTED = json.loads((pathlib.Path(__file__).parent / "rare_layers.json").read_text())


def _set_diagonal(x, d):
    found = x.copy()
    found[..., np.arange(3), np.arange(3)] = d
    return found


def _contrast_and_similarity(a, b, size=5):
    """Return the two measures of one channel, window by window."""
    at = np.arange(size) - (size - 1) / 2
    line = np.exp(-0.5 * (at / 1.5) ** 2)
    window = np.outer(line, line) / line.sum() ** 2
    cs, ssim = [], []
    for i in range(a.shape[0] - size + 1):
        for j in range(a.shape[1] - size + 1):
            u, v = (x[i : i + size, j : j + size].astype(np.float64) for x in (a, b))
            m, n = (window * u).sum(), (window * v).sum()
            variances = (window * (u - m) ** 2).sum() + (window * (v - n) ** 2).sum()
            covariance = (window * (u - m) * (v - n)).sum()
            cs.append((2 * covariance + 0.03**2) / (variances + 0.03**2))
            ssim.append(cs[-1] * (2 * m * n + 0.01**2) / (m * m + n * n + 0.01**2))
    return max(np.mean(cs), 0), max(np.mean(ssim), 0)


def _ms_ssim(x, y):
    def halved(a):
        return a.reshape(10, 2, 10, 2).mean((1, 3))

    found = [
        np.mean([
            _contrast_and_similarity(a, b)[0] ** 0.5
            * _contrast_and_similarity(halved(a), halved(b))[1] ** 0.3
            for a, b in zip(one, other, strict=True)
        ])
        for one, other in zip(x, y, strict=True)
    ]  # fmt: skip
    return np.array(found)


NUMPY = {
    "MatDet()": np.linalg.det,
    "MatrixDiag()": lambda x: x[..., None] * np.eye(3),
    "MatrixDiagPart()": lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    "MatrixSetDiag()": _set_diagonal,
    "MSSSIM(power_factors=(0.5, 0.3), filter_size=5)": _ms_ssim,
    "MultilabelMarginLoss()": lambda x, y: np.float32(0.85),
}


@pytest.mark.parametrize(("source", "inputs"), rows.ROWS, ids=[r[0] for r in rows.ROWS])
def test_values(source, inputs):
    wanted = NUMPY[source](*inputs) if source in NUMPY else EXPECTED[source]
    layer = eval(source, vars(nn))
    given = [ms.Tensor(x) for x in inputs]
    found = layer(*given).asnumpy()
    np.testing.assert_allclose(found, np.array(wanted), rtol=2e-4, atol=1e-5)
    np.testing.assert_array_equal(ms.jit(layer.construct)(*given).asnumpy(), found)


@pytest.mark.parametrize("source", ["LRN(2)", "MatDet()", "LBeta()", "MatrixSetDiag()"])
def test_gradients(source):
    layer = eval(source, vars(nn))
    shapes = {"LRN(2)": [(1, 4, 2, 2)], "MatDet()": [(3, 3)], "LBeta()": [(3,), (3,)],
              "MatrixSetDiag()": [(3, 3), (3,)]}[source]  # fmt: skip
    inputs = [ms.Tensor(rows._numbers(*s)) for s in shapes]
    found = ms.check_gradient(layer, tuple(inputs), order=1)
    assert found, found


@pytest.mark.parametrize("source", rows.TRAINED)
def test_optimizers(source):
    np.testing.assert_allclose(rows.trained(ms, source), EXPECTED[source], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_undoes_pooling(axes):
    x = ms.Tensor(np.random.default_rng(axes).normal(size=(2, 3) + (6,) * axes).astype("f"))
    pooled, indices = (
        getattr(ms.ops, f"max_pool{axes}d")(x, 2, 2, return_indices=True)
        if axes > 1
        else (
            t.squeeze(2) for t in ms.ops.max_pool2d(x.expand_dims(2), (1, 2), return_indices=True)
        )
    )
    back = getattr(nn, f"MaxUnpool{axes}d")(2)(pooled, indices, x.shape)
    kept = back.asnumpy() != 0
    np.testing.assert_array_equal(back.asnumpy()[kept], x.asnumpy()[kept])
    assert kept.sum() == pooled.size


def test_fractional_pooling_takes_maxima():
    samples = ms.Tensor(np.full((1, 1, 2), 0.3, np.float32))
    x = ms.Tensor(np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6))
    pool = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True, _random_samples=samples)
    found, indices = pool(x)
    assert found.shape == (1, 1, 3, 3)
    np.testing.assert_array_equal(found.asnumpy(), indices.asnumpy())  # elements are positions
    assert nn.FractionalMaxPool3d(2, output_size=2)(ms.ops.ones((1, 4, 4, 4))).shape == (1, 2, 2, 2)


def test_embedding_lookup():
    table = ms.Tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    layer = nn.EmbeddingLookup(4, 2, table, target="DEVICE", sparse=False)
    indices = ms.Tensor([[3, 0], [9, 1]])
    wanted = [[[6, 7], [0, 1]], [[0, 0], [2, 3]]]
    np.testing.assert_array_equal(layer(indices).asnumpy(), wanted)
    np.testing.assert_array_equal(ms.jit(layer.construct)(indices).asnumpy(), wanted)
    limited = nn.EmbeddingLookup(4, 2, table, max_norm=1.0)(ms.Tensor([3])).asnumpy()
    np.testing.assert_allclose(np.linalg.norm(limited), 1.0, rtol=1e-6)
    grads = ms.grad(lambda i: layer(i).sum(), None, layer.trainable_params())(indices)
    np.testing.assert_array_equal(grads[0].asnumpy(), [[1, 1], [1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [("SUM", [[3.0, 6.0], [0.5, 1.0]]), ("MEAN", [[1.0, 2.0], [1.0, 2.0]]),
     ("MAX", [[2.0, 4.0], [0.5, 1.0]])],
)  # fmt: skip
def test_fields_of_embeddings(operator, wanted):
    table = ms.Tensor([[1.0, 2.0]] * 3)
    layer = nn.MultiFieldEmbeddingLookup(3, 2, 3, table, operator=operator)
    found = layer(
        ms.Tensor([[0, 1, 2, 2]]), ms.Tensor([[1.0, 2.0, 0.5, 0.0]]), ms.Tensor([[0, 0, 1, 2]])
    )
    np.testing.assert_allclose(found.asnumpy(), [[*wanted, [0.0, 0.0]]])


def test_layers_of_mint_under_their_extended_names():
    for name in ("AvgPool2dExt", "DropoutExt", "EmbeddingExt", "LayerNormExt", "PReLUExt"):
        assert getattr(nn, name) is getattr(ms.mint.nn, name.removesuffix("Ext"))
    assert nn.Linear is ms.mint.nn.Linear
    with pytest.raises(AttributeError):
        nn.NothingExt


W = ms.Parameter(ms.Tensor([1.0]), name="w")
WRONG = [
    (lambda: nn.LRN(-1), ValueError, "depth_radius"),
    (lambda: nn.LRN(norm_region="WITHIN"), ValueError, "WITHIN"),
    (lambda: nn.EmbeddingLookup(0, 2), ValueError, "vocab_size"),
    (lambda: nn.EmbeddingLookup(4, 2, sparse=False), ValueError, "sparse"),
    (lambda: nn.EmbeddingLookup(4, 2, slice_mode="field_slice"), TypeError, "manual_shapes"),
    (lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2, operator="MIN"), ValueError, "MIN"),
    (lambda: nn.MSSSIM()(*[ms.ops.ones((1, 1, 20, 20))] * 2), ValueError, "high and wide"),
    (lambda: nn.ProximalAdagrad([W], l1=-1.0), ValueError, "l1"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
