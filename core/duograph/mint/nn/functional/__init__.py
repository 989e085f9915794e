"""Functions of `duograph.mint.nn.functional`: activations, losses, convolutions, normalisation.

Users import it as `duograph.mint.nn.functional` or `duograph.mint.functional`, and the layers of
`duograph.mint.nn` call it. A function that has the same signature in `duograph.ops` is imported
from there.
"""

from __future__ import annotations

from types import FunctionType

from ....ops import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    conv_transpose2d,
    cosine_embedding_loss,
    cross_entropy,
    embedding,
    fold,
    group_norm,
    hardshrink,
    hardsigmoid,
    hardswish,
    interpolate,
    l1_loss,
    layer_norm,
    mish,
    mse_loss,
    normalize,
    pixel_shuffle,
    prelu,
    relu,
    sigmoid,
    soft_margin_loss,
    softshrink,
    tanh,
    unfold,
)  # fmt: skip
from ....ops import dense as _dense
from ....ops.refusals import refusing as _refusing
from . import activation, loss, windows
from .activation import (
    dropout,
    dropout2d,
    elu,
    elu_,
    gelu,
    glu,
    hardtanh,
    hardtanh_,
    leaky_relu,
    log_softmax,
    logsigmoid,
    relu6,
    relu_,
    selu,
    sigmoid_,
    silu,
    softmax,
    softplus,
    threshold,
    threshold_,
)  # fmt: skip
from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
    nll_loss,
    smooth_l1_loss,
)  # fmt: skip
from .windows import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    batch_norm,
    conv1d,
    conv2d,
    conv3d,
    flatten,
    grid_sample,
    max_pool2d,
    max_unpool2d,
    one_hot,
    pad,
    upsample,
)  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d",
    "conv_transpose2d", "cosine_embedding_loss", "cross_entropy", "dropout", "dropout2d", "elu",
    "elu_", "embedding", "flatten", "fold", "gelu", "glu", "grid_sample", "group_norm",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool2d",
    "max_unpool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pixel_shuffle", "prelu", "relu", "relu6", "relu_", "selu", "sigmoid", "sigmoid_", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus", "softshrink", "tanh",
    "threshold", "threshold_", "unfold", "upsample",
]  # fmt: skip

linear = _refusing(_dense, __name__, f"{__name__}.linear")
for _module in (activation, loss, windows):
    for _name in _module.__all__:
        if isinstance(getattr(_module, _name), FunctionType):
            globals()[_name] = _refusing(getattr(_module, _name), __name__)
