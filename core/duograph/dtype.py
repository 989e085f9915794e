"""Element types and the table of type promotion.

Each `DType` is a singleton: compare with `is` or `==`, use as a dictionary key. Names follow
MindSpore: `str(float32)` is ``Float32``, and the module can be imported as
``duograph.common.dtype`` as well. All layers use it; it imports nothing of the package.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from .dims import is_symbolic

__all__ = [
    "DType",
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "int4",
    "ALL",
    "STORAGE",
    "BOOL",
    "SIGNED",
    "UNSIGNED",
    "INTEGER",
    "FLOATING",
    "COMPLEX",
    "REAL",
    "NUMERIC",
    "INEXACT",
    "as_dtype",
    "promote",
    "promote_scalar",
    "largest_finite",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "pytype_to_dtype",
    "number",
    "int_",
    "uint",
    "float_",
    "tensor_type",
    "string",
    "list_",
    "tuple_",
    "type_none",
    "half",
    "single",
    "double",
    "short",
    "byte",
    "ubyte",
    "long",
    "intc",
    "intp",
    "uintc",
    "uintp",
    "ushort",
    "Type",
]


_NAME = re.compile(r"([a-z]+)(\d*)_?(\w*)")  # such as "float32" and "float8_e5m2"


class DType:
    """One element type, such as float32; each is a singleton.

    Attributes:
        name: lower-case name, as NumPy spells it (``float32``, ``bool``).
        np: the NumPy dtype that holds such elements on the host.
        itemsize: bytes of one element.
        kind: ``b`` bool, ``i`` signed, ``u`` unsigned, ``f`` floating, ``c`` complex, ``s`` for the
            dtypes of `STORAGE`, such as int4, which only store values.
        is_floating, is_complex, is_integer: whether the kind is ``f``, is ``c``, or is ``i`` or
            ``u``.
        index: position in `ALL` and in the table of promotions; dtypes of `STORAGE` are numbered
            after those of `ALL`.

    Examples:
        >>> import duograph as ms
        >>> str(ms.float32), ms.float32.itemsize
        ('Float32', 4)
    """

    __slots__ = (
        "name",
        "np",
        "itemsize",
        "kind",
        "is_floating",
        "is_complex",
        "is_integer",
        "index",
        "_display",
    )

    def __init__(self, name: str, host: Any, kind: str, index: int) -> None:
        self.name = name
        self.np = np.dtype(host)
        self.itemsize = self.np.itemsize
        self.kind = kind
        self.is_floating = kind == "f"
        self.is_complex = kind == "c"
        self.is_integer = kind in "iu"
        self.index = index
        display = {"bool": "Bool", "uint": "UInt", "bfloat": "BFloat"}
        stem, digits, form = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
        self._display = display.get(stem, stem.capitalize()) + digits + form.upper()

    def __str__(self) -> str:
        return self._display

    def __repr__(self) -> str:
        return f"duograph.{self.name if self.name != 'bool' else 'bool_'}"

    def __reduce__(self) -> tuple[object, ...]:
        return as_dtype, (self.name,)


_SPEC = [
    ("bool", np.bool_, "b"), ("int8", np.int8, "i"), ("int16", np.int16, "i"),
    ("int32", np.int32, "i"), ("int64", np.int64, "i"), ("uint8", np.uint8, "u"),
    ("uint16", np.uint16, "u"), ("uint32", np.uint32, "u"), ("uint64", np.uint64, "u"),
    ("float16", np.float16, "f"), ("bfloat16", ml_dtypes.bfloat16, "f"),
    ("float32", np.float32, "f"), ("float64", np.float64, "f"),
    ("complex64", np.complex64, "c"), ("complex128", np.complex128, "c"),
]  # fmt: skip
ALL: tuple[DType, ...] = tuple(DType(n, h, k, i) for i, (n, h, k) in enumerate(_SPEC))
(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32,
 float64, complex64, complex128) = ALL  # fmt: skip

# Dtypes in which tensors are stored and copied. Values are cast to and from them; no op computes
# with them, unless it or a kernel of a user's own says so. An int4 takes one byte.
_STORAGE_SPEC = [
    ("float8_e4m3fn", ml_dtypes.float8_e4m3fn), ("float8_e5m2", ml_dtypes.float8_e5m2),
    ("int4", ml_dtypes.int4),
]  # fmt: skip
STORAGE: tuple[DType, ...] = tuple(
    DType(n, h, "s", i) for i, (n, h) in enumerate(_STORAGE_SPEC, len(ALL))
)
float8_e4m3fn, float8_e5m2, int4 = STORAGE

BOOL = (bool_,)
SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGER = SIGNED + UNSIGNED
FLOATING = (float16, bfloat16, float32, float64)
COMPLEX = (complex64, complex128)
REAL = INTEGER + FLOATING
NUMERIC = REAL + COMPLEX
INEXACT = FLOATING + COMPLEX

half, single, double = float16, float32, float64
short, long, byte, intc, intp = int16, int64, int8, int32, int64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64

_NUMPY_CODE = re.compile(r"[<>=|]?[?biufc]\d{0,2}")  # such as "f4" and "<i8"
# The NumPy dtypes of these that are no part of NumPy itself.
EXTENSIONS = frozenset(d.np for d in (bfloat16, *STORAGE))

_BY_NAME = {d.name: d for d in (*ALL, *STORAGE)} | {"bool_": bool_}
_BY_NUMPY = {d.np: d for d in (*ALL, *STORAGE)}


class Type:
    """A type name of MindSpore's function signatures: a set of dtypes, or a non-tensor type.

    `MultitypeFuncGraph.register` takes them; `contains` tests membership of a dtype.
    """

    def __init__(self, name: str, members: tuple[DType, ...] = ()) -> None:
        self.name = name
        self.members = members

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def contains(self, dtype: DType) -> bool:
        """Return whether a dtype belongs to this type, as float32 does to ``number``."""
        return dtype in self.members


number = Type("Number", NUMERIC + BOOL)
int_ = int64
float_ = float32
uint = uint64
tensor_type = Type("Tensor")
string = Type("String")
list_ = Type("List")
tuple_ = Type("Tuple")
type_none = Type("None")


DTypeLike: TypeAlias = "DType | np.dtype[np.generic] | type | str"  # the arguments of as_dtype


def as_dtype(value: object) -> DType:
    """Return the DType of a name, a NumPy dtype or scalar type, or a Python number type.

    Raises:
        TypeError: no DType corresponds to `value`.

    Examples:
        >>> from duograph.dtype import as_dtype
        >>> as_dtype("float16"), as_dtype(float)
        (duograph.float16, duograph.float32)
    """
    if isinstance(value, DType):
        return value
    if value is bool:
        return bool_
    if value is int:
        return int64
    if value is float:
        return float32
    if value is complex:
        return complex128
    if isinstance(value, str):
        found = _BY_NAME.get(value.lower())
        if found is not None:
            return found
    if not isinstance(value, str) or _NUMPY_CODE.fullmatch(value):
        try:
            found = _BY_NUMPY.get(np.dtype(value).newbyteorder("="))  # type: ignore[call-overload]
        except (TypeError, ValueError):
            found = None
        if found is not None:
            return found
    raise TypeError(
        f"dtype: got {value!r}; wanted one of {', '.join(d.name for d in (*ALL, *STORAGE))}, "
        f"or a NumPy dtype of the same name"
    )


def as_computed_dtype(value: object) -> DType:
    """Return the DType of a name, a NumPy dtype or a type, if ops compute with it.

    Raises:
        TypeError: no DType corresponds to `value`, or only one of `STORAGE`, with which no op
            computes.
    """
    found = as_dtype(value)
    if found.kind == "s":
        raise TypeError(f"dtype: got {found.name}; wanted one that ops compute with")
    return found


def _combine(a: DType, b: DType) -> DType:
    """Return the dtype to which two dtypes are promoted; the table of promotions stores it."""
    if a is b:
        return a
    kinds = "biufc"
    if kinds.index(a.kind) > kinds.index(b.kind):
        a, b = b, a
    if a.kind == "b":
        return b
    if a.kind == b.kind:
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if (a.itemsize, a.index) > (b.itemsize, b.index) else b
    if a.kind == "i" and b.kind == "u":
        if a.itemsize > b.itemsize:
            return a
        return {1: int16, 2: int32, 4: int64, 8: float32}[b.itemsize]
    if b.kind == "f":  # an integer takes the float's width: int32 with float16 is float16
        return b
    if a is float64 and b is complex64:
        return complex128
    return b


_TABLE = [[_combine(a, b) for b in ALL] for a in ALL]


def promote(a: DType, b: DType) -> DType:
    """Return the common dtype to which tensors of dtypes `a` and `b` are promoted.

    The kinds rank bool < integer < float < complex, and the higher kind wins whatever the widths. A
    signed and an unsigned integer promote to the next wider signed type; uint64 with a signed
    integer promotes to float32, float16 with bfloat16 to float32, float64 with complex64 to
    complex128.

    Examples:
        >>> import duograph as ms
        >>> from duograph.dtype import promote
        >>> str(promote(ms.int32, ms.float16)), str(promote(ms.uint8, ms.int8))
        ('Float16', 'Int16')
    """
    if a.kind == "s" or b.kind == "s":
        stored = a if a.kind == "s" else b
        raise TypeError(
            f"got {a.name} and {b.name}, and no op computes with {stored.name}: cast it first, as "
            f"with x.astype(float32)"
        )
    return _TABLE[a.index][b.index]


_SCALAR = {"b": bool_, "i": int64, "f": float32, "c": complex128}
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def wrapped(value: object, dtype: DType) -> Any:
    """Return an int wrapped to the range of an integer dtype, as in C; other values are unchanged.

    For example, -1 as uint8 is 255. MindSpore converts a number that is an operand beside a tensor
    in this way.
    """
    if not dtype.is_integer or not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        return value
    bits = 8 * dtype.itemsize
    if is_symbolic(value) and 0 <= value and value < 1 << (bits - 1):
        return value
    found = int(value) & ((1 << bits) - 1)
    return found - (1 << bits) if dtype.kind == "i" and found >> (bits - 1) else found


def promote_scalar(a: DType, scalar: object) -> DType:
    """Return the dtype to which a tensor of dtype `a` and a Python number are promoted.

    The number is weakly typed: it changes the dtype only if its kind is higher (bool < int < float
    < complex), and then to int64, float32 or complex64 (complex128 if `a` is float64). A dtype of
    `STORAGE` is promoted with the number's own dtype instead.
    """
    if a.kind == "s":
        return promote(a, scalar_dtype(scalar))
    kind = scalar_kind(scalar)
    if _RANK[kind] <= _RANK[a.kind]:
        return a
    if kind == "c":
        return complex128 if a is float64 else complex64
    return _SCALAR[kind]


def scalar_kind(scalar: object) -> str:
    """Return the kind of a number: ``b`` bool, ``i`` int, ``f`` float, ``c`` complex."""
    if isinstance(scalar, (bool, np.bool_)):
        return "b"
    if isinstance(scalar, (int, np.integer)):
        return "i"
    if isinstance(scalar, (complex, np.complexfloating)):
        return "c"
    return "f"


def scalar_dtype(scalar: object) -> DType:
    """Return the dtype of a tensor made from a Python number without an explicit dtype.

    It is bool, int64, float32 or complex128.
    """
    return _SCALAR[scalar_kind(scalar)]


def _checked(owner: str, value: DType) -> DType:
    if not isinstance(value, DType):
        raise TypeError(f"{owner}: got {value!r}; wanted a dtype such as float32")
    return value


def largest_finite(dtype: DType) -> float:
    """Return the largest finite number of a floating dtype; its negative is the least one.

    Examples:
        >>> import duograph as ms
        >>> from duograph.dtype import largest_finite
        >>> largest_finite(ms.float16)
        65504.0
    """
    return float(ml_dtypes.finfo(dtype.np).max)  # type: ignore[no-untyped-call]


def dtype_to_nptype(type_: DType) -> type[np.generic]:
    """Return the NumPy scalar type of a dtype (`mindspore.dtype_to_nptype`).

    Examples:
        >>> import duograph as ms
        >>> ms.dtype_to_nptype(ms.int8)
        <class 'numpy.int8'>
    """
    return _checked("dtype_to_nptype", type_).np.type


def dtype_to_pytype(type_: DType) -> type:
    """Return `bool`, `int`, `float` or `complex` for a dtype (`mindspore.dtype_to_pytype`)."""
    kind = _checked("dtype_to_pytype", type_).kind
    if kind == "s":
        return int if type_ is int4 else float
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind]


def pytype_to_dtype(obj: object) -> DType:
    """Return the dtype of a Python type or NumPy dtype (`mindspore.pytype_to_dtype`).

    As in MindSpore, `float` maps to float64, although a tensor made of floats is float32.
    """
    if obj is float:
        return float64
    return as_dtype(obj)


# All pairs and their promotions, for documentation and tests.
PAIRS = tuple((a, b, promote(a, b)) for a, b in itertools.product(ALL, ALL))
