"""Layers against NumPy, or against numbers that MindSpore 2.10 printed; and their argument checks.

J14: Common layers Conv1/3d, Transpose conv, pooling, norms, RNN/LSTM/GRU, MultiheadAttention,
    Embedding, activations
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops


def rand(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def close(found, wanted, tol=1e-5):
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tol, atol=tol)


# ---- activations
# ------------------------------------------------------------------------------------

AT = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]
# printed by MindSpore 2.10
ACTIVATIONS = {
    "relu": [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0],
    "relu6": [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0],
    "silu": [-0.142278, -0.268942, -0.18877, 0.0, 0.31123, 0.731059, 2.857722],
    "tanh": [-0.995056, -0.761594, -0.462117, 0.0, 0.462117, 0.761594, 0.995056],
    "gelu": [-0.003637, -0.158808, -0.154286, 0.0, 0.345714, 0.841192, 2.996363],
    "elu": [-0.950213, -0.632121, -0.39347, 0.0, 0.5, 1.0, 3.0],
    "sigmoid": [0.047426, 0.268942, 0.377541, 0.5, 0.622459, 0.731059, 0.952574],
    "softsign": [-0.75, -0.5, -0.333333, 0.0, 0.333333, 0.5, 0.75],
    "prelu": [-0.75, -0.25, -0.125, 0.0, 0.5, 1.0, 3.0],
    "leakyrelu": [-0.6, -0.2, -0.1, 0.0, 0.5, 1.0, 3.0],
    "hswish": [0.0, -0.333333, -0.208333, 0.0, 0.291667, 0.666667, 3.0],
    "hsigmoid": [0.0, 0.333333, 0.416667, 0.5, 0.583333, 0.666667, 1.0],
    "logsigmoid": [-3.048587, -1.313261, -0.974077, -0.693147, -0.474077, -0.313261, -0.048587],
    "softshrink": [-2.5, -0.5, 0.0, 0.0, 0.0, 0.5, 2.5],
    "hshrink": [-3.0, -1.0, 0.0, 0.0, 0.0, 1.0, 3.0],
    "mish": [-0.145647, -0.303401, -0.220744, 0.0, 0.375245, 0.865098, 2.986535],
    "fast_gelu": [-0.018071, -0.154204, -0.149612, 0.0, 0.350388, 0.845796, 2.981929],
    "tanhshrink": [-2.004944, -0.238406, -0.037883, 0.0, 0.037883, 0.238406, 2.004944],
    "hardtanh": [-1.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0],
    "softmax": [0.00188, 0.013894, 0.022908, 0.037769, 0.06227, 0.102667, 0.758611],
    "logsoftmax": [-6.276265, -4.276265, -3.776265, -3.276265, -2.776265, -2.276265, -0.276265],
    "softmin": [0.758611, 0.102667, 0.06227, 0.037769, 0.022908, 0.013894, 0.00188],
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    close(nn.get_activation(name)(Tensor(AT)), ACTIVATIONS[name], 2e-6)


# ---- convolution
# ------------------------------------------------------------------------------------


def conv_numpy(x, w, stride, pairs, dilation, groups):
    """Compute the convolution of (N, C, H, W) by its definition in NumPy."""
    x = np.pad(x, [(0, 0), (0, 0), *pairs])
    n, _, h, wd = x.shape
    o, i, kh, kw = w.shape
    rows = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (wd - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, rows, columns), np.float64)
    for f in range(o):
        first = f // (o // groups) * i
        for r in range(rows):
            for c in range(columns):
                top, left = r * stride[0], c * stride[1]
                part = x[:, first : first + i, top : top + dilation[0] * (kh - 1) + 1 : dilation[0],
                         left : left + dilation[1] * (kw - 1) + 1 : dilation[1]]  # fmt: skip
                out[:, f, r, c] = (part * w[f]).sum((1, 2, 3))
    return out


CONVS = {
    "same": (dict(kernel_size=3), ((1, 1), (1, 1))),
    "same, stride": (dict(kernel_size=3, stride=2), ((1, 1), (0, 1))),
    "valid": (dict(kernel_size=3, pad_mode="valid"), ((0, 0), (0, 0))),
    "pad": (dict(kernel_size=(3, 2), pad_mode="pad", padding=(1, 2, 0, 1)), ((1, 2), (0, 1))),
    "dilation": (dict(kernel_size=2, dilation=2, pad_mode="valid"), ((0, 0), (0, 0))),
    "groups": (dict(kernel_size=3, group=2, pad_mode="valid", stride=(2, 1)), ((0, 0), (0, 0))),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVS)
def test_conv2d(name):
    options, pairs = CONVS[name]
    layer = nn.Conv2d(4, 6, has_bias=True, **options)
    x = rand(2, 4, 7, 6)
    wanted = conv_numpy(
        x, layer.weight.asnumpy(), layer.stride, pairs, layer.dilation, layer.group
    ) + layer.bias.asnumpy().reshape(1, 6, 1, 1)
    close(layer(Tensor(x)), wanted)


def test_conv2d_nhwc_and_conv1d():
    x = rand(2, 4, 7, 6)
    first = nn.Conv2d(4, 6, 3)
    last = nn.Conv2d(4, 6, 3, weight_init=Tensor(first.weight.asnumpy()), data_format="NHWC")
    close(last(Tensor(x.transpose(0, 2, 3, 1))), first(Tensor(x)).asnumpy().transpose(0, 2, 3, 1))
    line = nn.Conv1d(4, 6, 3, stride=2)
    assert line.weight.shape == (6, 4, 1, 3)
    wanted = conv_numpy(x[:, :, :1], line.weight.asnumpy(), (1, 2), ((0, 0), (0, 1)), (1, 1), 1)
    close(line(Tensor(x[:, :, 0])), wanted[:, :, 0])


TRANSPOSED = {
    "same": (dict(stride=2), (8, 6)),
    "valid": (dict(stride=2, pad_mode="valid"), (9, 7)),
    "valid, small kernel": (dict(kernel_size=1, stride=2, pad_mode="valid"), (8, 6)),
    "pad": (dict(stride=2, pad_mode="pad", padding=1), (7, 5)),
    "output padding": (dict(stride=2, pad_mode="pad", padding=1, output_padding=1), (8, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution_shapes(name):
    options, wanted = TRANSPOSED[name]
    layer = nn.Conv2dTranspose(4, 6, **{"kernel_size": 3, **options})
    assert layer(Tensor(rand(2, 4, 4, 3))).shape == (2, 6, *wanted)
    assert layer.weight.shape[:2] == (4, 6)


def test_transposed_convolution_values():
    """As in MindSpore 2.10, output_padding adds zeros in 2-D, after the bias, and values in 3-D."""
    options = dict(stride=2, pad_mode="pad", padding=1, output_padding=1, has_bias=True,
                   weight_init="ones", bias_init="ones")  # fmt: skip
    out = nn.Conv2dTranspose(1, 1, 3, **options)(ops.ones((1, 1, 2, 2), ms.float32))
    assert out.asnumpy()[0, 0].tolist() == [[2, 3, 2, 0], [3, 5, 3, 0], [2, 3, 2, 0], [0, 0, 0, 0]]
    out = nn.Conv3dTranspose(1, 1, 3, **options)(ops.ones((1, 1, 2, 2, 2), ms.float32))
    assert out.asnumpy()[0, 0, -1].tolist() == [
        [2, 3, 2, 2],
        [3, 5, 3, 3],
        [2, 3, 2, 2],
        [2, 3, 2, 2],
    ]


def test_transposed_convolution_is_the_gradient_of_convolution():
    forward = nn.Conv2d(6, 4, 3, stride=2, pad_mode="pad", padding=1)
    back = nn.Conv2dTranspose(
        4, 6, 3, stride=2, pad_mode="pad", padding=1, weight_init=Tensor(forward.weight.asnumpy())
    )
    x, dout = Tensor(rand(2, 6, 7, 5)), Tensor(rand(2, 4, 4, 3, seed=1))
    close(back(dout), ms.grad(lambda x: (forward(x) * dout).sum())(x).asnumpy())


# ---- pooling
# ----------------------------------------------------------------------------------------

# printed by MindSpore 2.10 for the numbers 0 to 15 in 4 rows
POOLS = {
    "avg same": (nn.AvgPool2d(3, 2, "same"), [[5, 6.5], [11, 12.5]]),
    "avg pad": (nn.AvgPool2d(3, 2, "pad", 1), [[10 / 9, 24 / 9], [51 / 9, 10]]),
    "avg pad not counted": (
        nn.AvgPool2d(3, 2, "pad", 1, count_include_pad=False),
        [[2.5, 4], [8.5, 10]],
    ),
    "avg ceil": (nn.AvgPool2d(3, 2, "pad", 0, ceil_mode=True), [[5, 6.5], [11, 12.5]]),
    "avg divisor": (nn.AvgPool2d(2, 2, "pad", divisor_override=3), [[10 / 3, 6], [14, 50 / 3]]),
    "max same": (nn.MaxPool2d(3, 2, "same"), [[10, 11], [14, 15]]),
    "max ceil": (nn.MaxPool2d(3, 2, "pad", 0, ceil_mode=True), [[10, 11], [14, 15]]),
    "max valid": (nn.MaxPool2d(3), [[10, 11], [14, 15]]),
    "adaptive avg": (
        nn.AdaptiveAvgPool2d(3),
        [[2.5, 3.5, 4.5], [6.5, 7.5, 8.5], [10.5, 11.5, 12.5]],
    ),
    "adaptive avg to one": (nn.AdaptiveAvgPool2d(1), [[7.5]]),
    "adaptive avg, one axis kept": (nn.AdaptiveAvgPool2d((1, None)), [[6, 7, 8, 9]]),
    "adaptive max": (nn.AdaptiveMaxPool2d(3), [[5, 6, 7], [9, 10, 11], [13, 14, 15]]),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name):
    layer, wanted = POOLS[name]
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    close(layer(Tensor(x))[0, 0], wanted)
    if not name.startswith("adaptive"):
        close(layer(Tensor(x[0]))[0], wanted)  # without a batch axis


def test_max_pool_indices():
    x = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    _, indices = nn.MaxPool2d(2, 2, return_indices=True)(x)
    assert indices.asnumpy()[0, 0].tolist() == [[5, 7], [13, 15]] and indices.dtype is ms.int64
    _, indices = nn.AdaptiveMaxPool2d(3, True)(x)
    assert indices.asnumpy()[0, 0].tolist() == [[5, 6, 7], [9, 10, 11], [13, 14, 15]]


@pytest.mark.parametrize("axes", [1, 3])
def test_pooling_of_other_ranks(axes):
    x = rand(2, 3, *(4,) * axes)
    parts = x.reshape(2, 3, *(2, 2) * axes)
    inner = tuple(range(3, 3 + 2 * axes, 2))
    close(getattr(nn, f"MaxPool{axes}d")(2, 2)(Tensor(x)), parts.max(inner))
    close(getattr(nn, f"AvgPool{axes}d")(2, 2)(Tensor(x)), parts.mean(inner))
    close(getattr(nn, f"AdaptiveAvgPool{axes}d")(2)(Tensor(x)), parts.mean(inner))
    close(getattr(nn, f"AdaptiveMaxPool{axes}d")(2)(Tensor(x)), parts.max(inner))


# ---- normalisation
# ----------------------------------------------------------------------------------


def normal(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.mark.parametrize(
    "layer, shape", [(nn.BatchNorm1d, (5, 3)), (nn.BatchNorm1d, (5, 3, 2)),
                     (nn.BatchNorm2d, (4, 3, 2, 2)),
                     (nn.BatchNorm3d, (4, 3, 2, 2, 1)), (nn.SyncBatchNorm, (4, 3, 2, 2))],
)  # fmt: skip
def test_batch_norm(layer, shape):
    """J17: `set_train`, `self.training`, Dropout and BatchNorm phase"""
    net, x = layer(3, momentum=0.8), rand(*shape)
    close(net(Tensor(x)), x / np.sqrt(1 + 1e-5))
    net.set_train()
    axes = (0, *range(2, len(shape)))
    close(net(Tensor(x)), normal(x, axes, 1e-5))
    close(net.moving_mean, 0.2 * x.mean(axes))
    close(net.moving_variance, 0.8 + 0.2 * x.var(axes, ddof=1))
    assert [p.name for p in net.get_parameters()] == ["mean", "variance", "gamma", "beta"]
    assert len(net.trainable_params()) == 2 and not layer(3, affine=False).trainable_params()


def test_batch_statistics_on_request():
    x = rand(4, 3, 2, 2)
    always = nn.BatchNorm2d(3, use_batch_statistics=True)
    close(always(Tensor(x)), normal(x, (0, 2, 3), 1e-5))
    assert always.moving_mean.asnumpy().any()
    never = nn.BatchNorm2d(3, use_batch_statistics=False).set_train()
    close(never(Tensor(x)), x / np.sqrt(1 + 1e-5))
    assert not never.moving_mean.asnumpy().any()


NORMS = {
    "layer": (lambda: nn.LayerNorm((4,)), lambda x: normal(x, (3,), 1e-7)),
    "layer, two axes": (
        lambda: nn.LayerNorm((3, 4), begin_norm_axis=2, begin_params_axis=2),
        lambda x: normal(x, (2, 3), 1e-7),
    ),
    "layer, axes differ": (
        lambda: nn.LayerNorm((4,), begin_norm_axis=1, begin_params_axis=3),
        lambda x: normal(x, (1, 2, 3), 1e-7),
    ),
    "group": (
        lambda: nn.GroupNorm(2, 6),
        lambda x: normal(x.reshape(2, 2, 3, 3, 4), (2, 3, 4), 1e-5).reshape(x.shape),
    ),
    "instance": (lambda: nn.InstanceNorm2d(6), lambda x: normal(x, (2, 3), 1e-5)),
}


@pytest.mark.parametrize("name", NORMS)
def test_normalization_layers(name):
    make, formula = NORMS[name]
    x = rand(2, 6, 3, 4)
    close(make()(Tensor(x)), formula(x))


# ---- the rest
# ---------------------------------------------------------------------------------------

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
OTHERS = {
    "flatten": (nn.Flatten(), rand(2, 3, 4), lambda x: x.reshape(2, 12)),
    "flatten some": (nn.Flatten(0, 1), rand(2, 3, 4), lambda x: x.reshape(6, 4)),
    "unflatten": (nn.Unflatten(1, (3, 2)), rand(2, 6), lambda x: x.reshape(2, 3, 2)),
    "identity": (nn.Identity(), rand(2), lambda x: x),
    "norm": (nn.Norm(1), rand(2, 3), lambda x: np.linalg.norm(x, axis=1)),
    "pad": (nn.Pad(((0, 0), (1, 2))), rand(2, 3), lambda x: np.pad(x, ((0, 0), (1, 2)))),
    "pad reflect": (
        nn.Pad(((0, 0), (1, 2)), "REFLECT"),
        rand(2, 3),
        lambda x: np.pad(x, ((0, 0), (1, 2)), "reflect"),
    ),
    "pad symmetric": (
        nn.Pad(((0, 0), (1, 2)), "SYMMETRIC"),
        rand(2, 3),
        lambda x: np.pad(x, ((0, 0), (1, 2)), "symmetric"),
    ),
    "reflection": (
        nn.ReflectionPad2d((1, 2, 0, 3)),
        IMAGE,
        lambda x: np.pad(x, ((0, 0), (0, 0), (0, 3), (1, 2)), "reflect"),
    ),
    "replication": (
        nn.ReplicationPad2d(1),
        IMAGE,
        lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "edge"),
    ),
    "constant": (
        nn.ConstantPad2d((1, -1, 0, 2), 2.5),
        IMAGE,
        lambda x: np.pad(x[..., :-1], ((0, 0), (0, 0), (0, 2), (1, 0)), constant_values=2.5),
    ),
    "zero": (nn.ZeroPad2d(1), IMAGE, lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))),
    "pixel shuffle": (
        nn.PixelShuffle(2),
        np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2),
        lambda x: [[[[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]]],
    ),
    "unfold": (
        nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1]),
        IMAGE,
        lambda x: x.reshape(2, 2, 2, 2).transpose(1, 3, 0, 2).reshape(1, 4, 2, 2),
    ),
    "channel shuffle": (nn.ChannelShuffle(2), rand(1, 4, 2), lambda x: x[:, [0, 2, 1, 3]]),
    "bilinear": (nn.ResizeBilinear(), IMAGE, None),
    "dropout outside training": (nn.Dropout(p=0.5), rand(3), lambda x: x),
    "tril": (nn.Tril(), rand(3, 3), np.tril),
    "triu": (nn.Triu(), rand(3, 3), np.triu),
    "roll": (nn.Roll(1, 0), rand(3, 2), lambda x: np.roll(x, 1, 0)),
    "log of sums": (nn.ReduceLogSumExp(1), rand(2, 3), lambda x: np.log(np.exp(x).sum(1))),
    "penalty": (nn.L1Regularizer(0.5), rand(2, 3), lambda x: 0.5 * np.abs(x).sum()),
    "central crop": (nn.CentralCrop(0.5), rand(1, 4, 4), lambda x: x[:, 1:3, 1:3]),
    "one hot": (nn.OneHot(depth=3), np.array([2, 0], np.int32), lambda x: np.eye(3)[x]),
}


@pytest.mark.parametrize("name", [n for n in OTHERS if OTHERS[n][2]])
def test_other_layers(name):
    layer, x, formula = OTHERS[name]
    close(layer(Tensor(x)), formula(x), 1e-6)


def test_moments_and_image_gradients():
    x = rand(2, 3)
    mean, variance = nn.Moments(axis=1)(Tensor(x))
    close(mean, x.mean(1))
    close(variance, x.var(1))
    down, right = nn.ImageGradients()(Tensor(np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)))
    assert down.asnumpy()[0, 0].tolist() == [[2, 2], [0, 0]] and right.asnumpy()[0, 1].tolist() == [
        [1, 0],
        [1, 0],
    ]


def test_combined_layers():
    layer = nn.Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu")
    assert [p.name for p in layer.get_parameters()] == [
        "conv.weight",
        "batchnorm.moving_mean",
        "batchnorm.moving_variance",
        "batchnorm.gamma",
        "batchnorm.beta",
    ]
    assert (layer(Tensor(rand(1, 1, 4, 4))).asnumpy() >= 0).all()
    inner = nn.Dense(3, 2)
    x = rand(4, 5, 3)
    close(nn.TimeDistributed(inner, 1)(Tensor(x)), inner(Tensor(x)).asnumpy())


def test_pixel_unshuffle_inverts_pixel_shuffle():
    x = Tensor(rand(2, 8, 3, 2))
    close(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)), x.asnumpy())


def test_ssim_and_psnr():
    a, b = np.random.RandomState(0).rand(2, 1, 16, 16), np.random.RandomState(1).rand(2, 1, 16, 16)
    a, b = a.astype(np.float32), b.astype(np.float32)
    close(nn.PSNR()(Tensor(a), Tensor(b)), -10 * np.log10(((a - b) ** 2).mean((1, 2, 3))))
    assert (nn.SSIM()(Tensor(a), Tensor(b)).asnumpy() < 0.2).all()
    close(nn.SSIM()(Tensor(a), Tensor(a)), [1.0, 1.0])


def test_dense():
    """J02: `nn.Dense(in, out, weight_init, bias_init, has_bias, activation)`"""
    plain = nn.Dense(3, 2, "ones", ms.common.initializer.Constant(5), True, "relu")
    close(plain(Tensor([[1.0, 2, 3], [-9, 0, 0]])), [[11, 11], [0, 0]])
    bare = nn.Dense(3, 2, Tensor(np.eye(2, 3), ms.float32), has_bias=False)
    close(bare(Tensor([1.0, 2, 3])), [1, 2])
    layer = nn.Dense(3, 2, activation="relu")
    x = rand(4, 5, 3)
    close(layer(Tensor(x)), np.maximum(x @ layer.weight.asnumpy().T + layer.bias.asnumpy(), 0))
    assert layer(Tensor(x[0, 0])).shape == (2,)
    assert nn.Dense(3, 2, dtype=ms.float16).weight.dtype is ms.float16
    assert np.abs(nn.Dense(10000, 2).weight.asnumpy()).max() <= 0.01


def test_embedding():
    layer = nn.Embedding(4, 3, padding_idx=1)
    table = layer.embedding_table.asnumpy()
    assert not table[1].any() and layer.embedding_table.name == "embedding_table"
    ids = np.array([[3, 1], [0, 2]], np.int32)
    close(layer(Tensor(ids)), table[ids])
    close(nn.Embedding(4, 3, True, Tensor(table))(Tensor(ids)), table[ids])


def test_dropout_in_training():
    """J17: `set_train`, `self.training`, Dropout and BatchNorm phase"""
    ms.set_seed(7)
    out = nn.Dropout(p=0.25).set_train()(ops.ones((10000,), ms.float32)).asnumpy()
    assert set(np.unique(out.round(4))) == {0.0, np.float32(1 / 0.75).round(4)}
    assert abs((out == 0).mean() - 0.25) < 0.02
    assert nn.Dropout(0.75)._drop == nn.Dropout(p=0.25)._drop
    out = nn.Dropout2d(0.5).set_train()(ops.ones((4, 8, 3, 3), ms.float32)).asnumpy()
    assert set(out.reshape(32, 9).sum(1)) <= {0.0, 18.0}


# ---- errors
# -----------------------------------------------------------------------------------------

x2, x4 = Tensor(rand(2, 3)), Tensor(rand(1, 3, 4, 4))
ERRORS = {
    "dense of a text": (lambda: nn.Dense("a", 3), TypeError, "in_channels='a'; wanted an int"),
    "dense of nothing": (lambda: nn.Dense(3, 0), ValueError, "out_channels=0"),
    "dense, weight": (
        lambda: nn.Dense(3, 2, weight_init=Tensor(rand(3, 2))),
        ValueError,
        r"wanted \(out_channels, in_channels\) = \(2, 3\)",
    ),
    "dense, input": (lambda: nn.Dense(4, 2)(x2), ValueError, r"\(2, 3\)"),
    "dense, activation": (lambda: nn.Dense(4, 2, activation=3), TypeError, "activation=3"),
    "unknown activation": (lambda: nn.get_activation("foo"), KeyError, "foo"),
    "pad_mode": (lambda: nn.Conv2d(3, 4, 3, pad_mode="x"), ValueError, "pad_mode='x'"),
    "padding without pad": (
        lambda: nn.Conv2d(3, 4, 3, padding=1),
        ValueError,
        "padding=1 with pad_mode='same'",
    ),
    "groups": (lambda: nn.Conv2d(3, 4, 3, group=2), ValueError, "group=2"),
    "kernel": (lambda: nn.Conv2d(3, 4, 0), ValueError, "kernel_size=0"),
    "conv, channels": (lambda: nn.Conv2d(5, 4, 3)(x4), ValueError, "wanted 5 channels"),
    "conv, rank": (lambda: nn.Conv2d(3, 4, 3)(x2), ValueError, "wanted 4-D"),
    "dropout of all": (
        lambda: nn.Dropout(p=1.0),
        ValueError,
        r"p=1.0; wanted a number in \[0, 1\)",
    ),
    "keep nothing": (
        lambda: nn.Dropout(0.0),
        ValueError,
        r"keep_prob=0.0; wanted a number in \(0, 1\]",
    ),
    "batch norm of nothing": (lambda: nn.BatchNorm2d(0), ValueError, "num_features=0"),
    "momentum": (lambda: nn.BatchNorm2d(3, momentum=2), ValueError, "momentum=2"),
    "batch norm, rank": (lambda: nn.BatchNorm2d(3)(x2), ValueError, "wanted 4-D"),
    "layer norm of an int": (lambda: nn.LayerNorm(3), TypeError, "normalized_shape=3"),
    "layer norm, shape": (lambda: nn.LayerNorm((4,))(x2), ValueError, r"shape, \(4,\), on"),
    "group norm": (lambda: nn.GroupNorm(2, 3), ValueError, "num_channels=3 for num_groups=2"),
    "pool of nothing": (lambda: nn.MaxPool2d(0), ValueError, "kernel_size=0"),
    "pool too large": (lambda: nn.MaxPool2d(5)(x4), ValueError, "kernel_size=5"),
    "pool, padding": (lambda: nn.MaxPool2d(2, 2, "pad", 2), ValueError, "at most half"),
    "embedding, padding": (lambda: nn.Embedding(4, 2, padding_idx=9), ValueError, "padding_idx=9"),
    "heads": (lambda: nn.MultiheadAttention(8, 3), ValueError, "embed_dim=8 for num_heads=3"),
    "lstm, rank": (lambda: nn.LSTM(3, 4)(x2), ValueError, "wanted 3-D"),
    "lstm cell, states": (lambda: nn.LSTMCell(3, 4)(x2, x2), TypeError, "pair"),
    "reflection": (lambda: nn.ReflectionPad2d(4)(x4), ValueError, "at most 3 to mirror"),
    "shuffle": (lambda: nn.PixelShuffle(2)(x4), ValueError, "multiples of 4"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_layers(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


@pytest.mark.parametrize("dim, eps", [(1, 1e-8), (0, 1e-8), (-1, 2.0)])
def test_the_two_cosine_similarities(dim, eps):
    """`nn.CosineSimilarity` is a metric, `nn.layer.CosineSimilarity` a layer."""
    assert issubclass(nn.CosineSimilarity, nn.Metric)
    rng = np.random.RandomState(0)
    x, y = (rng.randn(3, 4).astype(np.float32) for _ in range(2))
    layer = nn.layer.CosineSimilarity(dim, eps)
    norms = np.sqrt((x * x).sum(dim) * (y * y).sum(dim))
    wanted = (x * y).sum(dim) / np.maximum(norms, eps)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        found = layer(ms.Tensor(x), ms.Tensor(y)).asnumpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    zero = ms.ops.zeros((3, 4), ms.float32)
    np.testing.assert_array_equal(layer(zero, zero).asnumpy(), np.zeros_like(wanted))
