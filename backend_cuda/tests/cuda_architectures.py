"""Compiles recorded sources with NVRTC, many in one translation unit, for every architecture that
is promised.

python backend_cuda/tests/cuda_architectures.py FOLDER      sources that DUOGRAPH_CUDA_SOURCES kept
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable

from duograph_cuda.compiler import OPTIONS, BuildError, Nvrtc

CAPABILITIES = ((7, 5), (8, 0), (9, 0), (10, 0))
# Kernels in one translation unit: NVRTC takes 20 ms to start and less than that for a small kernel.
BATCH = 100
assert OPTIONS


def batches(sources: Iterable[str]) -> list[tuple[list[str], str]]:
    """Group sources; return each group with one translation unit that holds all its sources.

    Every source is in a namespace of its own.
    """
    found = []
    ordered = sorted(sources)
    for at in range(0, len(ordered), BATCH):
        group = ordered[at : at + BATCH]
        text = "#define DG_KERNEL __global__\n" + "".join(
            f"namespace kernel{k} {{\n{source}\n}}\n" for k, source in enumerate(group)
        )
        found.append((group, text))
    return found


def refused(
    sources: Iterable[str], capability: tuple[int, int], optimised: bool = True
) -> list[str]:
    """Return the sources that do not compile for a compute capability, after NVRTC's messages.

    Without most optimisations, compiling takes less than half of the time.
    """
    compiler = Nvrtc(capability)
    if not optimised:
        compiler.options = (*compiler.options, "--Ofast-compile=mid")
    found = []
    for group, text in batches(sources):
        try:
            compiler.run(text)
        except BuildError:
            for source in group:
                try:
                    compiler.run(source)
                except BuildError as error:
                    found.append(f"{error}\n{source}")
    return found


def main() -> int:
    """Compile the sources in a folder; return 1 if any architecture refuses one, else 0."""
    sources = [path.read_text() for path in sorted(pathlib.Path(sys.argv[1]).glob("*.cu"))]
    wrong = 0
    for capability in CAPABILITIES:
        bad = refused(sources, capability)
        wrong += len(bad)
        print(
            f"sm_{capability[0]}{capability[1]}: {len(sources) - len(bad)} of {len(sources)} "
            "sources compile"
        )
        for text in bad[:5]:
            print(text[:2000])
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
