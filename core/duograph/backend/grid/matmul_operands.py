"""Descriptions of a matmul and its operands, from which kernels for GPU-style devices are written.

`matmul`, `convolution` and devices with their own matmul kernels use these classes. An operand
supplies the C expressions of its elements' offsets, so that a kernel can read a convolution's
unrolled input, which is never stored. Nothing here writes a whole kernel.
"""

from __future__ import annotations

import dataclasses
import math

from ...dtype import DType, bfloat16, float16, float32, uint32, uint64
from ..codegen.dialect import SUFFIX
from .device import GridDevice
from .kernel_writer import Kernel

__all__ = [
    "Matmul",
    "Matrices",
    "Operand",
    "define",
    "matrix_numbers",
    "rounded",
    "sum_dtype",
]


@dataclasses.dataclass(frozen=True)
class Operand:
    """Describes a batch of matrices as an operand of a matmul kernel.

    For a matmul of x and y, a *line* is a row of x or a column of y, and the *depth* is the axis
    that is summed over. The methods `of_line`, `of_depth` and `of_matrix` of subclasses define how
    the offset of an element is computed from its line, its position along the depth and its matrix.
    In the kernel, the names of these variables begin with the operand's `label`, "x" or "y".

    Attributes:
        place: number of the buffer.
        dtype: stored dtype.
        size: number of elements of the buffer.
        batch_steps: strides along the axes of the batch, counted in matrices; 0 where the operand
            is broadcast.
        count: number of matrices.
    """

    place: int
    dtype: DType
    size: int
    batch_steps: tuple[int, ...]
    count: int

    @property
    def along(self) -> bool:
        """Whether elements that are adjacent in memory are neighbours along the summed axis."""
        return False

    def numbers(self, k: Kernel, label: str) -> None:
        """Declare the parameters of kernel `k`, such as strides, that the index expressions use.

        Their names begin with `label`, which is "x" or "y".
        """

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        """Return (name, C expression) of the index variables that depend only on the line.

        A line is a row of x or a column of y, for a matmul of x and y; `line` is the C expression
        of its number. The names begin with `label`, which is "x" or "y".
        """
        return []

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        """Return (name, C expression) of the index variables that depend only on the summed axis.

        `depth` is the C expression of the position along that axis. The names begin with `label`,
        which is "x" or "y".
        """
        return []

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        """Return (name, C expression) of the index variables that depend only on the matrix.

        `matrix` is the C expression of the matrix's number in the batch. The names begin with
        `label`, which is "x" or "y".
        """
        return []

    def element(self, label: str) -> str:
        """Return the C expression that reads the stored element which the index variables select.

        `label` is the name of the operand's pointer, "x" or "y", with which the names of its index
        variables begin.
        """
        raise NotImplementedError

    def value(self, k: Kernel, label: str) -> str:
        """Return the C expression for the element which the index variables select.

        It has the dtype in which kernels compute: float32 for an operand of 16-bit floats. `label`
        is the name of the operand's pointer, "x" or "y".
        """
        return k.dialect.load(self.dtype, self.element(label))


@dataclasses.dataclass(frozen=True)
class Matrices(Operand):
    """A matmul operand: a batch of strided matrices in a buffer.

    Attributes:
        lines: number of lines (rows of x, columns of y) of a matrix.
        depth: number of elements of a line.
        line_step: stride between lines, in elements.
        step: stride between the elements of a line, in elements.
    """

    lines: int
    depth: int
    line_step: int
    step: int

    def numbers(self, k: Kernel, label: str) -> None:
        k.number(f"{label}_line_step", self.line_step)
        k.number(f"{label}_step", self.step)
        k.number(f"{label}_matrix_size", self.lines * self.depth)

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        return [(f"{label}_line", f"{line} * {label}_line_step")]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        return [(f"{label}_along", f"{depth} * {label}_step")]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        return [(f"{label}_from", f"{matrix} * {label}_matrix_size")]

    def element(self, label: str) -> str:
        return f"{label}[{label}_from + {label}_line + {label}_along]"

    @property
    def along(self) -> bool:
        return self.step == 1


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype in which a matmul accumulates, for operands of dtype `dtype`.

    16-bit floats accumulate in float32, integers in unsigned integers of at least 32 bits; other
    dtypes in themselves.
    """
    if dtype in (float16, bfloat16):
        return float32
    if dtype.is_integer:
        return uint64 if dtype.itemsize == 8 else uint32
    return dtype


@dataclasses.dataclass(frozen=True)
class Matmul:
    """Description of a matmul: out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j].

    Attributes:
        sizes: (rows, columns, depth), where the depth is the length of the summed axis.
        batch: sizes of the batch's axes.
        x, y: the operands.
        dtype: dtype of the result.
        place: number of the result's buffer.
        columns_together: on a GPU, how many columns of the result form one block in memory, which
            holds all rows and matrices of these columns; 0 means all columns.
        offset: position of the first result element in its buffer, on a CPU.
    """

    sizes: tuple[int, int, int]
    batch: tuple[int, ...]
    x: Operand
    y: Operand
    dtype: DType
    place: int
    columns_together: int = 0
    offset: int = 0

    @property
    def count(self) -> int:
        """Number of matrices in the batch of a matmul."""
        return math.prod(self.batch)

    @property
    def extent(self) -> int:
        """Largest number of elements of any buffer of the matmul, which decides the index type."""
        return max(self.x.size, self.y.size, self.count * self.sizes[0] * self.sizes[1])

    @property
    def run(self) -> int:
        """Number of adjacent columns of the result in memory, after which the next row follows."""
        return self.columns_together or self.sizes[1]

    def declare(self, k: Kernel) -> None:
        """Declare the matmul's operands and result as parameters x, y and out of kernel `k`."""
        k.read("x", self.x.dtype, self.x.place)
        k.read("y", self.y.dtype, self.y.place)
        k.write("out", self.dtype, self.place)

    def result(self, k: Kernel) -> str:
        """Return the C expression for the offset of element (r, c) of result matrix `at`.

        `r`, `c` and `at` are variables of the kernel. The method declares the other kernel
        parameters that the expression uses.
        """
        if self.run == self.sizes[1]:
            return "(at * m + r) * n + c"
        k.number("run", self.run)
        k.number("matrices", self.count)
        return "((c / run * matrices + at) * m + r) * run + c % run"


def define(k: Kernel, values: list[tuple[str, str]]) -> None:
    """Append a definition to kernel `k` for each (variable, C expression)."""
    for name, text in values:
        k.line(f"const ix {name} = {text};")


def matrix_numbers(
    k: Kernel, batch: tuple[int, ...], operands: tuple[Operand, Operand], at: str
) -> None:
    """Append to kernel `k` definitions of ``x_matrix`` and ``y_matrix``.

    They are the numbers of the matrices of x and y whose product is result matrix `at`; a broadcast
    operand has fewer matrices than the result.
    """
    places = k.split(at, ["", *k.numbers("batch", batch)[1:]], "b")
    for label, matrices in zip("xy", operands):
        terms = [
            f"{p} * {k.number(f'{label}_batch{a}', s)}"
            for a, (p, s) in enumerate(zip(places, matrices.batch_steps))
        ]
        k.line(f"const ix {label}_matrix = {' + '.join(terms) or '0'};")


def rounded(device: GridDevice, dtype: DType, value: str) -> str:
    """Return the C expression that rounds a sum to the stored dtype of the result."""
    if dtype in (float16, bfloat16):
        return device.dialect.store(dtype, value)
    return f"({SUFFIX[dtype]})({value})"
