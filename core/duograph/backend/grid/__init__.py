"""A complete backend for any device with a grid of work items, given a language and a driver.

OpenCL, CUDA and their like differ in spelling and in how one builds and launches; the kernels are
the same. A backend on this package brings two things and is then complete, tier 1 and fused
regions:

1. **A language**: a `codegen.dialect.GridDialect` that names a prelude file. The prelude defines,
   as C text before every kernel: the types ``i8 .. u64, b8, f16, bf16, f32, f64``; ``DG_FN`` (an
   inlined function), ``DG_KERNEL``, ``DG_GLOBAL``, ``DG_SHARED`` (qualifiers of a kernel, of device
   memory, of the memory of a group), ``DG_RESTRICT``; ``DG_ITEM(d) DG_ITEMS(d) DG_PLACE(d)
   DG_GROUP(d) DG_GROUPS(d)`` (along axis d: the item in the grid and how many, its place in its
   group, the group and how many; i64, places i32); ``DG_BARRIER()``; ``DG_INDEPENDENT``,
   ``DG_ANY_ORDER`` (lines before loops; may be empty) and ``DG_ADD_TO(sum, x)``; ``dg_bits_*``,
   ``dg_fma_*``, ``DG_SQRT_*``, ``DG_LIBM_*`` as in `prelude_c.h`; ``dg_atomic_add_i32/u32``,
   ``dg_atomic_max_i32``, ``dg_atomic_claim_i32``. `prelude_opencl.h` is the example. Nothing may be
   compiled with contraction of ``a*b + c`` or with fast mathematics.
2. **A driver**: a subclass of `GridDevice` (`device.py`): `build` a source, make a `launcher` of a
   kernel, allocate, copy in and out, synchronize; `Pool` (`memory.py`) may hold its buffers.

The backend is then a subclass of `GridBackend` with `name`, `devices()` and `device(device_id)`;
its table `kernels` may hold builders of its own that go before the ones here (a library's matrix
product, a tensor-core kernel): each is ``builder(device, types, results, **attributes)`` and
returns a `Plan`, a ready call, or None to pass. A device with a kernel of its own for matrix
products writes `GridDevice.matmul`, and has one for convolutions then.

What runs is data: a builder of the table (`table.py`) gives a `Plan`, launches of kernels in order,
each with its text, its buffers by place and its numbers. So every kernel that a test can reach can
also be compiled without a device.

Kernels are plain C with the macros above: no pointers to group memory leave the kernel, such memory
is declared at its head with constant sizes, and every item of a group reaches every barrier.
`GridDevice.serial` chooses between two ways of cutting the work: an item for each element and a
group for each row, or (a processor) an item for a stretch of elements or some rows, in groups of
one.
"""

from .backend import GridBackend
from .device import GridDevice, Launch, Plan, Scalar
from .kernel_writer import Kernel
from .memory import Block, Pool
from .table import KERNELS, kernel
from .tiles import Tiles

__all__ = [
    "Block",
    "GridBackend",
    "GridDevice",
    "KERNELS",
    "Kernel",
    "Launch",
    "Plan",
    "Pool",
    "Scalar",
    "Tiles",
    "kernel",
]
