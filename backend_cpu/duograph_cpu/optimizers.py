"""CPU kernels of parameter updates by optimisers, such as Adam.

`CPU.prepare` finds their builders in the kernel table. An update that is decomposed into simpler
ops reads and writes each parameter many times; the kernels of native/optimizer.c update a float32
parameter in one loop. Nothing here computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import lib
from .kernels import call, kernel, plan

if TYPE_CHECKING:
    from ._native import CFunction
    from .kernels import Builder, Types
    from .native_call import NativeCall


def _step(name: str, function: CFunction, scalars: int) -> Builder:
    """Register and return the builder of the op `name`, an optimiser's float32 parameter update.

    The last `scalars` operands have one element each; all other operands must have the same shape.
    """

    @kernel(name)
    def step(types: Types, results: Types, **attributes: float) -> NativeCall | None:
        whole, rates = types[:-scalars], types[-scalars:]
        if any(t is None or t.dtype.name != "float32" for t in types):
            return None
        if any(t.shape != types[0].shape for t in whole) or any(t.size != 1 for t in rates):
            return None
        constants = plan("dg_step", n=types[0].size, **attributes)
        # the new parameter and moments may have the memory of the old ones
        over = [(k, k) for k in range(len(results))]
        return call(name, function, constants, types, results, overwrites=over, infallible=True)

    return step


_step("adam_step", lib.dg_adam, 3)
_step("adam_weight_decay_step", lib.dg_adam_weight_decay, 1)
_step("momentum_step", lib.dg_momentum, 2)
