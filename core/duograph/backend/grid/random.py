"""Kernel of the random generator for GPU-style devices: Philox 4x32-10, four words per work item.

The kernel table of `GridBackend` has the builder. The generated words must be equal to those of the
NumPy reference. Reference: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import uint32
from .device import GridDevice, Plan
from .kernel_writer import Kernel, ceil_div
from .movement import each_launch
from .table import Types, kernel

__all__: list[str] = []

_BLOCK = """{
        u32 a = (u32)i, b = (u32)((u64)i >> 32), c = state[2], d = state[3], low = state[0], \
high = state[1];
        for (i32 round = 0; round < 10; round++) {
            const u64 p = (u64)a * 0xD2511F53u, q = (u64)c * 0xCD9E8D57u;
            a = (u32)(q >> 32) ^ b ^ low;
            b = (u32)q;
            c = (u32)(p >> 32) ^ d ^ high;
            d = (u32)p;
            low += 0x9E3779B9u;
            high += 0xBB67AE85u;
        }
        const ix at = i * 4;
        out[at] = a;
        if (at + 1 < words) out[at + 1] = b;
        if (at + 2 < words) out[at + 2] = c;
        if (at + 3 < words) out[at + 3] = d;
    }"""


@kernel("random_bits")
def random_bits(device: GridDevice, types: Types, results: Types, *, shape: Sequence[int]) -> Plan:
    """Return the launch plan that generates the random uint32 words of a Philox state.

    The operand is the state, four words: first the two of the key, then the two high words of the
    128-bit counter. The two low words count the blocks of four random words, from 0.
    """
    (out,) = results
    blocks = ceil_div(out.size, 4)
    k = Kernel(device, "random_bits", out.size)
    k.read("state", uint32, 0)
    k.write("out", uint32, 1)
    k.number("n", blocks)
    k.number("words", out.size)
    return Plan((each_launch(device, k, blocks, _BLOCK),))
