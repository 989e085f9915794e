"""Writes the source of a kernel line by line, together with the arguments of its launch.

The kernel builders of this package use `Kernel`. A source contains no sizes, so that one build
serves all shapes: sizes and strides are arguments. The one exception is the width of the C type
`ix` for indices: there are builds with 32 bits and with 64 bits, because 64-bit divisions are slow
on many devices. Nothing here builds or runs a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dtype import DType, bfloat16, bool_, float16, int32, int64
from ..codegen.dialect import SUFFIX, GridDialect
from .device import GridDevice, Launch, Scalar
from .index_errors import RECORD, number_of

if TYPE_CHECKING:
    from ..codegen.expression import Number

__all__ = ["Kernel", "added", "ceil_div", "element", "stretch"]

# Elements that an `ix` of 32 bits may count; the rest of its range is for positions past the end.
NARROW = 1 << 30


class Kernel:
    """Collects the source lines of one kernel and the arguments of one launch of it.

    Args:
        device: the device of the launch.
        name: the kernel's name, a C identifier.
        extent: the largest number of elements of any buffer or loop range. It decides whether the
            index type ``ix`` has 32 or 64 bits.
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
        """Declare a buffer parameter that the kernel only reads.

        `place` is the buffer's number in `Launch.buffers`.
        """
        self.parameters.append(f"{self.dialect.memory} const {_type(dtype)} *{name}")
        self.buffers.append(place)

    def write(self, name: str, dtype: DType | str, place: int) -> None:
        """Declare a buffer parameter that the kernel writes and may read.

        `place` is the buffer's number in `Launch.buffers`.
        """
        self.parameters.append(f"{self.dialect.memory} {_type(dtype)} *DG_RESTRICT {name}")
        self.buffers.append(place)

    def number(self, name: str, value: Number, dtype: DType | None = None) -> str:
        """Declare a scalar parameter of the kernel, with the value it gets in this launch.

        Returns `name`. The parameter has the index type ``ix`` unless `dtype` is given. All buffers
        must be declared before the first number.
        """
        self.parameters.append(f"{'ix' if dtype is None else SUFFIX[dtype]} {name}")
        self.scalars.append((self.index if dtype is None else dtype, value))
        return name

    def numbers(self, prefix: str, values: Sequence[int]) -> list[str]:
        """Declare scalar parameters ``prefix0``, ``prefix1`` ... with values; return the names."""
        return [self.number(f"{prefix}{k}", v) for k, v in enumerate(values)]

    def watch(self, op: str, axis: int) -> None:
        """Declare the parameters through which the kernel reports indices out of range.

        The method `row` emits the check; `op` and `axis` are for the error message.
        """
        self.parameters.append(f"{self.dialect.memory} i64 *wrong")
        self.buffers.append(RECORD)
        self.number("watched", number_of(op, axis), int32)
        self.watches = True

    def row(self, dtype: DType, text: str, n: str, wraps: bool = True) -> None:
        """Append the definition of the C variable `row`: the value of the index expression `text`.

        `row` is counted from 0; it is -1 if the index is out of range for size `n`. `dtype` is the
        dtype of the index. Negative indices count from the end if `wraps`, else they are out of
        range. If `watch` was called before, the kernel also reports an index out of range.
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
        """Append source lines to the kernel at the current indentation."""
        for text in texts:
            self.lines.append("    " * self.depth + text)

    def open(self, text: str) -> None:
        """Append a source line that opens a block in braces, and indent the lines after it."""
        self.line(text + " {")
        self.depth += 1

    def close(self) -> None:
        """Append the closing brace of a block, and end its indentation."""
        self.depth -= 1
        self.line("}")

    def stretch(self, n: str, grain: int) -> None:
        """Append definitions of `begin` and `end`, the range of elements of a CPU work item.

        `n` is the C expression of the number of elements, `grain` the length of a range.
        """
        self.number("grain", grain)
        self.line(
            "const ix begin = (ix)DG_ITEM(0) * grain;",
            f"const ix end = {n} - begin < grain ? {n} : begin + grain;",
        )

    def elements(self, n: int, names: Sequence[str], width: int = 1) -> list[str]:
        """Append the start of the loop over n elements; return the names of their outer positions.

        `names` has the C expressions of the axes' sizes; the returned variables are the positions
        along all axes but the last. On a GPU a work item computes the `width` adjacent elements of
        a row that begin at ``i``; on a CPU it loops over its range of elements row by row. The
        caller must call `end_elements` afterwards.
        """
        if self.device.serial:
            self.stretch("n", stretch(self.device, n))
            self.open("for (ix i = begin; i < end;)")
        else:
            by = f" * {width}" if width > 1 else ""
            self.line(f"const ix i = (ix)DG_ITEM(0){by};", "if (i >= n) return;")
        self.last_axis = self.split("i", names, "at")
        return self.last_axis[:-1]

    def end_elements(
        self,
        n: int,
        row: str,
        one: Sequence[str],
        each: str = "",
        before: Sequence[str] = (),
        width: int = 1,
    ) -> Launch:
        """Append the statement for each element and the end of the loop that `elements` began.

        Args:
            n: number of elements.
            row: C expression of the size of the last axis.
            one: on a GPU, the C lines for the elements of a work item, which begin at element
                ``i``.
            each: on a CPU, the C statement for element ``j`` of a row; by default the first
                of `one`.
            before: on a CPU, the C lines before the loop over a row.
            width: number of elements of a GPU work item, as for `elements`.

        Returns:
            the kernel's launch.
        """
        j = self.last_axis[-1]
        if not self.device.serial:
            self.line(f"const ix j = {j};", *one)
            return self.launch_items(ceil_div(n, width))
        self.line(
            f"const ix first = {j}, left = {row} - first;",
            "const ix last = first + (left < end - i ? left : end - i);",
            *before,
            "DG_INDEPENDENT",
            f"for (ix j = first; j < last; j++) {each or one[0]}",
            "i += last - first;",
        )
        self.close()
        return self.launch(ceil_div(n, stretch(self.device, n)))

    def split(self, at: str, sizes: Sequence[str], prefix: str) -> list[str]:
        """Append definitions of the positions of flat index `at` along axes of the given sizes.

        `sizes` are C expressions; the first one is not used. Returns the names of the variables
        that hold the positions: `prefix` followed by the number of the axis.
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
        """Return the kernel's complete source, without the dialect's prelude."""
        head = f"typedef {SUFFIX[self.index]} ix;\n" + "".join(self.functions)
        signature = f"{self.dialect.kernel} void {self.name}({', '.join(self.parameters)}) {{"
        return "\n".join([head + signature, *self.lines, "}", ""])

    def launch(self, *groups: int, size: Sequence[int] = (1,)) -> Launch:
        """Return a launch of the kernel with the given number of groups along up to three axes.

        `size` is the number of work items of a group along each axis.
        """
        return Launch(
            self.text(),
            self.name,
            tuple(self.buffers),
            tuple(self.scalars),
            _three(groups),
            _three(size),
        )

    def launch_items(self, n: int) -> Launch:
        """Return a launch of the kernel with at least n work items, in groups that suit the device.

        The kernel must check that its work item id is below n.
        """
        size = 1 if self.device.serial else min(self.device.group, 256)
        return self.launch(ceil_div(n, size), size=(size,))


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _type(dtype: DType | str) -> str:
    return dtype if isinstance(dtype, str) else SUFFIX[dtype]


def ceil_div(n: int, by: int) -> int:
    """Return ``n / by`` rounded up to an integer."""
    return -(-n // by)


def stretch(device: GridDevice, n: int, least: int = 2048, most: int = 1 << 16) -> int:
    """Return how many of n elements each work item of a CPU device should compute.

    Every compute unit gets several ranges, each with `least` to `most` elements, so that starting a
    work item pays.
    """
    return max(1, min(n, max(least, min(most, ceil_div(n, 4 * device.units)))))


def added(device: GridDevice, dtype: DType, x: str, y: str) -> str:
    """Return the C expression for the sum of two elements, rounded to their storage dtype."""
    if dtype is bool_:
        return f"{x} | {y}"
    if dtype.is_integer:
        wide = "u64" if dtype.itemsize == 8 else "u32"
        return f"({SUFFIX[dtype]})(({wide}){x} + ({wide}){y})"
    load = device.dialect.load
    return device.dialect.store(dtype, f"{load(dtype, x)} + {load(dtype, y)}")


def element(dtype: DType) -> str:
    """Return the C type in which kernels compute elements of a dtype."""
    return "f32" if dtype in (float16, bfloat16) else SUFFIX[dtype]
