"""Base package of backends for devices with a grid of work items, such as GPUs.

OpenCL, CUDA and similar systems differ in the syntax of kernels, in how kernels are built and in
how they are launched; the algorithms are the same. A backend that builds on this package supplies
two things, a language and a driver; it then has kernels of ops and of fused regions. This
package must not open a device or depend on a vendor.

1. **A language**: a `codegen.dialect.GridDialect` that names a prelude file, which is put before
   every kernel; `codegen/prelude_opencl.h` is the example. The prelude defines:

   - types: ``i8 .. i64, u8 .. u64, b8, f16, bf16, f32, f64``
   - qualifiers: ``DG_FN`` (an inlined function), ``DG_KERNEL``, ``DG_GLOBAL`` (device memory),
     ``DG_SHARED`` (memory of a group), ``DG_RESTRICT``
   - ids along axis d: ``DG_ITEM(d)`` of the work item in the grid, ``DG_PLACE(d)`` of the work item
     in its group (i32, the others i64), ``DG_GROUP(d)`` of the group; ``DG_ITEMS(d)`` and
     ``DG_GROUPS(d)``, the numbers of work items and groups; ``DG_BARRIER()``
   - hints before a loop, which may be empty: ``DG_INDEPENDENT`` (no iteration depends on another),
     ``DG_ANY_ORDER`` (the loop adds up a sum, in any order); ``DG_ADD_TO(sum, x)`` is the statement
     ``sum += x`` of such a loop; ``DG_UNROLL`` (the loop must be unrolled)
   - ``DG_PACK(T, N)``: a structure with the member ``T v[N]``, aligned to its size or 16 bytes
   - conversions ``DG_TO_BF16(x, by)``, ``DG_TO_F16(x, by)`` and ``DG_FROM_F16(x, by)``: an
     instruction of the device, or else a call of the function: ``by(x)``
   - bits, arithmetic and libm: ``dg_bits_*``, ``dg_fma_*``, ``DG_SQRT_*``, ``DG_LIBM_*`` as in
     `prelude_c.h`
   - atomics: ``dg_atomic_add_i32``, ``dg_atomic_add_u32``, ``dg_atomic_max_i32`` and
     ``dg_atomic_claim_i32(p, x)``, which writes x if 0 is there and returns whether it did
   - if the attribute `shuffles` of the dialect is set, ``DG_SHUFFLE`` and ``DG_OF_FIRST``; if
     `subgroups` is, the macros that begin with ``DG_SUBGROUP``; if `single` is,
     ``DG_PRODUCT_ERROR(a, b, p, by)``: ``a * b - p`` without rounding for the rounded product p, or
     else ``by(a, b, p)``. `GridDialect` describes the three attributes.

   No kernel may be compiled with contraction of ``a*b + c`` or with fast mathematics.
2. **A driver**: a subclass of `GridDevice` (`device.py`): `build` a source, make a `launcher` of a
   kernel, allocate, copy in and out, synchronize; `Pool` (`memory.py`) may hold its buffers.

The backend is then a subclass of `GridBackend` with `name`, `devices()` and `device(device_id)`;
its table `kernels` may hold builders that take precedence over those of this package (such as a
library's matmul): each is ``builder(device, types, results, **attributes)`` and returns a `Plan`, a
prepared call, or None if it has no kernel for these types. A device with a matmul kernel of its own
overrides `GridDevice.matmul`, which serves convolutions too.

Launches are data: a builder of the table (`table.py`) returns a `Plan`, a list of launches, each
with its source, the indices of its buffers in the plan, and its scalars. A test can therefore
compile the kernels without a device.

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
