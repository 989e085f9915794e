"""The one module from which graph passes import the ops that they match.

The names are those of the ops, so that a pass need not know in which module an op is
defined. This module must not define anything itself.
"""

from __future__ import annotations

from ..ops.activation import (
    gelu_erf,
    gelu_erf_grad,
    gelu_tanh,
    gelu_tanh_grad,
    logsigmoid,
    logsigmoid_grad,
    mish,
    mish_grad,
    silu,
    silu_grad,
)
from ..ops.attention import attention_grad, self_attention, self_attention_grad
from ..ops.attention import attention_of as attention
from ..ops.batch_normalization import batch_moments, batch_products
from ..ops.channels_last import (
    avg_pool_channels_last,
    avg_pool_grad_channels_last,
    conv_channels_last,
    conv_input_grad_channels_last,
    conv_weight_grad_channels_last,
    max_pool_channels_last,
    max_pool_grad_channels_last,
    max_pool_indices_channels_last,
)
from ..ops.collective_primitives import all_reduce
from ..ops.comparison import equal
from ..ops.convolution import conv, conv_input_grad, conv_weight_grad
from ..ops.creation import cast_to as cast
from ..ops.creation import constant, fill, iota
from ..ops.elementwise import absolute, add, maximum, minimum, mul, neg, square, sub
from ..ops.elementwise import true_divide as div
from ..ops.gather_scatter import checked_labels_by as checked_labels
from ..ops.gather_scatter import gather_elements_by as gather_elements
from ..ops.gather_scatter import scatter_elements_add_by as scatter_elements_add
from ..ops.linalg import matmul_of as matmul
from ..ops.logic import select_by as select
from ..ops.movement import concat_by as concat
from ..ops.movement import identity
from ..ops.movement import pad_by as pad_constant
from ..ops.movement import slice_by as strided_slice
from ..ops.pooling import avg_pool, avg_pool_grad, max_pool, max_pool_grad
from ..ops.shape_primitives import broadcast_to, reduce_sum, strided_copy
from ..ops.shape_primitives import reshape_to as reshape
from ..ops.shape_primitives import transpose_by as transpose
from ..ops.shard_primitives import all_gather_parts, reduce_scatter_parts
from ..ops.split_collectives import finish_collective, start_collective

__all__ = [
    "absolute", "add", "all_gather_parts", "all_reduce", "attention", "attention_grad", "avg_pool",
    "avg_pool_channels_last", "avg_pool_grad", "avg_pool_grad_channels_last", "batch_moments",
    "batch_products", "broadcast_to", "cast", "checked_labels", "concat", "constant", "conv",
    "conv_channels_last", "conv_input_grad", "conv_input_grad_channels_last", "conv_weight_grad",
    "conv_weight_grad_channels_last", "div", "equal", "fill", "finish_collective",
    "gather_elements", "gelu_erf", "gelu_erf_grad", "gelu_tanh", "gelu_tanh_grad", "identity",
    "iota", "logsigmoid", "logsigmoid_grad", "matmul", "max_pool", "max_pool_channels_last",
    "max_pool_grad", "max_pool_grad_channels_last", "max_pool_indices_channels_last", "maximum",
    "minimum", "mish", "mish_grad", "mul", "neg", "pad_constant", "reduce_scatter_parts",
    "reduce_sum", "reshape", "scatter_elements_add", "select", "self_attention",
    "self_attention_grad", "silu", "silu_grad", "square", "start_collective", "strided_copy",
    "strided_slice", "sub", "transpose",
]  # fmt: skip
