"""GPU-style kernels of elementwise ops, printed from the ops' `scalar` rules.

`GridBackend.plan` calls `elementwise` for ops without a kernel builder of their own. One source
serves all shapes. Fused groups of ops are printed by `fused_regions` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...op import Op
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from ..codegen.expression import compute_dtype
from ..codegen.printer import print_function
from ..codegen.scalar_kernels import kernel_name, scalar_kernel
from .device import GridDevice, Plan
from .kernel_writer import Kernel, ceil_div, stretch
from .strides import broadcast_steps, merged

__all__ = ["elementwise"]


def elementwise(
    device: GridDevice,
    op: Op,
    types: Sequence[TensorType],
    result: TensorType,
    attributes: Mapping[str, Any],
) -> Plan | None:
    """Return the launch plan of an elementwise op; None if its dtypes have no scalar expression."""
    dtypes = [t.dtype for t in types]
    if kernel_name(op, dtypes, attributes) is None:
        return None
    found = scalar_kernel(op, dtypes, attributes)
    if found is None:
        return None
    sizes, steps = merged(result.shape, [broadcast_steps(t.shape, result.shape) for t in types])
    kernel = Kernel(device, found.name, max(t.size for t in (*types, result)))
    real = compute_dtype(dtypes[-1])
    # names that an op cannot use: its own may be `out` or `end`
    labels = [f"x{place}" for place in range(len(types))]
    given = [f"p{at}" for at in range(len(found.parameters))]
    parameters = [*found.operands, *((p, real) for p in found.parameters)]
    kernel.functions.append(
        print_function(device.dialect, f"{found.name}_at", parameters, found.expression)
    )
    for place, label in enumerate(labels):
        kernel.read(label, dtypes[place], place)
    # `out` is an operand of gradients
    kernel.write("made", result.dtype, len(types))
    for name, p in zip(given, found.parameters):
        kernel.number(name, attributes[p], real)
    kernel.number("n", result.size)
    # a broadcast operand has no offset along the inner axis; a dense one needs no stride
    walks = [_Walk(kernel, label, sizes, own) for label, own in zip(labels, steps)]
    names = [""] + kernel.numbers("size", sizes)[1:] if len(sizes) > 1 else [""]
    here = [device.dialect.load(d, f"{w.text}") for d, w in zip(dtypes, walks)]
    value = f"{found.name}_at({', '.join([*here, *given])})"
    store = device.dialect.store(result.dtype, value)
    if device.serial and len(sizes) == 1:
        for w in walks:
            w.start([])
        grain = stretch(device, result.size)
        kernel.stretch("n", grain)
        kernel.line("DG_INDEPENDENT", f"for (ix j = begin; j < end; j++) made[j] = {store};")
        return Plan((kernel.launch(ceil_div(result.size, grain)),))
    at = kernel.elements(result.size, names)
    for w in walks:
        w.start(at)
    row = f"{device.dialect.memory} {SUFFIX[result.dtype]} *row = made + (i - first);"
    one, each = f"made[i] = {store};", f"row[j] = {store};"
    return Plan((kernel.end_elements(result.size, names[-1], one, each, [row]),))


class _Walk:
    """Writes the C code by which an elementwise kernel reads an operand along the inner axis.

    Attributes:
        text: source of the element at position j.
    """

    def __init__(self, kernel: Kernel, label: str, sizes: Sequence[int], steps: Sequence[int]):
        self.kernel = kernel
        self.label = label
        self.outer = [
            kernel.number(f"{label}_step{k}", s) if s else "" for k, s in enumerate(steps[:-1])
        ]
        inner = steps[-1]
        base = f"{label}_from" if any(self.outer) else "0"
        if inner == 0:
            self.text = f"{label}[{base}]"
        else:
            step = "j" if inner == 1 else f"j * {kernel.number(f'{label}_step', inner)}"
            self.text = f"{label}[{step}]" if base == "0" else f"{label}[{base} + {step}]"

    def start(self, at: Sequence[str]) -> None:
        """Emit the line that computes the offset where an operand's inner axis starts."""
        terms = [f"{a} * {s}" for a, s in zip(at, self.outer) if s]
        if terms:
            self.kernel.line(f"const ix {self.label}_from = {' + '.join(terms)};")
