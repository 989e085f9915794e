"""Makes launches of kernels that instantiate a C++ template of the CUDA files under cuda/.

The kernel builders of this backend call `launch_of`; nothing is compiled here.
"""

from __future__ import annotations

from collections.abc import Sequence

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Launch, Scalar
from duograph.dtype import DType

from .sources import text

__all__ = ["launch_of"]


def launch_of(
    files: Sequence[str],
    name: str,
    dtypes: Sequence[DType],
    choices: Sequence[int | bool],
    buffers: Sequence[tuple[DType, int]],
    scalars: Sequence[Scalar],
    groups: int,
    threads: int,
) -> Launch:
    """Return the launch of a kernel that instantiates the template `dg_<name>` of some CUDA files.

    Args:
        files: names of the files under cuda/.
        name: name of the template, without its prefix.
        dtypes, choices: the template arguments, dtypes first, then integers and bools.
        buffers: (dtype, buffer number) of each pointer argument.
        scalars: (dtype, value) of each further argument.
        groups, threads: number of blocks, and number of threads of a block.
    """
    numbers = [str(int(c)) for c in choices]
    names = [SUFFIX[d] for d in dtypes]
    kernel = "_".join([name, *names, *numbers])
    types = [f"{SUFFIX[d]} *" for d, _ in buffers] + [f"{SUFFIX[d]} " for d, _ in scalars]
    given = ", ".join(f"{t}a{k}" for k, t in enumerate(types))
    chosen = ", ".join([*(f"dg_of_{n}" for n in names), *numbers])
    template = f"dg_{name}<{chosen}>" if chosen else f"dg_{name}"
    source = text(*files) + (
        f"DG_KERNEL void __launch_bounds__({threads}) {kernel}({given}) {{\n"
        f"    {template}({', '.join(f'a{k}' for k in range(len(types)))});\n}}\n"
    )
    places = tuple(place for _, place in buffers)
    return Launch(source, kernel, places, tuple(scalars), (groups, 1, 1), (threads, 1, 1))
