"""CPU kernels of matmul and convolution, prepared for given operand types.

`CPU.prepare` finds their builders in the kernel table; the kernels are in native/matmul.c, conv.c
and conv_last.c. Matmul and forward convolution can take an operand that was packed (rearranged into
the order in which the kernel reads it) in advance, and can run an epilogue, which is elementwise
code on the result (`region_calls`). Nothing here computes.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from duograph.dtype import float32

from ._native import ffi, lib
from .blas import open_blas
from .kernels import call, kernel, packing, plan, product
from .sized_structs import SizedStruct, has_sizes, hinted, refuse_sizes

if TYPE_CHECKING:
    from duograph.types import Shape, TensorType

    from ._native import CData, CFunction
    from .kernels import Padding, Types
    from .native_call import NativeCall

# Matmuls of more rows than THIN and at most MOST_ROWS can take their second operand packed; the
# numbers are DG_THIN and MOST_ROWS of native/.
THIN, MOST_ROWS = 4, 1024
# The fewest output channels of a group that use vectors of channels well.
NARROW = 16


@kernel("matmul")
def matmul(
    types: Types, results: Types, *, transpose_a: bool = False, transpose_b: bool = False
) -> NativeCall:
    """Return a prepared call of the CPU kernel of batched matmul.

    `transpose_a` and `transpose_b` transpose the matrices of the first and the second operand. If
    the second operand is a single matrix, and the first is not transposed, the kernel runs one
    larger matmul instead of one for each matrix of the batch.
    """
    x, y = types
    m, n = results[0].shape[-2:]
    k = x.shape[-2] if transpose_a else x.shape[-1]
    batch = results[0].shape[:-2]
    ones = len(batch)
    a_shape = (1,) * (ones - len(x.shape) + 2) + x.shape[:-2]
    b_shape = (1,) * (ones - len(y.shape) + 2) + y.shape[:-2]
    if product(b_shape) == 1 and not transpose_a:
        m, batch, a_shape, b_shape = m * product(batch), (), (), ()
    # On AVX-512 our own GEMM is faster except for vectors; opening BLAS takes 7 ms and some MB.
    if lib.dg_isa() < 2 or m == 1 or n == 1 or x.dtype.kind == "c":
        open_blas()
    constants = plan(
        "dg_product",
        type=x.dtype.index, ta=bool(transpose_a), tb=bool(transpose_b), m=m, n=n, k=k,
        ndim=len(batch), batches=product(batch), shape=batch,
        a_stride=_batch_strides(a_shape), b_stride=_batch_strides(b_shape),
    )  # fmt: skip
    made = call("matmul", lib.dg_matmul, constants, types, results)
    if isinstance(constants, SizedStruct) and not _packs_for_all(m, n, k, batch):
        return made
    sides = (
        (lib.dg_matmul_pack0, lib.dg_matmul_packed0, (x.dtype, m, k)),
        (lib.dg_matmul_pack1, lib.dg_matmul_packed1, (x.dtype, bool(transpose_b), n, k)),
    )
    packings = {}
    for operand, (pack, packed, layout) in enumerate(sides):
        nbytes = 0
        if operand or not isinstance(constants, SizedStruct):
            nbytes = lib.dg_matmul_packs(hinted(constants), operand)
        if nbytes:
            packings[operand] = functools.partial(
                packing, "matmul", nbytes, layout, pack, packed, constants, types, results
            )
    return dataclasses.replace(made, packings=packings)


def _packs_for_all(m: int, n: int, k: int, batch: Shape) -> bool:
    """Return whether a matmul whose sizes are symbolic can take its second operand packed.

    Only the number of rows, `m`, may be symbolic. The answer of `dg_matmul_packs` depends on it by
    two comparisons, which are made here, so that they hold for all sizes that the program serves.
    """
    if has_sizes([n, k, *batch]):
        return False
    return THIN < m <= MOST_ROWS


def _batch_strides(shape: Shape) -> list[int]:
    """Return the strides of a matmul operand's batch axes, in matrices; 0 for broadcast axes."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(0 if n == 1 else step)
        step *= n
    return strides[::-1]


@dataclasses.dataclass(frozen=True)
class Window:
    """The stride, padding, dilation and group attributes of a convolution op."""

    stride: Shape
    padding: Padding
    dilation: Shape
    groups: int


def _geometry(
    x: TensorType, w: TensorType, size: Shape, kernel: Shape, out_size: Shape, window: Window
) -> CData:
    """Return the C struct `dg_convolution` with the sizes of a convolution.

    x and w are the types of input and weights; `size`, `kernel` and `out_size` are spatial sizes.
    The struct has three spatial axes; missing ones have size 1.
    """
    lead = (1,) * (5 - len(x.shape))
    return plan(
        "dg_convolution",
        type=x.dtype.index, batch=x.shape[0], groups=window.groups,
        **{"in": w.shape[1], "out": w.shape[0] // window.groups},
        size=lead + size, kernel=lead + kernel, out_size=lead + out_size,
        stride=lead + tuple(window.stride), dilation=lead + tuple(window.dilation),
        pad=(0,) * len(lead) + tuple(low for low, high in window.padding),
    )  # fmt: skip


def _channels_first(x: TensorType, w: TensorType, y: TensorType, window: Window) -> CData | None:
    """Return the C struct with the sizes of a channels-first convolution.

    x, w and y are the types of input, weights and output. Returns None unless x is floating-point
    and has 1 to 3 spatial axes.

    Raises:
        SizeNeeded: a size is symbolic.
    """
    refuse_sizes("a convolution", x, w)
    if x.dtype.kind != "f" or not 1 <= len(x.shape) - 2 <= 3:
        return None
    if lib.dg_isa() < 2:  # 1x1 convolutions call BLAS; it must be open before weights are packed
        open_blas()
    return _geometry(x, w, x.shape[2:], w.shape[2:], y.shape[2:], window)


def _with_packed_weights(
    name: str,
    functions: tuple[CFunction, CFunction, CFunction, CFunction],
    constants: CData,
    types: Types,
    results: Types,
) -> NativeCall:
    """Return the prepared call of a convolution that can also take its weights packed.

    Packed weights are rearranged into the order in which the kernel reads them. `functions` are
    four C functions: the convolution; the function that returns the size of its packed weights, or
    0 if it cannot take packed weights; the function that packs them; and the convolution with
    packed weights.
    """
    function, packs, pack, packed = functions
    made = call(name, function, constants, types, results)
    nbytes = packs(constants)
    if nbytes:
        layout = bytes(ffi.buffer(constants))
        offer = functools.partial(
            packing, name, nbytes, layout, pack, packed, constants, types, results
        )
        made = dataclasses.replace(made, packings={1: offer})
    return made


@kernel("conv")
def conv(
    types: Types,
    results: Types,
    *,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
    groups: int,
) -> NativeCall | None:
    """Return a prepared call of channels-first convolution.

    Returns None unless the dtype is floating-point and there are 1 to 3 spatial axes.
    """
    x, w = types
    constants = _channels_first(x, w, results[0], Window(stride, padding, dilation, groups))
    if constants is None:
        return None
    functions = lib.dg_conv, lib.dg_conv_packs, lib.dg_conv_pack, lib.dg_conv_packed
    return _with_packed_weights("conv", functions, constants, types, results)


@kernel("conv_input_grad")
def conv_input_grad(
    types: Types,
    results: Types,
    *,
    input_shape: Shape,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
    groups: int,
) -> NativeCall | None:
    """Return a prepared call of a channels-first convolution's gradient with respect to its input.

    Transposed convolution uses the same kernel. Returns None unless the dtype is floating-point and
    there are 1 to 3 spatial axes.
    """
    y, w = types
    constants = _channels_first(results[0], w, y, Window(stride, padding, dilation, groups))
    if constants is None:
        return None
    return call("conv_input_grad", lib.dg_conv_input_grad, constants, types, results)


@kernel("conv_weight_grad")
def conv_weight_grad(
    types: Types,
    results: Types,
    *,
    weight_shape: Shape,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
    groups: int,
) -> NativeCall | None:
    """Return a prepared call of a channels-first convolution's gradient for its weights.

    Returns None unless the dtype is floating-point and there are 1 to 3 spatial axes.
    """
    x, y = types
    constants = _channels_first(x, results[0], y, Window(stride, padding, dilation, groups))
    if constants is None:
        return None
    return call("conv_weight_grad", lib.dg_conv_weight_grad, constants, types, results)


@kernel("conv_channels_last")
def conv_channels_last(
    types: Types,
    results: Types,
    *,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
    groups: int,
) -> NativeCall | None:
    """Return a prepared call of channels-last float32 convolution.

    Returns None if the dtype is not float32, if the number of spatial axes is not 1, 2 or 3, or if
    there are several groups with fewer than NARROW output channels each and the convolution is not
    depthwise.
    """
    x, w = types
    refuse_sizes("a convolution", x, w)
    if x.dtype is not float32 or not 1 <= len(x.shape) - 2 <= 3:
        return None
    if groups > 1 and w.shape[0] // groups < NARROW and w.shape[:2] != (groups, 1):
        return None
    functions = (
        lib.dg_conv_last,
        lib.dg_conv_last_packs,
        lib.dg_conv_last_pack,
        lib.dg_conv_last_packed,
    )
    window = Window(stride, padding, dilation, groups)
    constants = _geometry(x, w, x.shape[1:-1], w.shape[2:], results[0].shape[1:-1], window)
    return _with_packed_weights("conv_channels_last", functions, constants, types, results)
