"""Every layer and loss of `nn` in GRAPH_MODE: results, gradients and states are those of eager
mode, bit for bit.

C21: One rule serves eager tape and graph AD alike
D48, D49: moving averages updated in compiled code persist; captured parameters are live
"""

from __future__ import annotations

import numpy as np
import pytest
from duograph import nn

RNG = np.random.RandomState(0)


def rand(*shape):
    return RNG.randn(*shape).astype(np.float32)


def prob(*shape):
    return RNG.uniform(0.1, 0.9, shape).astype(np.float32)


V, M, I1, I2, I3 = rand(6), rand(4, 6), rand(2, 4, 6), rand(2, 4, 6, 6), rand(2, 4, 5, 6, 6)
P, T = prob(6, 5), prob(6, 5)
LABELS = np.array([0, 3, 2, 4, 1, 1], np.int32)
SIGNS = np.array([1, -1, 1, 1, -1, -1], np.int32)
SIGN_GRID = np.where(rand(6, 5) > 0, 1.0, -1.0).astype(np.float32)
A, B = rand(6, 5), rand(6, 5)
SEQ = rand(5, 2, 3)  # time, batch, features
TOKENS = rand(4, 2, 8)
IMAGE = prob(1, 1, 12, 12)

# how a layer is made -> its inputs; those that are floating are differentiated, as are the weights
LAYERS = {
    # activations
    "nn.CELU(0.7)": (M,),
    "nn.ELU()": (M,),
    "nn.FastGelu()": (M,),
    "nn.GELU()": (M,),
    "nn.GELU(False)": (M,),
    "nn.GLU()": (M,),
    "nn.Hardtanh()": (M,),
    "nn.HShrink()": (M,),
    "nn.HSigmoid()": (M,),
    "nn.HSwish()": (M,),
    "nn.LeakyReLU()": (M,),
    "nn.LogSigmoid()": (M,),
    "nn.LogSoftmax()": (M,),
    "nn.Mish()": (M,),
    "nn.PReLU(6)": (M,),
    "nn.ReLU()": (M,),
    "nn.ReLU6()": (M,),
    "nn.RReLU()": (M,),
    "nn.SeLU()": (M,),
    "nn.Sigmoid()": (M,),
    "nn.SiLU()": (M,),
    "nn.Softmax()": (M,),
    "nn.Softmax(0)": (M,),
    "nn.Softmax2d()": (I2,),
    "nn.Softmin()": (M,),
    "nn.Softplus()": (M,),
    "nn.SoftShrink()": (M,),
    "nn.Softsign()": (M,),
    "nn.Tanh()": (M,),
    "nn.Tanhshrink()": (M,),
    "nn.Threshold(0.1, 20.0)": (M,),
    # dense, embedding, shapes
    "nn.Dense(6, 3)": (M,),
    "nn.Dense(6, 3, has_bias=False, activation='tanh')": (M,),
    "nn.Dense(6, 3) ": (I1,),
    "nn.MatInverse()": (np.array([[4, 1], [1, 3]], np.float32),),
    "nn.BiDense(6, 6, 3)": (M, M + 1),
    "nn.Embedding(7, 3)": (LABELS,),
    "nn.Embedding(7, 3, padding_idx=1)": (LABELS,),
    "nn.Embedding(7, 3, use_one_hot=True)": (LABELS,),
    "nn.OneHot(depth=5)": (LABELS,),
    "nn.Flatten()": (I1,),
    "nn.Flatten(0, 1)": (I1,),
    "nn.Unflatten(1, (3, 2))": (M,),
    "nn.Identity()": (M,),
    "nn.Roll(1, 0)": (M,),
    "nn.Tril()": (M,),
    "nn.Triu()": (M,),
    "nn.Norm(1)": (M,),
    "nn.Range(1, 5)": (),
    "nn.MatMul(False, True)": (M, M + 1),
    "nn.ClipByNorm()": (M, np.float32(0.5).reshape(())),
    "nn.L1Regularizer(0.5)": (M,),
    "nn.Moments(axis=1)": (M,),
    "nn.ReduceLogSumExp(1)": (M,),
    "nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1])": (I2,),
    "nn.DenseBnAct(6, 3, has_bn=True, activation='relu')": (M,),
    "nn.TimeDistributed(nn.Dense(3, 4), 1)": (SEQ,),
    # dropout
    "nn.Dropout(p=0.4)": (M,),
    "nn.Dropout1d(0.4)": (I1,),
    "nn.Dropout2d(0.4)": (I2,),
    "nn.Dropout3d(0.4)": (I3,),
    # convolutions
    "nn.Conv1d(4, 6, 3)": (I1,),
    "nn.Conv2d(4, 6, 3, has_bias=True)": (I2,),
    "nn.Conv2d(4, 6, 3, 2, 'valid', group=2)": (I2,),
    "nn.Conv2d(4, 6, (3, 2), pad_mode='pad', padding=(1, 2, 0, 1), dilation=2)": (I2,),
    "nn.Conv3d(4, 2, 2)": (I3,),
    "nn.Conv1dTranspose(4, 6, 3, 2)": (I1,),
    "nn.Conv2dTranspose(4, 6, 3, 2)": (I2,),
    "nn.Conv3dTranspose(4, 2, 2)": (I3,),
    "nn.Conv2dBnAct(4, 6, 3, has_bn=True, activation='relu')": (I2,),
    # normalisation
    "nn.BatchNorm1d(6)": (M,),
    "nn.BatchNorm2d(4)": (I2,),
    "nn.BatchNorm3d(4)": (I3,),
    "nn.SyncBatchNorm(4)": (I2,),
    "nn.BatchNorm2d(4, use_batch_statistics=True)": (I2,),
    "nn.BatchNorm2d(4, affine=False)": (I2,),
    "nn.GroupNorm(2, 4)": (I2,),
    "nn.InstanceNorm1d(4)": (I1,),
    "nn.InstanceNorm2d(4)": (I2,),
    "nn.InstanceNorm3d(4)": (I3,),
    "nn.LayerNorm((6,))": (M,),
    "nn.LayerNorm((4, 6), 1, 1)": (I1,),
    # pooling
    "nn.AvgPool1d(2, 2)": (I1,),
    "nn.AvgPool2d(3, 2, 'same')": (I2,),
    "nn.AvgPool3d(2, 2)": (I3,),
    "nn.MaxPool1d(2, 2)": (I1,),
    "nn.MaxPool2d(3, 2, 'same')": (I2,),
    "nn.MaxPool3d(2, 2)": (I3,),
    "nn.MaxPool2d(2, 2, return_indices=True)": (I2,),
    "nn.AdaptiveAvgPool1d(3)": (I1,),
    "nn.AdaptiveAvgPool2d(3)": (I2,),
    "nn.AdaptiveAvgPool3d(3)": (I3,),
    "nn.AdaptiveMaxPool1d(3)": (I1,),
    "nn.AdaptiveMaxPool2d(3)": (I2,),
    "nn.AdaptiveMaxPool3d(3)": (I3,),
    "nn.LPPool1d(2.0, 2)": (np.abs(I1),),
    "nn.LPPool2d(2.0, 2)": (np.abs(I2),),
    # padding and images
    "nn.Pad(((0, 1), (2, 0)))": (M,),
    "nn.ConstantPad1d(1, 2.0)": (I1,),
    "nn.ConstantPad2d((1, -1, 0, 2), 0.5)": (I2,),
    "nn.ConstantPad3d(1, 0.5)": (I3,),
    "nn.ReflectionPad1d(1)": (I1,),
    "nn.ReflectionPad2d((1, 2, 0, 3))": (I2,),
    "nn.ReflectionPad3d(1)": (I3,),
    "nn.ReplicationPad1d(1)": (I1,),
    "nn.ReplicationPad2d(1)": (I2,),
    "nn.ReplicationPad3d(1)": (I3,),
    "nn.ZeroPad1d(1)": (I1,),
    "nn.ZeroPad2d(1)": (I2,),
    "nn.ZeroPad3d(1)": (I3,),
    "nn.CentralCrop(0.5)": (rand(3, 8, 8),),
    "nn.ChannelShuffle(2)": (I2,),
    "nn.ImageGradients()": (IMAGE,),
    "nn.PixelShuffle(2)": (I2,),
    "nn.PixelUnshuffle(2)": (I2,),
    "nn.PSNR()": (IMAGE, IMAGE * 0.5),
    "nn.SSIM()": (IMAGE, IMAGE * 0.5),
    "nn.Upsample(scale_factor=2.0, recompute_scale_factor=True)": (I2,),
    # recurrent and attention
    "nn.RNNCell(3, 4)": (rand(2, 3), rand(2, 4)),
    "nn.GRUCell(3, 4)": (rand(2, 3), rand(2, 4)),
    "nn.LSTMCell(3, 4)": (rand(2, 3), (rand(2, 4), rand(2, 4))),
    "nn.RNN(3, 4)": (SEQ, rand(1, 2, 4)),
    "nn.GRU(3, 4, num_layers=2)": (SEQ, rand(2, 2, 4)),
    "nn.LSTM(3, 4, bidirectional=True)": (SEQ, (rand(2, 2, 4), rand(2, 2, 4))),
    "nn.LSTM(3, 4, batch_first=True)": (SEQ,),
    "nn.MultiheadAttention(8, 2)": (TOKENS, TOKENS, TOKENS),
    "nn.TransformerEncoderLayer(8, 2, 16)": (TOKENS,),
    "nn.TransformerDecoderLayer(8, 2, 16)": (TOKENS, TOKENS),
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)": (TOKENS,),
    "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0), 2)": (TOKENS, TOKENS),
    "nn.Transformer(8, 2, 1, 1, 16)": (TOKENS, TOKENS),
    # containers
    "nn.SequentialCell(nn.Dense(6, 3), nn.ReLU(), nn.Dense(3, 2))": (M,),
    # losses
    "nn.MSELoss()": (A, B),
    "nn.L1Loss()": (A, B),
    "nn.MAELoss()": (A, B),
    "nn.RMSELoss()": (A, B),
    "nn.SmoothL1Loss()": (A, B),
    "nn.HuberLoss()": (A, B),
    "nn.NLLLoss()": (np.log(P), LABELS),
    "nn.CrossEntropyLoss()": (A, LABELS),
    "nn.CrossEntropyLoss(label_smoothing=0.1, reduction='sum')": (A, LABELS),
    "nn.SoftmaxCrossEntropyWithLogits(True, 'mean')": (A, LABELS),
    "nn.SoftmaxCrossEntropyWithLogits()": (A, T),
    "nn.BCELoss()": (P, T),
    "nn.BCEWithLogitsLoss()": (A, T),
    "nn.MarginRankingLoss(0.2)": (A[:, 0], B[:, 0], SIGN_GRID[:, 0]),
    "nn.HingeEmbeddingLoss()": (A, SIGN_GRID),
    "nn.SoftMarginLoss()": (A, SIGN_GRID),
    "nn.KLDivLoss()": (np.log(P), T),
    "nn.MultiLabelSoftMarginLoss()": (A, T),
    "nn.PoissonNLLLoss()": (A, T),
    "nn.GaussianNLLLoss()": (A, B, P),
    "nn.CosineEmbeddingLoss(0.1)": (A, B, SIGNS),
    "nn.TripletMarginLoss()": (A, B, P),
    "nn.FocalLoss()": (A, LABELS.reshape(6, 1)),
    "nn.TripletMarginWithDistanceLoss()": (A, B, P),
    "nn.MultiMarginLoss()": (A, LABELS),
    "nn.DiceLoss()": (P, T),
    "nn.MultiClassDiceLoss()": (P, T),
    "nn.CTCLoss()": (
        np.log(prob(5, 2, 4)),
        np.array([[1, 2], [3, 1]], np.int32),
        np.array([5, 4], np.int32),
        np.array([2, 1], np.int32),
    ),
    # rates
    "nn.CosineDecayLR(0.01, 0.1, 4)": (np.int32(2).reshape(()),),
    "nn.ExponentialDecayLR(0.1, 0.9, 4)": (np.int32(2).reshape(()),),
    "nn.InverseDecayLR(0.1, 0.9, 4, True)": (np.int32(2).reshape(()),),
    "nn.WarmUpLR(0.1, 4)": (np.int32(2).reshape(()),),
    "nn.NaturalExpDecayLR(0.1, 0.9, 4)": (np.int32(2).reshape(()),),
    "nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)": (np.int32(2).reshape(()),),
}

# Cells that are no layers, and where they are tested.
ELSEWHERE = {
    "Cell": "the base class",
    "GradAccumulationCell": "tests/nn/test_micro_batches.py",
    "MicroBatchInterleaved": "tests/nn/test_micro_batches.py",
    "PipelineCell": "tests/nn/test_micro_batches.py",
    "PipelineGradReducer": "tests/parallel/test_pipeline.py",
    "SampledSoftmaxLoss": "its samples are random: tests/nn",
    "CellDict": "a container without a construct",
    "CellList": "a container without a construct",
    "LossBase": "a base class",
    "LearningRateSchedule": "a base class",
    "Optimizer": "a base class",
    "ResizeBilinear": "takes its size as a keyword: test_keyword_layers",
    "Metric": "computes on the host",
    "GraphCell": "tests/train/test_export.py",
    "TrainOneStepCell": "test_training",
    "TrainOneStepWithLossScaleCell": "test_training",
    "WithLossCell": "test_training",
    "WithEvalCell": "test_training",
    "WithGradCell": "test_training",
    "ForwardValueAndGrad": "test_training",
    "ParameterUpdate": "test_training",
    "DynamicLossScaleUpdateCell": "test_training",
    "FixedLossScaleUpdateCell": "test_training",
    "Jvp": "needs a function",
    "Vjp": "needs a function",
    "DistributedGradReducer": "needs several processes",
    "SparseToDense": "takes a sparse tensor: tests/compat/test_answers.py",
    "SparseTensorDenseMatmul": "takes a sparse tensor: tests/compat/test_answers.py",
}
OF_OLDER_PROGRAMS = """
    DiGamma EmbeddingLookup FractionalMaxPool2d FractionalMaxPool3d IGamma LBeta LGamma LRN
    MSSSIM MatDet MatrixDiag MatrixDiagPart MatrixSetDiag MaxUnpool1d MaxUnpool2d
    MaxUnpool3d MultiFieldEmbeddingLookup MultilabelMarginLoss
"""
ELSEWHERE |= dict.fromkeys(OF_OLDER_PROGRAMS.split(), "tests/nn/test_rare_layers.py")


def test_every_layer_has_a_row():
    cells = {
        name
        for name in dir(nn)
        if isinstance(c := getattr(nn, name), type) and issubclass(c, nn.Cell)
        and not (issubclass(c, nn.Optimizer) or name == "LARS")
        and not c.__module__.startswith("duograph.mint")  # tests/mint
    }  # fmt: skip
    rows = " ".join(LAYERS)
    missing = sorted(c for c in cells - set(ELSEWHERE) if f"nn.{c}(" not in rows)
    assert not missing


def _floats(inputs):
    return tuple(
        i for i, a in enumerate(inputs) if not isinstance(a, np.ndarray) or a.dtype.kind == "f"
    )


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
def test_layer_in_graph_mode_agrees_with_eager_mode(layer, train, agree):
    inputs = LAYERS[layer]
    integer = "LR(" in layer or layer.startswith(("nn.OneHot", "nn.Range"))
    agree(
        f"""
        net = f = {layer}
        net.set_train({train})
        WATCH = ("list(net.get_parameters())",)
        """,
        *inputs,
        grad=() if integer else [i for i in _floats(inputs) if isinstance(inputs[i], np.ndarray)],
        weights="" if integer else "net.trainable_params() or None",
        modes=("graph mode",),
    )


def test_keyword_layers(agree):
    agree(
        """
        resize = nn.ResizeBilinear()

        @jit
        def f(x):
            return resize(x, size=(9, 3), align_corners=True), resize(x, scale_factor=2)
        """,
        I2,
        grad=(0,),
    )


CONTAINERS = {
    "CellList, loop": (
        "nn.CellList([nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 6)])",
        "for c in self.c:\n    x = c(x)\nreturn x",
    ),
    "CellList, index": (
        "nn.CellList([nn.Dense(6, 6), nn.Tanh()])",
        "return self.c[1](self.c[0](x)) + self.c[-1](x)",
    ),
    "CellList, enumerate": (
        "nn.CellList([nn.Dense(6, 6), nn.Tanh()])",
        "for i, c in enumerate(self.c):\n    x = c(x) * (i + 1)\nreturn x",
    ),
    "CellDict": (
        "nn.CellDict({'a': nn.Dense(6, 6), 'b': nn.Tanh()})",
        "return self.c['b'](self.c['a'](x))",
    ),
    "CellDict, items": (
        "nn.CellDict({'a': nn.Dense(6, 6), 'b': nn.Tanh()})",
        "for k, c in self.c.items():\n    x = c(x)\nreturn x",
    ),
    "SequentialCell": (
        "nn.SequentialCell([nn.Dense(6, 6), nn.Tanh()])",
        "return self.c(x) + self.c[0](x)",
    ),
    "list of Cells": ("[nn.Dense(6, 6), nn.Tanh()]", "for c in self.c:\n    x = c(x)\nreturn x"),
    "tuple of Parameters": (
        "ms.ParameterTuple([Parameter(Tensor([2.0]), name='p'), Parameter(Tensor([3.0]), "
        "name='q')])",
        "for p in self.c:\n    x = x * p\nreturn x",
    ),
    "picked by a tensor": (
        "nn.CellList([nn.Dense(6, 6), nn.Dense(6, 6)])",
        "if x.sum() > 0:\n    return self.c[0](x)\nreturn self.c[1](x)",
    ),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name, agree):
    made, body = CONTAINERS[name]
    lines = "\n".join(" " * 8 + line for line in body.splitlines())
    agree(
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.c = {made}\n\n    def construct(self, x):\n{lines}\n\nnet = f = Net()\n",
        M,
        grad=(0,),
        weights="net.trainable_params() or None",
        modes=("graph mode",),
    )


def test_a_deep_network(agree):
    """Two blocks of one class have programs of their own inside one graph; residual connections,
    all kinds of layers.
    """
    agree(
        """
        class Block(nn.Cell):
            def __init__(self, width):
                super().__init__()
                self.conv = nn.Conv2d(width, width, 3, has_bias=True)
                self.norm = nn.BatchNorm2d(width)
                self.drop = nn.Dropout(p=0.3)

            def construct(self, x):
                return x + self.drop(ops.relu(self.norm(self.conv(x))))

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.blocks = nn.SequentialCell([Block(4) for _ in range(3)])
                self.head = nn.SequentialCell(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(4, 3))

            def construct(self, x):
                return self.head(self.blocks(x))

        net = f = Net()
        net.set_train()
        WATCH = ("list(net.get_parameters())",)
        """,
        I2,
        grad=(0,),
        weights="net.trainable_params()",
        modes=("graph mode",),
    )
