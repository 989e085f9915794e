"""GPU-style kernels of elementwise ops, generated from the ops' `scalar` rules.

`GridBackend.plan` calls `elementwise` for ops without a kernel builder of their own. One kernel
source serves all shapes. `fused_regions` generates the kernels of fused groups of ops instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...dtype import DType, int32
from ...op import Op
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from ..codegen.expression import compute_dtype
from ..codegen.packs import fits, pack_type, pack_width, read_pack, write_pack
from ..codegen.printer import print_function
from ..codegen.scalar_kernels import kernel_name, scalar_kernel
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div, stretch
from .strides import broadcast_steps, dense, merged

if TYPE_CHECKING:
    from ...ir.graph import Attributes

__all__ = ["elementwise"]


def elementwise(
    device: GridDevice,
    op: Op,
    types: Sequence[TensorType],
    result: TensorType,
    attributes: Attributes,
) -> Plan | None:
    """Return the launch plan of an element-wise op, with a result of type `result`.

    Returns None if the op has no scalar expression for these dtypes.
    """
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

    def made(operands: Sequence[str]) -> str:
        """Return the C expression of a result element, rounded to the stored dtype.

        `operands` are the C expressions of the operands' elements.
        """
        value = f"{found.name}_at({', '.join([*operands, *given])})"
        return device.dialect.store(result.dtype, value)

    store = made(here)
    if device.serial and len(sizes) == 1:
        for w in walks:
            w.start([])
        grain = stretch(device, result.size)
        kernel.stretch("n", grain)
        kernel.line("DG_INDEPENDENT", f"for (ix j = begin; j < end; j++) made[j] = {store};")
        return Plan((kernel.launch(ceil_div(result.size, grain)),))
    if not device.serial:
        return Plan((_packs(kernel, result, sizes, names, dtypes, walks, made),))
    at = kernel.elements(result.size, names)
    for w in walks:
        w.start(at)
    row = f"{device.dialect.memory} {SUFFIX[result.dtype]} *row = made + (i - first);"
    each = f"row[j] = {store};"
    return Plan((kernel.end_elements(result.size, names[-1], [], each, [row]),))


def _packs(
    k: Kernel,
    result: TensorType,
    sizes: Sequence[int],
    names: Sequence[str],
    dtypes: Sequence[DType],
    walks: Sequence[_Walk],
    made: Callable[[Sequence[str]], str],
) -> Launch:
    """Return the launch of an elementwise kernel on a GPU, with one pack for each work item.

    Args:
        k: the kernel, with its operands declared.
        result: type of the result.
        sizes: sizes of the merged axes of the result.
        names: C expressions of these sizes; "" for the first, which is not needed.
        dtypes: dtypes of the operands.
        walks: how each operand is read.
        made: function of the C expressions of the operands' elements that returns the expression
            of the result's element.
    """
    dialect = k.dialect
    moving = [w.steps[-1] != 0 for w in walks]
    itemsizes = [d.itemsize for d, moves in zip(dtypes, moving) if moves]
    width = pack_width([result.dtype.itemsize, *itemsizes], sizes[-1], len(sizes) == 1)
    whole = [d.itemsize for d, w in zip(dtypes, walks) if list(w.steps) == dense(sizes)]
    widest = pack_width([result.dtype.itemsize, *whole], result.size, True)
    if 2 * width < widest and k.index is int32:  # divisions in 64 bits would take longer
        return _packs_across(k, result, sizes, names, dtypes, walks, made, widest)
    at = k.elements(result.size, names, width)
    for w in walks:
        w.start(at)
    if width == 1:
        loaded = [dialect.load(d, w.text) for d, w in zip(dtypes, walks)]
        return k.end_elements(result.size, names[-1], [f"made[i] = {made(loaded)};"])
    left = "left" if result.size % width else ""
    one = ["const ix left = n - i;"] if left else []
    loaded = []
    for d, w in zip(dtypes, walks):
        if w.steps[-1] == 0:
            one.append(f"const {SUFFIX[d]} {w.label}_same = {w.text};")
            loaded.append(dialect.load(d, f"{w.label}_same"))
        else:
            assert fits(width, w.steps)
            one += read_pack(dialect, d, width, f"{w.label}_pack", f"{w.label} + {w.place}", left)
            loaded.append(dialect.load(d, f"{w.label}_pack.v[e]"))
    one += [
        f"{pack_type(result.dtype, width)} made_pack;",
        "DG_UNROLL",
        f"for (i32 e = 0; e < {width}; e++) made_pack.v[e] = {made(loaded)};",
        *write_pack(dialect, result.dtype, width, "made_pack", "made + i", left),
    ]
    return k.end_elements(result.size, names[-1], one, width=width)


def _packs_across(
    k: Kernel,
    result: TensorType,
    sizes: Sequence[int],
    names: Sequence[str],
    dtypes: Sequence[DType],
    walks: Sequence[_Walk],
    made: Callable[[Sequence[str]], str],
    width: int,
) -> Launch:
    """Return the launch of an elementwise kernel on a GPU whose packs may cross rows.

    Operands that are broadcast are read one element at a time. The arguments are those of
    `_packs`; `width` is the number of elements of a pack.
    """
    k.elements(result.size, [""], width)
    left = "left" if result.size % width else ""
    if left:
        k.line("const ix left = n - i;")
    loaded, others = [], []
    for d, w in zip(dtypes, walks):
        if list(w.steps) == dense(sizes):
            k.line(*read_pack(k.dialect, d, width, f"{w.label}_pack", f"{w.label} + i", left))
            loaded.append(k.dialect.load(d, f"{w.label}_pack.v[e]"))
        else:
            others.append(w)
            loaded.append(k.dialect.load(d, w.text))
    k.line(f"{pack_type(result.dtype, width)} made_pack;", "DG_UNROLL")
    k.open(f"for (i32 e = 0; e < {width}; e++)")
    k.line(f"const ix at = {'e < left ? i + e : i' if left else 'i + e'};")
    places = k.split("at", names, "place")
    for w in others:
        w.start(places[:-1])
    k.line(f"const ix j = {places[-1]};", f"made_pack.v[e] = {made(loaded)};")
    k.close()
    k.line(*write_pack(k.dialect, result.dtype, width, "made_pack", "made + i", left))
    return k.launch_items(ceil_div(result.size, width))


class _Walk:
    """Writes the C code by which an elementwise kernel reads an operand along the innermost axis.

    Attributes:
        label: name of the operand's pointer in the kernel.
        outer: C expressions of the strides along all merged axes but the last; "" for the stride 0.
        steps: strides along the merged axes; the last one is 0 (broadcast) or 1.
        place: C expression of the offset of the element at position j of the innermost axis.
        text: C expression of that element.
    """

    def __init__(self, kernel: Kernel, label: str, sizes: Sequence[int], steps: Sequence[int]):
        self.kernel = kernel
        self.label = label
        self.outer = [
            kernel.number(f"{label}_step{k}", s) if s else "" for k, s in enumerate(steps[:-1])
        ]
        self.steps = steps
        # operands are dense or broadcast, so that the inner stride is 1 or 0
        inner = ["j"] if steps[-1] else []
        base = [f"{label}_from"] if any(self.outer) else []
        self.place = " + ".join([*base, *inner]) or "0"
        self.text = f"{label}[{self.place}]"

    def start(self, at: Sequence[str]) -> None:
        """Append the line that defines where the operand's current row begins.

        `at` are the positions along all axes but the last.
        """
        terms = [f"{a} * {s}" for a, s in zip(at, self.outer) if s]
        if terms:
            self.kernel.line(f"const ix {self.label}_from = {' + '.join(terms)};")
