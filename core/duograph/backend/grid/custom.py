"""Launches kernels of the user's own (`ops.Custom`) in OpenCL C or CUDA C.

`GridBackend` finds the builder in the kernel table. The source is built for each combination of
types: macros in front of it say sizes and element types. The module never changes the user's
source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .kernel_writer import ceil_div
from .table import Types, kernel

if TYPE_CHECKING:
    from ...ops.custom import CustomKernel

__all__: list[str] = []

# The languages of `ops.Custom`, by the name of the dialect.
LANGUAGES = {"OpenCL C": "opencl", "CUDA C++": "cuda"}
# Work items of a group.
GROUP = 128


@kernel("custom", "custom_effect")
def custom(
    device: GridDevice, types: Types, results: Types, *, kernel: CustomKernel
) -> Plan | None:
    """Return the launch of a user's kernel, or None without source in the device's language."""
    source = kernel.sources.get(LANGUAGES[device.dialect.name])
    if source is None:
        return None
    items = kernel.items(types, results)
    buffers = tuple(range(len(types) + len(results)))
    group = min(GROUP, device.group)
    groups = (ceil_div(items, group), 1, 1)
    text = _sizes("IN", types) + _sizes("OUT", results) + source
    return Plan((Launch(text, kernel.name, buffers, (), groups, (group, 1, 1)),))


def _sizes(prefix: str, types: Types) -> str:
    """Return macros with the types and sizes of operands or results: IN0_TYPE, IN0_SIZE ..."""
    lines = []
    for k, t in enumerate(types):
        facts: dict[str, object] = {"TYPE": SUFFIX[t.dtype], "SIZE": t.size, "NDIM": len(t.shape)}
        facts |= {f"DIM{axis}": n for axis, n in enumerate(t.shape)}
        lines += [f"#define {prefix}{k}_{name} {value}\n" for name, value in facts.items()]
    return "".join(lines)
