"""Write the source of a hand-written kernel together with the arguments of its launch.

Builders of the kernel table use `Kernel`. A source does not depend on sizes, so that one build
serves all shapes: sizes and strides are arguments. Index arithmetic is done in `ix`, which has 32
bits where these suffice: 64-bit divisions are slow on many devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import DType, bfloat16, bool_, float16, int32, int64
from ..codegen.dialect import SUFFIX, GridDialect
from .device import GridDevice, Launch, Scalar
from .index_errors import RECORD, number_of

__all__ = ["Kernel", "added", "ceil_div", "element", "stretch"]

# Elements that an `ix` of 32 bits may count; the rest of its range is for positions past the end.
NARROW = 1 << 30


class Kernel:
    """The source of one kernel and the arguments of one launch.

    Args:
        device: the device of the launch.
        name: a C identifier.
        extent: the largest number of elements of any buffer or loop range.
    """

    def __init__(self, device: GridDevice, name: str, extent: int) -> None:
        self.device = device
        self.dialect: GridDialect = device.dialect
        self.name = name
        self.index = int32 if extent < NARROW else int64
        self.functions: list[str] = []
        self.parameters: list[str] = []
        self.buffers: list[int] = []
        self.scalars: list[Scalar] = []
        self.lines: list[str] = []
        self.depth = 1
        self.watches = False
        self.last_axis: list[str] = []

    def read(self, name: str, dtype: DType | str, place: int) -> None:
        """Declare a buffer that the kernel reads; `place` is its number in
        `Launch.buffers`.
        """
        self.parameters.append(f"{self.dialect.memory} const {_type(dtype)} *{name}")
        self.buffers.append(place)

    def write(self, name: str, dtype: DType | str, place: int) -> None:
        """Declare a buffer that the kernel writes, and may read."""
        self.parameters.append(f"{self.dialect.memory} {_type(dtype)} *DG_RESTRICT {name}")
        self.buffers.append(place)

    def number(self, name: str, value: Any, dtype: DType | None = None) -> str:
        """Declare a scalar argument, an `ix` unless a dtype is given; buffers come before
        it.
        """
        self.parameters.append(f"{'ix' if dtype is None else SUFFIX[dtype]} {name}")
        self.scalars.append((self.index if dtype is None else dtype, value))
        return name

    def numbers(self, prefix: str, values: Sequence[int]) -> list[str]:
        """Declare an argument for each value: ``prefix0``, ``prefix1`` ..."""
        return [self.number(f"{prefix}{k}", v) for k, v in enumerate(values)]

    def watch(self, op: str, axis: int) -> None:
        """Declare the kernel's argument for the record of wrong indices, which `row` writes.

        Op and axis are for the error.
        """
        self.parameters.append(f"{self.dialect.memory} i64 *wrong")
        self.buffers.append(RECORD)
        self.number("watched", number_of(op, axis), int32)
        self.watches = True

    def row(self, dtype: DType, text: str, n: str, wraps: bool = True) -> None:
        """Emit the definition of `row`: index `text` counted from 0; -1 where it is out of
        range.

        Negative indices count from the end if `wraps`, else they are out of range.
        """
        self.line(f"const i64 given = (i64){text};")
        from_end = wraps and dtype.kind == "i"
        counted = f"given < 0 ? given + {n} : given" if from_end else "given"
        self.line(
            f"const i64 counted = {counted};",
            f"const ix row = counted < 0 || counted >= {n} ? -1 : (ix)counted;",
        )
        if self.watches:
            claim = f"dg_atomic_claim_i32(({self.dialect.memory} i32 *)wrong, watched)"
            self.line(
                f"if (row < 0 && {claim}) {{",
                f"    wrong[1] = given, wrong[2] = {n};",
                "}",
            )

    def line(self, *texts: str) -> None:
        """Append source lines at the current indentation."""
        for text in texts:
            self.lines.append("    " * self.depth + text)

    def open(self, text: str) -> None:
        """Emit a source line that opens a block, and indent what follows."""
        self.line(text + " {")
        self.depth += 1

    def close(self) -> None:
        """Emit the closing brace of a block."""
        self.depth -= 1
        self.line("}")

    def stretch(self, n: str, grain: int) -> None:
        """Emit definitions of `begin` and `end`, a work item's span of 0 .. n (serial
        devices).
        """
        self.number("grain", grain)
        self.line(
            "const ix begin = (ix)DG_ITEM(0) * grain;",
            f"const ix end = {n} - begin < grain ? {n} : begin + grain;",
        )

    def elements(self, n: int, names: Sequence[str]) -> list[str]:
        """Emit the start of the loop over elements 0 .. n, with positions along all but the
        last axis.

        `names`: sizes of the axes. A work item of a grid has one element, ``i``; on a processor it
        visits its span row by row. `end_elements` must follow.
        """
        if self.device.serial:
            self.stretch("n", stretch(self.device, n))
            self.open("for (ix i = begin; i < end;)")
        else:
            self.line("const ix i = (ix)DG_ITEM(0);", "if (i >= n) return;")
        self.last_axis = self.split("i", names, "at")
        return self.last_axis[:-1]

    def end_elements(
        self, n: int, row: str, one: str, each: str = "", before: Sequence[str] = ()
    ) -> Launch:
        """Emit the statement for each element and the end of the loop that `elements` began.

        Args:
            n: number of elements.
            row: the size of the last axis.
            one: the statement for element ``i`` on a grid.
            each: the statement for each ``j`` of a row on a processor; by default `one`.
            before: lines before the loop over a row.
        """
        j = self.last_axis[-1]
        if not self.device.serial:
            self.line(f"const ix j = {j};", one)
            return self.launch_items(n)
        self.line(
            f"const ix first = {j}, left = {row} - first;",
            "const ix last = first + (left < end - i ? left : end - i);",
            *before,
            "DG_INDEPENDENT",
            f"for (ix j = first; j < last; j++) {each or one}",
            "i += last - first;",
        )
        self.close()
        return self.launch(ceil_div(n, stretch(self.device, n)))

    def split(self, at: str, sizes: Sequence[str], prefix: str) -> list[str]:
        """Emit definitions of the positions of element `at` along axes of these sizes.

        The first size is not needed.
        """
        names = [f"{prefix}{k}" for k in range(len(sizes))]
        rest = at
        for k in range(len(sizes) - 1, 0, -1):
            self.line(f"const ix {prefix}_rest{k} = {rest} / {sizes[k]};")
            self.line(f"const ix {names[k]} = {rest} - {prefix}_rest{k} * {sizes[k]};")
            rest = f"{prefix}_rest{k}"
        if sizes:
            self.line(f"const ix {names[0]} = {rest};")
        return names

    def text(self) -> str:
        """Return the kernel source without the prelude."""
        head = f"typedef {SUFFIX[self.index]} ix;\n" + "".join(self.functions)
        signature = f"{self.dialect.kernel} void {self.name}({', '.join(self.parameters)}) {{"
        return "\n".join([head + signature, *self.lines, "}", ""])

    def launch(self, *groups: int, size: Sequence[int] = (1,)) -> Launch:
        """Return the kernel's launch with `groups` groups, each of `size` work items."""
        return Launch(
            self.text(),
            self.name,
            tuple(self.buffers),
            tuple(self.scalars),
            _three(groups),
            _three(size),
        )

    def launch_items(self, n: int) -> Launch:
        """Return the launch of at least n work items along one axis; the kernel checks `i <
        n`.
        """
        size = 1 if self.device.serial else min(self.device.group, 256)
        return self.launch(ceil_div(n, size), size=(size,))


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _type(dtype: DType | str) -> str:
    return dtype if isinstance(dtype, str) else SUFFIX[dtype]


def ceil_div(n: int, by: int) -> int:
    """Return the quotient of two ints, rounded up."""
    return -(-n // by)


def stretch(device: GridDevice, n: int, least: int = 2048, most: int = 1 << 16) -> int:
    """Return the number of elements in the span of a work item on a serial device.

    Every compute unit gets several spans, each long enough to be worth its start.
    """
    return max(1, min(n, max(least, min(most, ceil_div(n, 4 * device.units)))))


def added(device: GridDevice, dtype: DType, x: str, y: str) -> str:
    """Return source text for the sum of two elements, rounded to their storage dtype."""
    if dtype is bool_:
        return f"{x} | {y}"
    if dtype.is_integer:
        wide = "u64" if dtype.itemsize == 8 else "u32"
        return f"({SUFFIX[dtype]})(({wide}){x} + ({wide}){y})"
    load = device.dialect.load
    return device.dialect.store(dtype, f"{load(dtype, x)} + {load(dtype, y)}")


def element(dtype: DType) -> str:
    """Return the C type in which elements of a dtype are computed."""
    return "f32" if dtype in (float16, bfloat16) else SUFFIX[dtype]
