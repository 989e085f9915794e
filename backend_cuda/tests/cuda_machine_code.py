"""The machine code (SASS) of a CUDA kernel: registers, memory and instructions.

`read_machine_code` disassembles a cubin with nvdisasm, which the package `nvidia-cuda-nvdisasm`
brings. Nothing here compiles or runs a kernel.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable

from duograph.backend import disk_cache

__all__ = ["MachineCode", "disassembler", "read_machine_code"]

# Per multiprocessor, from NVIDIA's table "Technical Specifications per Compute Capability": bytes
# of shared memory by capability; and for all of these: registers, threads and blocks.
SHARED = {(8, 0): 164 << 10, (9, 0): 228 << 10, (10, 0): 228 << 10}
REGISTERS, THREADS, BLOCKS = 1 << 16, 2048, 32
# Registers are given to a warp in multiples of 256. Each block has 1 KiB of shared memory more than
# it declares; from compute capability 9.0 on the cubin counts them.
WARP, WARP_REGISTERS, RESERVED = 32, 256, 1 << 10


@dataclasses.dataclass(frozen=True)
class MachineCode:
    """What the machine code of one kernel says for one architecture.

    Attributes:
        capability: compute capability, such as (9, 0).
        registers: 32-bit registers of a thread.
        stack: bytes of local memory of a thread: arrays and spilled registers.
        shared: bytes of shared memory that a block declares.
        counts: how often each instruction occurs, by its full name, such as "LDG.E.128".
    """

    capability: tuple[int, int]
    registers: int
    stack: int
    shared: int
    counts: collections.Counter[str]

    @property
    def length(self) -> int:
        """Number of instructions."""
        return sum(self.counts.values())

    def count(self, *names: str) -> int:
        """Return how many instructions have a name, without its suffixes, among `names`."""
        return sum(n for full, n in self.counts.items() if full.split(".")[0] in names)

    def widths(self, name: str) -> set[int]:
        """Return the bytes that the instructions `name` (LDG, STG) access for each thread."""
        return {_width(full) for full in self.counts if full.split(".")[0] == name}

    def blocks(self, threads: int) -> int:
        """Return how many blocks of `threads` threads a multiprocessor can run at once."""
        warps = -(-threads // WARP)
        for_warp = -(-self.registers * WARP // WARP_REGISTERS) * WARP_REGISTERS
        shared = SHARED[self.capability] // (self.shared + RESERVED)
        return min(BLOCKS, THREADS // (warps * WARP), REGISTERS // for_warp // warps, shared)


def _width(full: str) -> int:
    """Return the bytes that a load or store accesses: LDG.E has 4, LDG.E.U16 2, LDG.E.128 16."""
    for part in full.split("."):
        if part in ("U8", "S8"):
            return 1
        if part in ("U16", "S16"):
            return 2
        if part in ("64", "128", "256"):
            return int(part) // 8
    return 4


@functools.cache
def disassembler() -> str | None:
    """Return the path of nvdisasm: the installed package's, or one on the PATH; None if neither."""
    try:
        files: Iterable[importlib.metadata.PackagePath] = (
            importlib.metadata.files("nvidia-cuda-nvdisasm") or ()
        )
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.stem == "nvdisasm":
            return str(file.locate())
    return shutil.which("nvdisasm")


def read_machine_code(image: bytes, name: str, capability: tuple[int, int]) -> MachineCode:
    """Disassemble a cubin and return what it says about kernel `name`.

    Raises:
        LookupError: nvdisasm is not installed, or the cubin has no such kernel.
    """
    text = _disassembled(image)
    sections = dict(re.findall(r"^//-+ (\S+) +-+\n(.*?)(?=^//-+ \S+ +-+\n|\Z)", text, re.M | re.S))
    if f".text.{name}" not in sections:
        raise LookupError(f"the cubin has no kernel {name}; its sections are {sorted(sections)}")
    shared = re.search(r"\.zero\s+(\d+)", sections.get(f".nv.shared.{name}", ""))
    counted = RESERVED if capability >= (9, 0) else 0
    code = re.findall(r"/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)", sections[f".text.{name}"])
    return MachineCode(
        capability,
        _attribute(sections[".nv.info"], "REGCOUNT", name),
        _attribute(sections[".nv.info"], "FRAME_SIZE", name),
        int(shared[1]) - counted if shared else 0,
        collections.Counter(code),
    )


def _disassembled(image: bytes) -> str:
    """Return what nvdisasm prints for a cubin; the disk cache keeps it."""
    program = disassembler()
    if program is None:
        raise LookupError("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
    key = disk_cache.key_of("nvdisasm", pathlib.Path(program).stat().st_mtime_ns, image)
    known = disk_cache.read(key, ".sass")
    if known is None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "kernel.cubin")
            path.write_bytes(image)
            # the analysis of the flow of control takes half of the time, and is not needed
            command = [program, "--no-dataflow", str(path)]
            known = subprocess.run(command, capture_output=True, check=True).stdout
        with contextlib.suppress(OSError):  # then the next process disassembles it again
            disk_cache.store(key, ".sass", known)
    return known.decode()


def _attribute(section: str, attribute: str, name: str) -> int:
    """Return the value of an attribute of a kernel, given the text of section .nv.info."""
    pattern = rf"EIATTR_{attribute}\n(?:(?!EIATTR)[\s\S])*?index@\({name}\)\n.*\.word\s+(0x\w+)"
    found = re.search(pattern, section)
    if found is None:
        raise LookupError(f"the cubin does not say {attribute} of kernel {name}")
    return int(found[1], 16)
