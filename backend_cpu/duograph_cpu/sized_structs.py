"""C structs whose numbers are computed from symbolic sizes, and memory with their numbers.

A kernel builder calls `kernels.plan` with the fields of a struct. If the operand types have symbols
(`duograph.dims`), some fields are expressions of them, and the result is a `SizedStruct`. When a
program is linked, `Image` collects all such structs of the program; `Image.filled` makes a copy for
the sizes of one call. A function of C that is called while a kernel is prepared needs numbers: cffi
refuses a SizedStruct as its argument, and the program is then prepared for each shape. So nothing
can use a wrong number without notice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from duograph.backend.sizes import Dim, Real, SizeNeeded, hint_of, is_symbolic, text_of

from ._native import ffi

if TYPE_CHECKING:
    from duograph.backend.protocol import Array
    from duograph.dtype import DType
    from duograph.types import TensorType

    from ._native import CData, CType

__all__ = [
    "WORD", "Element", "Image", "SizeTable", "SizedStruct", "has_sizes", "hinted", "refuse_sizes",
    "unsized",
]  # fmt: skip

_START = re.compile(r"^DG_KERNEL [^\n]*\{\n", re.MULTILINE)
_NAME = re.compile(r"\bdg_(size|real)(\d+)\b")
# An int is not longer than the literal for which it stands: the compiler then makes the same code.
_C_TYPES = {"size": "int", "real": "double"}
_MOST_INT = 2**31 - 1
WORD = 8  # bytes of a number in a struct or table
ALIGNMENT = 64


def has_sizes(value: object) -> bool:
    """Return whether a field of a struct has expressions of sizes, or points to such a struct."""
    if isinstance(value, (tuple, list)) and not isinstance(value, Element):
        return any(map(has_sizes, value))
    return is_symbolic(value) or isinstance(value, (SizedStruct, Element))


class Element(NamedTuple):
    """The bytes of one element of a tensor, in a field of a struct: a number of a dtype."""

    number: Any
    dtype: DType

    def word(self, number: Any) -> int:
        """Return the bytes of the element for a value of its number, as an int of 64 bits."""
        found = np.array(number).astype(self.dtype.np).tobytes().ljust(WORD, b"\0")
        return int.from_bytes(found, sys.byteorder, signed=True)


def unsized(*_: object) -> NoReturn:
    """Stand for the `run` function of a call prepared for symbolic sizes, which only links."""
    raise RuntimeError("CPU: a kernel prepared for symbolic sizes was called; please report this")


def hinted(constants: CData | SizedStruct) -> CData:
    """Return a C struct; of a `SizedStruct`, one for the example sizes of its symbols.

    It must only be used for what does not depend on these sizes.
    """
    return constants.hinted if isinstance(constants, SizedStruct) else constants


def refuse_sizes(what: str, *types: TensorType) -> None:
    """Refuse symbolic sizes, for a kernel whose preparation depends on sizes in many ways.

    `what` names the kernel.

    Raises:
        SizeNeeded: a size is symbolic.
    """
    if has_sizes([t.shape for t in types]):
        raise SizeNeeded(f"the CPU backend prepares {what} for each shape")


class SizedStruct:
    """A C struct, or an array of numbers, some of which are expressions of sizes.

    Attributes:
        nbytes: size of the struct.
        hinted: the struct for the hints of the symbols; NULL stands for pointers to such structs.
        words: its content, as 64-bit words, for the hints of the symbols.
        numbers: (position among the words, expression) of each number to compute.
        pointers: (position among the words, struct) of each pointer to another such struct.
        keep: objects whose memory the struct points to.
    """

    def __init__(self, struct: str, fields: object) -> None:
        ctype = ffi.typeof(struct)
        self.numbers: list[tuple[int, Any]] = []
        self.pointers: list[tuple[int, SizedStruct]] = []
        made = ffi.new(ffi.getctype(struct, "*"), self._hinted(ctype, fields, 0))
        self.hinted: CData = made
        self.nbytes = ffi.sizeof(ctype)
        self.words: Array = np.frombuffer(ffi.buffer(made), np.int64).copy()
        self.keep: tuple[object, ...] = (fields,)

    def _hinted(self, ctype: CType, value: Any, at: int) -> Any:
        """Return a field's value with hints for sizes; record where the sizes stand.

        Args:
            ctype: the type of the field.
            value: its value, as for ``ffi.new``.
            at: offset of the field in bytes.
        """
        if ctype.kind == "struct":
            items = dict(ctype.fields)
            given = value if isinstance(value, Mapping) else dict(zip(items, value))
            return {
                name: self._hinted(items[name].type, v, at + items[name].offset)
                for name, v in given.items()
            }
        if isinstance(value, Element):
            self.numbers.append((at // WORD, value))
            return b""
        if ctype.kind == "array" and isinstance(value, (tuple, list)):
            step = ffi.sizeof(ctype.item)
            return [self._hinted(ctype.item, v, at + k * step) for k, v in enumerate(value)]
        if isinstance(value, SizedStruct):
            self.pointers.append((at // WORD, value))
            return ffi.NULL
        if is_symbolic(value):
            assert ffi.sizeof(ctype) == WORD and at % WORD == 0
            self.numbers.append((at // WORD, value))
            return hint_of(value)
        return value


class SizeTable(SizedStruct):
    """The sizes that generated C functions read: ints, then reals, as words of 64 bits.

    Attributes:
        ints, reals: the expressions, in the order of the names that `name` returned.
    """

    def __init__(self) -> None:
        self.ints: list[Dim] = []
        self.reals: list[Real] = []
        self._names: dict[int, str] = {}
        self.pointers = []
        self.keep = ()

    def name(self, value: Dim | Real) -> str:
        """Return the name of a symbolic number in the source of the function."""
        found = self._names.get(id(value))
        if found is None:
            if type(value) is Dim:
                if not value <= _MOST_INT:
                    raise SizeNeeded(f"CPU: the size {text_of(value)} exceeds an int of C")
                found = f"dg_size{len(self.ints)}"
                self.ints.append(value)
            else:
                found = f"dg_real{len(self.reals)}"
                self.reals.append(value)  # type: ignore[arg-type]
            self._names[id(value)] = found
        return found

    def read(self, text: str, operand: int) -> str:
        """Return the source of functions with declarations of the names that they use.

        `operand` is the position of the table's address among their pointers.
        """
        starts = [m.end() for m in _START.finditer(text)]
        made = [text[: starts[0]]]
        for begin, end in zip(starts, [*starts[1:], len(text)]):
            body = text[begin:end]
            for kind, k in sorted(set(_NAME.findall(body))):
                type_ = _C_TYPES[kind]
                at = int(k) + (len(self.ints) if kind == "real" else 0)
                value = f"((const {'i64' if kind == 'size' else 'f64'} *)args[{operand}])[{at}]"
                made.append(f"    const {type_} dg_{kind}{k} = ({type_}){value};\n")
            made.append(body)
        return "".join(made)

    @property
    def numbers(self) -> list[tuple[int, Any]]:  # type: ignore[override]
        return list(enumerate([*self.ints, *self.reals]))

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return WORD * (len(self.ints) + len(self.reals))

    @property
    def words(self) -> Array:  # type: ignore[override]
        return np.zeros(len(self.ints) + len(self.reals), np.int64)


class Image:
    """The structs and tables of a program that hold numbers computed from sizes, as one block.

    Attributes:
        numbers: the expressions to compute, without repetition.
    """

    def __init__(self) -> None:
        self.numbers: list[Any] = []
        self._which: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._structs: list[SizedStruct] = []
        self._words: list[Array] = []
        self._nbytes = 0
        self._ints: list[tuple[int, int]] = []
        self._reals: list[tuple[int, int]] = []
        self._pointers: list[tuple[int, int]] = []
        self._elements: list[tuple[int, int, Element]] = []

    def add(self, struct: SizedStruct) -> int:
        """Enter a struct, and those to which it points; return its offset in the block in bytes."""
        found = self._offsets.get(id(struct))
        if found is not None:
            return found
        offset = self._offsets[id(struct)] = self._nbytes
        self._structs.append(struct)
        room = -(-struct.nbytes // ALIGNMENT) * ALIGNMENT
        self._nbytes += room
        words = np.zeros(room // WORD, np.int64)
        words[: struct.nbytes // WORD] = struct.words
        self._words.append(words)
        for at, value in struct.numbers:
            if isinstance(value, Element):
                self._elements.append((offset // WORD + at, self._number(value.number), value))
                continue
            k = self._number(value)
            of = self._reals if type(value) is Real else self._ints
            of.append((offset // WORD + at, k))
        for at, other in struct.pointers:
            self._pointers.append((offset // WORD + at, self.add(other)))
        return offset

    def _number(self, value: Any) -> int:
        found = self._which.get(id(value))
        if found is None:
            found = self._which[id(value)] = len(self.numbers)
            self.numbers.append(value)
        return found

    def finish(self) -> None:
        """Prepare for `filled`, after the last `add`."""
        self._content = np.concatenate([*self._words, np.zeros(ALIGNMENT // WORD, np.int64)])
        pairs = (self._ints, self._reals, self._pointers)
        self._places = [np.array(p, np.int64).reshape(-1, 2).T for p in pairs]

    def filled(self, values: Sequence[Any]) -> tuple[Array, int]:
        """Return a block with the numbers for given values of `numbers`, and its address."""
        block = self._content.copy()
        address = block.ctypes.data
        first = -address % ALIGNMENT // WORD  # blocks of NumPy are aligned to 16 bytes
        if first:
            block[first:] = self._content[: len(block) - first]
        body = block[first:]
        ints, reals, pointers = self._places
        if ints.size:
            body[ints[0]] = [values[k] for k in ints[1]]
        if reals.size:
            body.view(np.float64)[reals[0]] = [values[k] for k in reals[1]]
        for at, k, element in self._elements:
            body[at] = element.word(values[k])
        address += first * WORD
        if pointers.size:
            body[pointers[0]] = pointers[1] + address
        return block, address
