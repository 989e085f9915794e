"""The layers of `duograph.mint`, with PyTorch's names and arguments; each is a Cell.

Users import it as `duograph.mint.nn`; its functions are in `duograph.mint.nn.functional`. Layers
whose arguments are the same in `duograph.nn` are imported from there.
"""

from __future__ import annotations

from ...nn import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    Cell,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    Identity,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReLU,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    SoftMarginLoss,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)  # fmt: skip
from ...nn import HShrink as Hardshrink
from ...nn import HSigmoid as Hardsigmoid
from ...nn import HSwish as Hardswish
from ...nn import SoftShrink as Softshrink
from . import functional
from .layer.activation import (
    ELU,
    GELU,
    GLU,
    SELU,
    Hardtanh,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
    Threshold,
)  # fmt: skip
from .layer.basic import (
    Dropout,
    Dropout2d,
    Embedding,
    Flatten,
    Fold,
    Linear,
    PixelShuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)  # fmt: skip
from .layer.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose2d
from .layer.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)  # fmt: skip
from .layer.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    LayerNorm,
    SyncBatchNorm,
)  # fmt: skip
from .layer.pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool2d, MaxUnpool2d

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Cell", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "CosineEmbeddingLoss",
    "CrossEntropyLoss", "Dropout", "Dropout2d", "ELU", "Embedding", "Flatten", "Fold", "GELU",
    "GLU", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity",
    "KLDivLoss", "L1Loss", "LayerNorm", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MaxPool2d", "MaxUnpool2d", "Mish", "NLLLoss", "PReLU", "PixelShuffle", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "SELU", "SiLU", "Sigmoid", "SmoothL1Loss",
    "SoftMarginLoss", "Softmax", "Softshrink", "SyncBatchNorm", "Tanh", "Threshold", "Unfold",
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d", "functional",
]  # fmt: skip
