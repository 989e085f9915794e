"""Plans the matmul op on GPU-style devices and chooses a kernel for it.

The kernel table has `matmul`; convolutions call `matmul_plan`. A GPU uses the device's own kernel
(`GridDevice.matmul`) if it has one, otherwise those of `matmul_tiled`; a CPU uses `matmul_packed`.
Nothing here writes or runs a kernel.
"""

from __future__ import annotations

import math

from .device import GridDevice, Plan
from .matmul_operands import Matmul, Matrices
from .matmul_packed import packed_plan, thin_launch
from .matmul_tiled import THIN, few_lines, tiles
from .strides import broadcast_steps, merged
from .table import Types, kernel

__all__ = ["matmul_plan", "matmul_problem"]


@kernel("matmul")
def matmul(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Plan | None:
    """Return the launch plan of a batched matmul; None for complex dtypes."""
    problem = matmul_problem(types, results, transpose_a=transpose_a, transpose_b=transpose_b)
    if problem is None:
        return None
    if device.serial and min(problem.sizes) < THIN:
        x, y = problem.x, problem.y
        assert isinstance(x, Matrices) and isinstance(y, Matrices)
        return Plan((thin_launch(device, problem, x, y),))
    return matmul_plan(device, problem)


def matmul_problem(
    types: Types, results: Types, *, transpose_a: bool = False, transpose_b: bool = False
) -> Matmul | None:
    """Return the description of a batched matmul; None for complex dtypes.

    A batch of matrices times one matrix is described as one tall matmul, unless `transpose_a` is
    true.
    """
    x, y = types
    (out,) = results
    if x.dtype.is_complex:
        return None
    m, n = out.shape[-2:]
    depth = x.shape[-2] if transpose_a else x.shape[-1]
    batch = out.shape[:-2]
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if math.prod(y_batch) == 1 and not transpose_a:
        m, batch, x_batch, y_batch = m * math.prod(batch), (), (), ()
    sizes, (x_steps, y_steps) = merged(
        batch, [broadcast_steps(x_batch, batch), broadcast_steps(y_batch, batch)]
    )
    if not batch:
        x_steps, y_steps = [0], [0]
    a = Matrices(
        0, x.dtype, x.size, tuple(x_steps), math.prod(x_batch), m, depth,
        1 if transpose_a else depth, m if transpose_a else 1,
    )  # fmt: skip
    b = Matrices(
        1, y.dtype, y.size, tuple(y_steps), math.prod(y_batch), n, depth,
        depth if transpose_b else 1, 1 if transpose_b else n,
    )  # fmt: skip
    return Matmul((m, n, depth), tuple(sizes), a, b, out.dtype, 2)


def matmul_plan(device: GridDevice, problem: Matmul) -> Plan:
    """Return the launch plan of a matmul, with the kernel that suits the device and the sizes.

    The numbers of scratch buffers follow the number of the result's buffer.
    """
    if device.serial:
        return packed_plan(device, problem)
    own = device.matmul(problem)
    return Plan((own or few_lines(device, problem) or tiles(device, problem),))
