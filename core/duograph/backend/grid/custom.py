"""Plans the launch of kernels that users write in OpenCL C or CUDA C (`ops.Custom`).

`GridBackend` finds the builder in the kernel table. The source is built once for each combination
of operand types; macros in front of it define sizes and element types. The module must not change
the user's source itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, ArgumentValueError, DeviceError
from ..codegen.dialect import SUFFIX
from ..plugin_checks import error_text
from .device import GridDevice, Launch, Plan
from .kernel_writer import ceil_div
from .table import Types, kernel

if TYPE_CHECKING:
    from ...ops.custom import CustomKernel

__all__ = ["refuse_source"]

# The languages of `ops.Custom`, by the name of the dialect.
LANGUAGES = {"OpenCL C": "opencl", "CUDA C++": "cuda"}
# Work items of a group.
GROUP = 128


@kernel("custom", "custom_effect")
def custom(
    device: GridDevice, types: Types, results: Types, *, kernel: CustomKernel
) -> Plan | None:
    """Return the launch plan of a user's kernel, or None if it has no source for this device."""
    source = kernel.sources.get(LANGUAGES[device.dialect.name])
    if source is None:
        return None
    items = kernel.items(types, results)
    buffers = tuple(range(len(types) + len(results)))
    group = min(GROUP, device.group)
    groups = (ceil_div(items, group), 1, 1)
    text = _sizes("IN", types) + _sizes("OUT", results) + source
    return Plan((Launch(text, kernel.name, buffers, (), groups, (group, 1, 1)),))


def refuse_source(device: GridDevice, attributes: Mapping[str, Any], error: Exception) -> None:
    """Raise ArgumentValueError if the preparation of a user's kernel has failed for its source.

    Returns if the op, whose attributes are given, has no kernel of the user's, and if `error` is
    one of wrong arguments or of missing memory.
    """
    kernel: CustomKernel | None = attributes.get("kernel")
    if kernel is None or isinstance(error, (ArgumentError, MemoryError)):
        return
    language = LANGUAGES[device.dialect.name]
    said = str(error) if isinstance(error, DeviceError) else error_text(error)
    raise ArgumentValueError(
        f"Custom: the source in {language!r} of {kernel.name!r} cannot be used; wanted a kernel "
        f"{kernel.name!r} with a pointer for each input, then for each result: {said}"
    ) from error


def _sizes(prefix: str, types: Types) -> str:
    """Return C macros for the types and sizes of operands or results, such as IN0_TYPE."""
    lines = []
    for k, t in enumerate(types):
        facts: dict[str, object] = {"TYPE": SUFFIX[t.dtype], "SIZE": t.size, "NDIM": len(t.shape)}
        facts |= {f"DIM{axis}": n for axis, n in enumerate(t.shape)}
        lines += [f"#define {prefix}{k}_{name} {value}\n" for name, value in facts.items()]
    return "".join(lines)
