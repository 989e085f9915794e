"""Computes matmuls of operands in memory with NVIDIA's library cuBLASLt, if it is installed.

`CudaDevice.matmul` calls `Library.choose` to get an algorithm. The library uses Fortran order. A
matmul of x and y in C order is the matmul of the transposed matrices in Fortran order: the
library's A is our y, its B is our x, and its rows are our columns.

Tensor cores need rows that begin at multiples of 16 bytes. Large matrices with other rows are first
copied to memory with aligned rows (`_aligned`).

The library can also apply an epilogue, such as the addition of a bias, to each element of a result
before it is stored (`Epilogue`); `matmul_epilogues` uses that in compiled functions.

With DUOGRAPH_CUDA_TUNE=1 the algorithms that the library proposes are timed, and the fastest one is
used (`tuning`).

DUOGRAPH_CUDA_CUBLASLT    `0` disables the library; a path replaces cuda-pathfinder's
"""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from duograph.backend.grid import Launch
from duograph.backend.grid.matmul_operands import Matmul, Matrices
from duograph.backend.grid.strides import merged
from duograph.dtype import DType, bfloat16, float16, float32, float64
from duograph.errors import DeviceError

from . import tuning
from .pitch import BYTES, copy_rows
from .products import uses_tf32
from .sources import text

if TYPE_CHECKING:
    from duograph_cuda._native import Memory

    from .device import CudaDevice

__all__ = [
    "ALIGNED", "BIAS", "GELU", "GELU_GRADIENT", "GELU_SAVED", "Called", "Epilogue", "Library",
    "find", "pays",
]  # fmt: skip

TYPES = {
    float32: "CUDA_R_32F",
    float64: "CUDA_R_64F",
    float16: "CUDA_R_16F",
    bfloat16: "CUDA_R_16BF",
}
# Algorithms that are timed where the user asks for it.
MOST_CANDIDATES = 8
# NVIDIA's recommendation for the newest devices; allocated from the pool for the time of a call.
WORKSPACE = 32 << 20
OLDEST = 110000
# Copies to aligned rows can pay from this number of multiplications, and from this number for each
# copied element.
LEAST_WORK, WORK_PER_COPY = 1 << 28, 128
# Lengths and pitches of copies are multiples of this: the elements of two bytes in `BYTES`.
ALIGNED = BYTES // 2


@functools.cache
def _ffi() -> Any:
    import cffi  # parsing declarations takes 20 ms

    ffi = cffi.FFI()
    ffi.cdef(text("cublaslt.h"))
    return ffi


def find() -> Library | str:
    """Open cuBLASLt for the current CUDA context; return it, or why it is not used (a str)."""
    chosen = os.environ.get("DUOGRAPH_CUDA_CUBLASLT", "")
    if chosen == "0":
        return "DUOGRAPH_CUDA_CUBLASLT=0"
    try:
        if not chosen:
            from cuda.pathfinder import load_nvidia_dynamic_lib

            chosen = str(load_nvidia_dynamic_lib("cublasLt").abs_path)
        return Library(chosen)
    except (ImportError, RuntimeError) as error:
        if getattr(error, "name", None) in ("cffi", "_cffi_backend"):
            return (
                f"the Python package cffi, which calls it, is not installed ({error}); "
                "pip install cffi"
            )
        return f"it is not installed ({str(error).splitlines()[0]}); pip install nvidia-cublas"
    except (OSError, AttributeError, Refused) as error:
        return str(error)


class Refused(Exception):
    """Raised if cuBLASLt fails or cannot compute a matmul; the message is the reason."""


class Epilogue(NamedTuple):
    """What cuBLASLt computes from each element of a matmul before rounding and storing it.

    Attributes:
        kind: name of the library's constant for the epilogue.
        pointers: names of the matmul's attributes that are pointers to further tensors, which the
            epilogue reads or writes.
    """

    kind: str
    pointers: tuple[str, ...]


_VECTOR = "CUBLASLT_MATMUL_DESC_BIAS_POINTER"
_MATRIX = "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER"
# Adds a vector of one element per column.
BIAS = Epilogue("CUBLASLT_EPILOGUE_BIAS", (_VECTOR,))
# Adds such a vector and applies gelu, approximated by tanh; the second also stores what gelu reads.
GELU = Epilogue("CUBLASLT_EPILOGUE_GELU_BIAS", (_VECTOR,))
GELU_SAVED = Epilogue("CUBLASLT_EPILOGUE_GELU_AUX_BIAS", (_VECTOR, _MATRIX))
# Multiplies by the derivative of gelu at the elements of a matrix.
GELU_GRADIENT = Epilogue("CUBLASLT_EPILOGUE_DGELU", (_MATRIX,))


@dataclasses.dataclass(frozen=True)
class Called(Launch):
    """A matmul launch that calls cuBLASLt; its `Launch` fields describe our own equivalent kernel.

    Our own kernel runs if a call of the library fails. With an epilogue there is no such kernel,
    and a call that fails raises DeviceError; the launch's buffers are then x, y, those of the
    epilogue's pointers, and the result.

    Attributes:
        chosen: the library's algorithm.
    """

    chosen: _Chosen


class Library:
    """The shared library cuBLASLt, loaded and initialised for one CUDA context.

    Args:
        path: path of the shared library.

    Raises:
        OSError, AttributeError, Refused: the library does not load, lacks a function, or does not
            start.
    """

    def __init__(self, path: str) -> None:
        self.ffi = _ffi()
        self.functions = self.ffi.dlopen(path)
        number = self.functions.cublasLtGetVersion()
        self.version = f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
        if number < OLDEST:
            raise Refused(
                f"{path} is version {number}, and 11.0 ({OLDEST}) was the first with bfloat16"
            )
        self.handle = self.made("cublasLtCreate")
        self._chosen: dict[tuple[object, ...], _Chosen | None] = {}

    def call(self, name: str, *arguments: object) -> None:
        """Call a cuBLASLt function.

        Raises:
            Refused: the function failed.
        """
        status = getattr(self.functions, name)(*arguments)
        if status:
            text = self.ffi.string(self.functions.cublasLtGetStatusName(status)).decode()
            raise Refused(f"{name} gave {text}")

    def made(self, name: str, *arguments: object) -> Any:
        """Call a cuBLASLt function that creates an object; return the object."""
        place = self.ffi.new("void **")
        self.call(name, place, *arguments)
        return place[0]

    def set(self, kind: str, target: object, attribute: int, type_: str, value: int) -> None:
        """Set the integer attribute number `attribute` of the cuBLASLt object `target` to `value`.

        `kind` is the part of the function's name in cublasLt<kind>SetAttribute; `type_` is the C
        type of the value.
        """
        place = self.ffi.new(f"{type_} *", value)
        self.call(f"cublasLt{kind}SetAttribute", target, attribute, place, self.ffi.sizeof(type_))

    def layout(
        self, dtype: DType, rows: int, columns: int, pitch: int, count: int, step: int
    ) -> object:
        """Create and return a cuBLASLt descriptor of `count` Fortran-order matrices.

        Each matrix has `rows` rows and `columns` columns. The starts of neighbouring columns are
        `pitch` elements apart, those of neighbouring matrices `step` elements.
        """
        c = self.functions
        made = self.made(
            "cublasLtMatrixLayoutCreate", getattr(c, TYPES[dtype]), rows, columns, pitch
        )
        if count > 1:
            self.set("MatrixLayout", made, c.CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, "int32_t", count)
            self.set(
                "MatrixLayout", made, c.CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, "int64_t", step
            )
        return made

    def choose(self, product: Matmul, epilogue: Epilogue | None = None) -> _Chosen | None:
        """Return the algorithm that cuBLASLt selects for a matmul, or None if it has none.

        The result is cached by sizes, strides, dtypes and epilogue.
        """
        x, y, dtype, count = product.x, product.y, product.dtype, product.count
        if (
            not isinstance(x, Matrices)
            or not isinstance(y, Matrices)
            or 0 in (*product.sizes, count)
        ):
            return None
        lengths, steps = merged(product.batch, [list(x.batch_steps), list(y.batch_steps)])
        if (
            x.dtype not in TYPES
            or not (dtype is x.dtype or (dtype is float32 and x.dtype.itemsize == 2))
            or len(lengths) > 1
            or product.run != product.sizes[1]
        ):
            return None
        parts = tuple(
            (o.line_step, o.step, by[0] * o.lines * o.depth) for o, by in zip((x, y), steps)
        )
        dtypes = (x.dtype, dtype)
        key = (product.sizes, count, parts, dtypes, uses_tf32(), epilogue)
        if key not in self._chosen:
            try:
                self._chosen[key] = _Chosen(self, product.sizes, count, parts, dtypes, epilogue)
            except Refused:  # no algorithm within the workspace
                self._chosen[key] = None
        return self._chosen[key]


class _Matrix(NamedTuple):
    """A stored matrix as cuBLASLt interprets it: in Fortran order, or in C order if `transposed`.

    A line is a run of adjacent elements: a column in Fortran order, a row in C order.

    Attributes:
        dtype: dtype of the elements.
        axes: names of its axes ("m", "n", "k"), beginning with the axis along which elements are
            adjacent.
        across: length of the first of these axes, which is the length of a line.
        lines: length of the other axis, which is the number of lines.
        pitch: number of elements from the start of one line to the start of the next.
        transposed: whether cuBLASLt must transpose it.
        copy: (length of a line, number of lines) of the padded copy that is passed to cuBLASLt;
            None if the matrix itself is passed.
    """

    dtype: DType
    axes: str
    across: int
    lines: int
    pitch: int
    transposed: bool
    copy: tuple[int, int] | None = None

    @property
    def given(self) -> tuple[int, int, int]:
        """(Length of a line, number of lines, pitch) of what is passed to cuBLASLt.

        This is the matrix itself or its padded copy.
        """
        if self.copy is None:
            return self.across, self.lines, self.pitch
        return (*self.copy, _rounded(self.copy[0]))

    @property
    def nbytes(self) -> int:
        """Bytes of what is passed to cuBLASLt: the matrix or its copy."""
        _, lines, pitch = self.given
        return lines * pitch * self.dtype.itemsize

    def to_copy(self) -> Launch:
        """Return the launch that fills the padded copy from the matrix."""
        return copy_rows(self.dtype, self.lines, self.across, self.pitch, *self._target())

    def from_copy(self) -> Launch:
        """Return the launch that writes the matrix from its padded copy; it is used for results."""
        size = (self.lines, self.across)
        return copy_rows(self.dtype, *size, self.given[2], *size, self.pitch)

    def _target(self) -> tuple[int, int, int]:
        across, lines, pitch = self.given
        return lines, across, pitch


def _rounded(length: int) -> int:
    """Return a number of elements rounded up to a multiple of ALIGNED.

    That many elements, of two bytes or more, occupy a multiple of 16 bytes.
    """
    return -(-length // ALIGNED) * ALIGNED


def _matrix(dtype: DType, axes: str, rows: int, columns: int, first: int, second: int) -> _Matrix:
    """Describe a matrix with strides `first` between rows and `second` between columns.

    `rows` and `columns` are the numbers of rows and columns; `axes` has the name of the axis along
    which rows are counted, then of the axis along which columns are counted.

    Raises:
        Refused: elements are not adjacent along either axis.
    """
    if first == 1 and second >= rows:
        return _Matrix(dtype, axes, rows, columns, second, False)
    if second == 1 and first >= columns:
        return _Matrix(dtype, axes[::-1], columns, rows, first, True)
    raise Refused("a matrix with steps along both axes")


def pays(work: int, copied: int) -> bool:
    """Return whether copying `copied` elements to aligned rows makes a matmul faster.

    `work` is the number of multiplications of the matmul.
    """
    return work >= max(LEAST_WORK, WORK_PER_COPY * copied)


def _aligned(matrices: Sequence[_Matrix], work: int) -> list[_Matrix]:
    """Return the matrices of a matmul, with padded copies of unaligned ones where copies pay.

    `work` is the number of multiplications. A matrix is unaligned if its rows or columns, whichever
    are contiguous, do not begin at multiples of 16 bytes. A copy pads the length of these lines to
    such a multiple, so the axis along them becomes longer; all matrices that have this axis are
    therefore copied. No matrix is copied if tensor cores do not compute the matmul, or if the
    copies would cost more than alignment saves.
    """
    axes = {m.axes[0] for m in matrices if m.pitch * m.dtype.itemsize % BYTES}
    narrow = matrices[0].dtype.itemsize == 2 or (matrices[0].dtype is float32 and uses_tf32())
    copied = sum(m.across * m.lines for m in matrices if axes & {*m.axes})
    if not narrow or not pays(work, copied):
        return list(matrices)

    def copy(m: _Matrix) -> _Matrix:
        lengths = [
            _rounded(n) if axis in axes else n for n, axis in zip((m.across, m.lines), m.axes)
        ]
        return m._replace(copy=(lengths[0], lengths[1]))

    return [copy(m) if axes & {*m.axes} else m for m in matrices]


class _Chosen:
    """A cuBLASLt algorithm for matmuls of one shape, with its descriptors.

    Args:
        library: the library.
        sizes: numbers of rows and columns of the result, and of elements summed for each (depth).
        count: number of matrices in the batch.
        parts: for x and for y three strides in elements: between x's rows or y's columns, along the
            depth, and between matrices of the batch.
        dtypes: dtype of the operands and dtype of the result.
        epilogue: what is computed from each element of the result, or None.

    Raises:
        Refused: the library has no algorithm, or matrices would have to be copied for an epilogue.
    """

    def __init__(
        self,
        library: Library,
        sizes: tuple[int, int, int],
        count: int,
        parts: tuple[Any, ...],
        dtypes: tuple[DType, DType],
        epilogue: Epilogue | None = None,
    ) -> None:
        m, n, depth = sizes
        self.what = f"cuBLASLt {library.version} {sizes} {count} {parts} {dtypes} {epilogue}"
        self.epilogue, self.count = epilogue, count
        self.pointers: list[int] = []  # attributes that are set for each call
        self.library, ffi, c = library, library.ffi, library.functions
        dtype = dtypes[0]
        wide = dtype is float64
        compute, scale = c.CUBLAS_COMPUTE_32F, c.CUDA_R_32F
        if wide:
            compute, scale = c.CUBLAS_COMPUTE_64F, c.CUDA_R_64F
        elif dtype is float32 and uses_tf32():
            compute = c.CUBLAS_COMPUTE_32F_FAST_TF32
        self.desc = library.made("cublasLtMatmulDescCreate", compute, scale)
        (x_line, x_step, x_matrix), (y_line, y_step, y_matrix) = parts
        # A is (n, depth), B is (depth, m), and D is (n, m), in that order
        found = [
            _matrix(dtype, "nk", n, depth, y_line, y_step),
            _matrix(dtype, "km", depth, m, x_step, x_line),
            _Matrix(dtypes[1], "nm", n, m, n, False),
        ]
        self.matrices = _aligned(found, m * n * depth) if count == 1 else found
        transposes = (c.CUBLASLT_MATMUL_DESC_TRANSA, c.CUBLASLT_MATMUL_DESC_TRANSB)
        for transpose, matrix in zip(transposes, self.matrices):
            if matrix.transposed:
                library.set("MatmulDesc", self.desc, transpose, "int32_t", c.CUBLAS_OP_T)
        self.layouts = [
            library.layout(o.dtype, *o.given, count, step)
            for o, step in zip(self.matrices, (y_matrix, x_matrix, n * m))
        ]
        if epilogue is not None:
            self._add_epilogue(epilogue, n)
        preference = library.made("cublasLtMatmulPreferenceCreate")
        most, schemes = (
            c.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            c.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        )
        library.set("MatmulPreference", preference, most, "size_t", WORKSPACE)
        # partial sums in the dtype of the result would round more than our own kernels do
        only = c.CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
        library.set("MatmulPreference", preference, schemes, "uint32_t", only)
        a, b, d = self.layouts
        most_found = MOST_CANDIDATES if tuning.wanted() else 1
        proposed = ffi.new("cublasLtMatmulHeuristicResult_t[]", most_found)
        count_found = ffi.new("int *")
        library.call(
            "cublasLtMatmulAlgoGetHeuristic",
            library.handle,
            self.desc,
            a,
            b,
            d,
            d,
            preference,
            most_found,
            proposed,
            count_found,
        )
        self.results = [proposed[k] for k in range(count_found[0]) if not proposed[k].state]
        if not self.results:
            raise Refused("there is no algorithm")
        self.proposed = proposed  # owns the memory of the results
        self.one, self.zero = (ffi.new("double *" if wide else "float *", v) for v in (1, 0))

    def _add_epilogue(self, epilogue: Epilogue, n: int) -> None:
        """Set the attributes of a matmul's descriptor for an epilogue, except pointers to tensors.

        The pointers are set at each call. `n` is the number of columns.
        """
        library, c = self.library, self.library.functions
        if any(m.copy is not None for m in self.matrices):
            raise Refused("an epilogue of matrices that are copied")
        kind = getattr(c, epilogue.kind)
        library.set("MatmulDesc", self.desc, c.CUBLASLT_MATMUL_DESC_EPILOGUE, "uint32_t", kind)
        self.pointers = [getattr(c, name) for name in epilogue.pointers]
        for pointer in self.pointers:  # the choice depends on their alignment
            library.set("MatmulDesc", self.desc, pointer, "uint64_t", 256)
        if _MATRIX in epilogue.pointers:
            pitch = c.CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
            library.set("MatmulDesc", self.desc, pitch, "int64_t", n)

    def launcher(
        self,
        device: CudaDevice,
        name: str,
        build: Callable[[Launch], Callable[..., None]],
        own: Launch,
    ) -> Callable[..., None]:
        """Return a function of the buffers of x, y and the result that runs a matmul with cuBLASLt.

        With an epilogue, the buffers of its pointers come before the result's.

        If a call fails, the function warns once and launches `own`, our own kernel, from then on.
        `build` is a function that returns a callable for a launch.
        """
        y_matrix, x_matrix, result = self.matrices
        run = self._fastest(device, name)
        if self.epilogue is not None:
            return _with_epilogue(run, name, self.epilogue)
        x_copy, y_copy = [
            None if m.copy is None else build(m.to_copy()) for m in (x_matrix, y_matrix)
        ]
        back = None if result.copy is None else build(result.from_copy())
        instead: list[Callable[..., None]] = []

        def aligned(copy: Callable[..., None] | None, matrix: _Matrix, handle: Memory) -> Memory:
            if copy is None:
                return handle
            made = device.allocate(matrix.nbytes, name)
            copy(handle, made)
            return made

        def launch(x: Memory, y: Memory, out: Memory) -> None:
            if not instead:
                made = out if back is None else device.allocate(result.nbytes, name)
                problem = run(aligned(x_copy, x_matrix, x), aligned(y_copy, y_matrix, y), made)
                if problem is None:
                    if back is not None:
                        back(made, out)
                    return
                warnings.warn(
                    f"{name}: cublasLtMatmul gave {problem}; our own kernel computes this product "
                    "from now on",
                    RuntimeWarning,
                    stacklevel=2,
                )
                instead.append(build(own))
            instead[0](x, y, out)

        return launch

    def _fastest(self, device: CudaDevice, name: str) -> Callable[..., str | None]:
        """Return a function of buffers that calls the library with the best algorithm; see `_call`.

        This is the library's first proposal, or the fastest algorithm if the user has switched
        timing on (`tuning`).
        """
        if not tuning.wanted() or len(self.results) < 2:
            return self._call(device, name, self.results[0])

        def call(index: str) -> Callable[..., str | None] | None:
            known = index.isdigit() and int(index) < len(self.results)
            return self._call(device, name, self.results[int(index)]) if known else None

        y_matrix, x_matrix, result = [m.nbytes * self.count for m in self.matrices]
        sizes = [x_matrix, y_matrix, result, *(result for _ in self.pointers)]
        candidates = ((str(k), self._call(device, name, r)) for k, r in enumerate(self.results))
        found = tuning.fastest(device, self.what, candidates, call, sizes)
        return found or self._call(device, name, self.results[0])

    def _call(self, device: CudaDevice, name: str, result: Any) -> Callable[..., str | None]:
        """Return a function of buffers that calls the library with one of its algorithms.

        `result` is the library's description of the algorithm. The buffers are those that are
        passed to cuBLASLt for x, y and the result (the padded copies, if there are any), and those
        of the epilogue's pointers. The function returns None, or the name of the status if the call
        failed.
        """
        library, ffi = self.library, self.library.ffi
        a, b, d = self.layouts
        workspace, algorithm = int(result.workspaceSize), ffi.addressof(result, "algo")
        main = ffi.cast("void *", int(device.main))

        def at(handle: Memory) -> object:
            return ffi.cast("void *", handle.pointer)

        def call(x: Memory, y: Memory, out: Memory, *pointers: Memory) -> str | None:
            room = device.allocate(workspace, name)
            several = device.queues is not None
            stream = ffi.cast("void *", int(device.stream)) if several else main
            with device.inside:
                for attribute, handle in zip(self.pointers, pointers, strict=True):
                    address = int(handle.pointer)
                    library.set("MatmulDesc", self.desc, attribute, "uint64_t", address)
                status = library.functions.cublasLtMatmul(
                    library.handle,
                    self.desc,
                    self.one,
                    at(y),
                    a,
                    at(x),
                    b,
                    self.zero,
                    at(out),
                    d,
                    at(out),
                    d,
                    algorithm,
                    at(room),
                    workspace,
                    stream,
                )
                device.counts["launches"] += 1
            if not status:
                return None
            return str(ffi.string(library.functions.cublasLtGetStatusName(status)).decode())

        return call


def _with_epilogue(
    run: Callable[..., str | None], name: str, epilogue: Epilogue
) -> Callable[..., None]:
    """Return a function that runs a matmul with an epilogue and raises DeviceError if that fails.

    The function takes the buffers of x and y, those of the epilogue's pointers, and that of the
    result. `run` calls the library with x, y, the result and then the pointers. `name` is the op's,
    for messages.
    """

    def launch(x: Memory, y: Memory, *others: Memory) -> None:
        *pointers, out = others
        problem = run(x, y, out, *pointers)
        if problem is not None:
            raise DeviceError(
                f"{name}: cublasLtMatmul with {epilogue.kind} gave "
                f"{problem}; DUOGRAPH_CUDA_CUBLASLT=0 computes without the library"
            )

    return launch
