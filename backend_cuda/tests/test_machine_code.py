"""The machine code of the main kernels: what a compiler can prove without a GPU."""

from __future__ import annotations

import collections
import math

import pytest
from cuda_machine_code import MachineCode, disassembler
from cuda_main_kernels import CAPABILITIES, KERNELS, compiles_for, found, machine_code

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the packages of duograph[cuda]")
pytestmark = pytest.mark.skipif(
    disassembler() is None, reason="needs nvdisasm: pip install nvidia-cuda-nvdisasm"
)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda c: f"sm_{c[0]}{c[1]}")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_main_kernels(kernel, capability):
    """No spills, wide accesses, tensor cores, and registers for enough threads."""
    if not compiles_for(capability):
        pytest.skip("this NVRTC does not know the architecture")
    code = machine_code(kernel, capability)
    threads = math.prod(found(kernel).launch.size)
    assert code.stack == code.count("LDL", "STL") == 0, "registers are spilled"
    assert code.blocks(threads) * threads >= kernel.threads, f"{code.registers} registers"
    for name, allowed in (("LDG", kernel.loads), ("STG", kernel.stores)):
        widths = code.widths(name)
        assert max(allowed) in widths and widths <= allowed, (name, widths)
    for name in kernel.needs:
        assert any(full.startswith(name) for full in code.counts), (name, code.counts)


@pytest.mark.parametrize(
    "capability, registers, shared, threads, blocks",
    [
        ((9, 0), 32, 0, 256, 8),  # threads
        ((9, 0), 33, 0, 256, 6),  # registers, in steps of 8 for a thread
        ((8, 0), 128, 40 << 10, 256, 2),
        ((8, 0), 128, 80 << 10, 128, 2),  # shared memory
        ((9, 0), 16, 0, 32, 32),  # blocks
        ((10, 0), 255, 0, 1024, 0),  # such a kernel does not start
    ],
)
def test_blocks_of_a_multiprocessor(capability, registers, shared, threads, blocks):
    """As NVIDIA's occupancy calculator has them."""
    code = MachineCode(capability, registers, 0, shared, collections.Counter())
    assert code.blocks(threads) == blocks
