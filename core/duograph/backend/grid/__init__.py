"""Base package of backends for devices with a grid of work items, such as GPUs.

OpenCL, CUDA and similar systems differ in the syntax of kernels, in how kernels are built and in
how they are launched; the algorithms are the same. A backend that builds on this package supplies
two things, a language and a driver, and then has a kernel for each op and fused regions. This
package must not open a device or depend on a vendor.

1. **A language**: a `codegen.dialect.GridDialect` that names a prelude file. The prelude defines,
   as C source before every kernel: the types ``i8 .. u64, b8, f16, bf16, f32, f64``; ``DG_FN`` (an
   inlined function), ``DG_KERNEL``, ``DG_GLOBAL``, ``DG_SHARED`` (qualifiers of a kernel, of device
   memory, of the shared memory of a group), ``DG_RESTRICT``; ``DG_ITEM(d) DG_ITEMS(d) DG_PLACE(d)
   DG_GROUP(d) DG_GROUPS(d)`` (along axis d: global work item id and their number, local id in the
   group, group id and the number of groups; i64, local ids i32); ``DG_BARRIER()``;
   ``DG_INDEPENDENT``, ``DG_ANY_ORDER`` (lines before loops; may be empty) and ``DG_ADD_TO(sum,
   x)``; ``DG_PACK(T, N)`` (a structure with the member ``T v[N]``, aligned to its size or 16 bytes)
   and ``DG_UNROLL`` (the line before a loop that must be unrolled); ``DG_TO_BF16(x, by)``,
   ``DG_TO_F16`` and ``DG_FROM_F16`` (the device's conversion, or ``by(x)``); ``DG_SHUFFLE`` and
   ``DG_OF_FIRST`` if the dialect `shuffles`, ``DG_SUBGROUP...`` if it has `subgroups`;
   ``DG_PRODUCT_ERROR(a, b, p, by)`` if it is `single` (the error of the rounded product p, or
   ``by(a, b, p)``); ``dg_bits_*``, ``dg_fma_*``, ``DG_SQRT_*``, ``DG_LIBM_*`` as in
   `prelude_c.h`; ``dg_atomic_add_i32/u32``, ``dg_atomic_max_i32``, ``dg_atomic_claim_i32``.
   `prelude_opencl.h` is the example. Nothing may be compiled with
   contraction of ``a*b + c`` or with fast mathematics.
2. **A driver**: a subclass of `GridDevice` (`device.py`): `build` a source, make a `launcher` of a
   kernel, allocate, copy in and out, synchronize; `Pool` (`memory.py`) may hold its buffers.

The backend is then a subclass of `GridBackend` with `name`, `devices()` and `device(device_id)`;
its table `kernels` may hold builders that take precedence over those of this package (such as a
library's matmul): each is ``builder(device, types, results, **attributes)`` and returns a `Plan`, a
prepared call, or None if it has no kernel for these types. A device with a matmul kernel of its own
overrides `GridDevice.matmul`, which serves convolutions too.

Launches are data: a builder of the table (`table.py`) returns a `Plan`, a list of launches, each
with its source, the numbers of its buffers and its scalars. A test can therefore compile the
kernels without a device.

Kernels are plain C with the macros above: pointers to shared memory do not leave the kernel,
shared arrays are declared at its head with constant sizes, and every work item of a group reaches
every barrier. `GridDevice.serial` selects one of two ways to divide the work: a pack of adjacent
elements for each work item (`codegen.packs`) and one row for each group; or, for a CPU, a range of
elements or rows for each work item, in groups of one.
"""

from .backend import GridBackend
from .device import GridDevice, GroupTooLargeError, Launch, Plan, Scalar
from .kernel_writer import Kernel
from .memory import Block, Pool
from .table import KERNELS, kernel
from .tiles import Tiles

__all__ = [
    "Block",
    "GridBackend",
    "GridDevice",
    "GroupTooLargeError",
    "KERNELS",
    "Kernel",
    "Launch",
    "Plan",
    "Pool",
    "Scalar",
    "Tiles",
    "kernel",
]
