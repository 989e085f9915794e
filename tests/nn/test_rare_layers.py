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
    layer = eval(source, {**vars(nn), "Tensor": ms.Tensor})
    given = [ms.Tensor(x) for x in inputs]
    found = layer(*given).asnumpy()
    np.testing.assert_allclose(found, np.array(wanted), rtol=2e-4, atol=1e-5)
    ms.set_seed(1)  # SampledSoftmaxLoss draws classes
    found = layer(*given).asnumpy()
    ms.set_seed(1)
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
    found = rows.trained(ms, source)
    np.testing.assert_allclose(found, EXPECTED[source], rtol=1e-5, atol=1e-7)
    assert rows.trained(ms, source, ms.jit(jit_level="O0")) == found


FACTORS = ["row_a", "row_b", "row_c", "col_a", "col_b", "col_c", "a", "b", "c"]


def test_state_of_adafactor():
    """Names, shapes and dtypes are MindSpore's, so that its checkpoints are found."""
    params = [
        ms.Parameter(ms.ops.zeros(s), name=n) for s, n in zip(rows.SHAPES, "abc", strict=True)
    ]
    state = nn.AdaFactor(params, compression=True)
    shapes = [(1,), (2,), (2, 2), (1,), (3,), (2, 3), (3,), (1,), (1,)]
    found = {p.name: (p.shape, p.dtype) for p in state.get_parameters() if "exp_avg_sq" in p.name}
    assert found == {
        f"exp_avg_sq_{n}": (s, ms.float16 if n == "a" else ms.float32)
        for n, s in zip(FACTORS, shapes, strict=True)
    }
    names = {p.name for p in state.get_parameters()} - set(found)
    assert names == {"a", "b", "c", "exp_avg.a", "exp_avg.b", "exp_avg.c", "afactor_step",
                     "global_step", "learning_rate"}  # fmt: skip


def test_adafactor_of_float16_weights():
    wanted = [0.994140625, -1.9912109375, 2.98828125]  # MindSpore's, after three steps
    p = ms.Parameter(ms.Tensor(np.array([[1, -2, 3], [0.5, 0.25, -1]], np.float16)), name="w")
    optimizer = nn.AdaFactor([p])
    gradient = np.array([[0.1, -0.2, 0.3], [0.4, 0.5, 0.6]])
    for step in (1, 2, 3):
        optimizer((ms.Tensor((step * gradient).astype(np.float16)),))
    assert p.dtype is ms.float16 and optimizer.exp_avg_sq_row[0].dtype is ms.float16
    np.testing.assert_allclose(p.asnumpy()[0], wanted, rtol=2e-3)


def test_rates_of_groups_of_adafactor():
    a, b = (ms.Parameter(ms.Tensor([1.0]), name=n) for n in "ab")
    groups = [{"params": [a], "lr": 0.2}, {"params": [b]}]
    options = {"relative_step": False, "scale_parameter": False, "beta1": None}
    nn.AdaFactor(groups, 0.1, **options)((ms.Tensor([3.0]), ms.Tensor([3.0])))
    np.testing.assert_allclose([a.asnumpy()[0], b.asnumpy()[0]], [0.8, 0.9], rtol=1e-6)
    with pytest.raises(ValueError, match="lr in a group; wanted relative_step=False"):
        nn.AdaFactor(groups)


@pytest.mark.parametrize(("reduction", "wanted"), [("mean", 2.0), ("sum", 6.0)])
def test_reductions_of_sampled_softmax_loss(reduction, wanted):  # MindSpore ignores them
    source = rows.ROWS[15][0]
    each = eval(source, {**vars(nn), "Tensor": ms.Tensor})
    one = eval(f"{source[:-1]}, reduction='{reduction}')", {**vars(nn), "Tensor": ms.Tensor})
    given = [ms.Tensor(x) for x in rows.CLASSES]
    found = each(*given).asnumpy()
    np.testing.assert_allclose(one(*given).asnumpy(), found.sum() * wanted / 6, rtol=1e-6)


@pytest.mark.parametrize("argument", [0, 1, 3])
def test_gradients_of_sampled_softmax_loss(argument):
    given = [ms.Tensor(x) for x in rows.CLASSES]
    loss = eval(rows.ROWS[15][0], {**vars(nn), "Tensor": ms.Tensor})

    def of_one(x):
        return loss(*given[:argument], x, *given[argument + 1 :])

    found = ms.check_gradient(of_one, (given[argument],), order=1)
    assert found, found


# ---- samplers -----------------------------------------------------------------------------------

TRUE = np.array([[1], [3], [4]], np.int32)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("unique", "removed", "expected"),
    [(True, False, 3 / 8), (False, False, 3 / 8),  # these are MindSpore's
     (True, True, 3 / 5), (False, True, 3 / 5)],
)  # fmt: skip
def test_uniform_sampler(compiled, unique, removed, expected):
    sampler = ms.ops.UniformCandidateSampler(1, 3, unique, 8, remove_accidental_hits=removed)
    run = ms.jit(lambda t: sampler(t)) if compiled else sampler
    seen = set()
    for _ in range(30):
        drawn, of_true, of_drawn = run(ms.Tensor(TRUE))
        assert drawn.dtype is ms.int32 and drawn.shape == (3,)
        np.testing.assert_allclose(of_true.asnumpy(), np.full((3, 1), expected), rtol=1e-6)
        np.testing.assert_allclose(of_drawn.asnumpy(), np.full(3, expected), rtol=1e-6)
        found = drawn.asnumpy().tolist()
        assert not unique or len(set(found)) == 3
        seen |= set(found)
    assert seen == set(range(8)) - (set(TRUE.ravel().tolist()) if removed else set())


def test_uniform_sampler_draws_right_classes_if_there_are_no_others():
    true = ms.Tensor([[1, 3, 0, 2]])
    drawn, expected, _ = ms.ops.uniform_candidate_sampler(true, 4, 3, True, 5, 0, True)
    assert 4 in drawn.asnumpy() and expected.asnumpy().max() == 1.0
    drawn = ms.ops.uniform_candidate_sampler(true, 4, 3, False, 4, 0, True)[0]
    assert drawn.dtype is ms.int64 and set(drawn.asnumpy().tolist()) <= {0, 1, 2, 3}


def test_seed_of_the_uniform_sampler():
    def drawn(seed):
        ms.set_seed(5)
        return ms.ops.uniform_candidate_sampler(ms.Tensor(TRUE), 1, 9, True, 99, seed)[0].asnumpy()

    assert drawn(1).tolist() == drawn(1).tolist() != drawn(2).tolist()


def test_log_uniform_sampler_as_a_primitive():
    found = ms.ops.LogUniformCandidateSampler(2, 3, True, 9)(ms.Tensor([[1, 2], [0, 3]]))
    assert [t.shape for t in found] == [(3,), (2, 2), (3,)]


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


def sampled_loss(**changed):
    """Call the loss with one input replaced."""
    names = ("weights", "biases", "labels", "logits")
    given = dict(zip(names, map(ms.Tensor, rows.CLASSES), strict=True)) | changed
    return nn.SampledSoftmaxLoss(4, 7)(*given.values())


def sampler(classes, num_sampled=3, seed=0):
    return ms.ops.uniform_candidate_sampler(classes, 1, num_sampled, True, 8, seed)


WRONG = [
    (lambda: nn.LRN(-1), ValueError, "depth_radius"),
    (lambda: nn.LRN(norm_region="WITHIN"), ValueError, "WITHIN"),
    (lambda: nn.EmbeddingLookup(0, 2), ValueError, "vocab_size"),
    (lambda: nn.EmbeddingLookup(4, 2, sparse=False), ValueError, "sparse"),
    (lambda: nn.EmbeddingLookup(4, 2, slice_mode="field_slice"), TypeError, "manual_shapes"),
    (lambda: nn.MultiFieldEmbeddingLookup(4, 2, 2, operator="MIN"), ValueError, "MIN"),
    (lambda: nn.MSSSIM()(*[ms.ops.ones((1, 1, 20, 20))] * 2), ValueError, "high and wide"),
    (lambda: nn.ProximalAdagrad([W], l1=-1.0), ValueError, "l1"),
    (lambda: nn.SampledSoftmaxLoss(8, 7), ValueError, "num_sampled=8; wanted at most"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, num_true=0), ValueError, "num_true=0"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, num_true=8), ValueError, "num_true=8"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, seed=-1), ValueError, "seed=-1"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, reduction="x"), ValueError, "reduction='x'"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, sampled_values=3), TypeError, "sampled_values of int"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, sampled_values=(1, 2)), ValueError, "got 2 sampled"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, sampled_values=(1, 2, 3)), TypeError, "wanted Tensor"),
    (lambda: nn.SampledSoftmaxLoss(4, 7, remove_accidental_hits=3), TypeError, "True or False"),
    (lambda: sampled_loss(labels=ms.Tensor([0.0, 1.0, 2.0])), TypeError, "labels of"),
    (lambda: sampled_loss(labels=ms.Tensor([0, 1])), ValueError, r"labels of shape \(2,\)"),
    (lambda: sampled_loss(weights=rows.CLASSES[0]), TypeError, "weights"),
    (lambda: sampler(ms.Tensor([1.0])), TypeError, "true_classes of Float32"),
    (lambda: sampler(ms.Tensor([1, 3])), ValueError, r"shape \(2,\); wanted \(N, 1\)"),
    (lambda: sampler(ms.Tensor([[1, 3]])), ValueError, r"shape \(1, 2\)"),
    (lambda: sampler(ms.Tensor([[1]]), num_sampled=9), ValueError, "num_sampled=9 unique"),
    (lambda: sampler(ms.Tensor([[1]]), num_sampled=0), ValueError, "num_sampled=0"),
    (lambda: sampler(ms.Tensor([[1]]), seed=-1), ValueError, "seed=-1"),
    (lambda: sampler(ms.Tensor([[1]]), seed=1.5), TypeError, "seed=1.5"),
    (lambda: ms.ops.UniformCandidateSampler(1, 9, True, 8), ValueError, "num_sampled=9"),
    (lambda: ms.ops.LogUniformCandidateSampler(1, 9, True, 8), ValueError, "num_sampled=9"),
    (lambda: nn.AdaFactor([W], 0.1), ValueError, "a learning_rate and relative_step=True"),
    (lambda: nn.AdaFactor([W], relative_step=False), ValueError, "learning_rate=None"),
    (lambda: nn.AdaFactor([W], 0.1, relative_step=False, warmup_init=True), ValueError, "warmup"),
    (lambda: nn.AdaFactor([W], eps=(1e-3,)), ValueError, "eps"),
    (lambda: nn.AdaFactor([W], eps=3), TypeError, "eps=3"),
    (lambda: nn.AdaFactor([W], eps=(-1.0, 1e-3)), ValueError, "eps"),
    (lambda: nn.AdaFactor([W], eps=("a", 1e-3)), TypeError, "eps"),
    (lambda: nn.AdaFactor([W], clip_threshold=-1.0), ValueError, "clip_threshold"),
    (lambda: nn.AdaFactor([W], decay_rate=1.0), ValueError, "decay_rate"),
    (lambda: nn.AdaFactor([W], decay_rate=0.0), ValueError, "decay_rate"),
    (lambda: nn.AdaFactor([W], beta1=-0.5), ValueError, "beta1"),
    (lambda: nn.AdaFactor([W], beta1="a"), TypeError, "beta1"),
    (lambda: nn.AdaFactor([W], weight_decay=1.0), ValueError, "weight_decay"),
    (lambda: nn.AdaFactor([W], weight_decay=-1.0), ValueError, "weight_decay"),
    (lambda: nn.AdaFactor([W], scale_parameter=1), TypeError, "scale_parameter=1"),
    (lambda: nn.AdaFactor([W], relative_step=1), TypeError, "relative_step=1"),
    (lambda: nn.AdaFactor([W], compression=1), TypeError, "compression=1"),
    (lambda: nn.AdaFactor([W], loss_scale=0.0), ValueError, "loss_scale"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
