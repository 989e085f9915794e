"""Type promotion: every pair of dtypes against a table written by hand."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import dtype as d

# Rows and columns in the order of dtype.ALL; one letter pair per result.
#       b  i8  i16 i32 i64 u8  u16 u32 u64 f16 bf  f32 f64 c64 c128
TABLE = """
bool    b   i8  i16 i32 i64 u8  u16 u32 u64 f16 bf  f32 f64 c64 c128
int8    i8  i8  i16 i32 i64 i16 i32 i64 f32 f16 bf  f32 f64 c64 c128
int16   i16 i16 i16 i32 i64 i16 i32 i64 f32 f16 bf  f32 f64 c64 c128
int32   i32 i32 i32 i32 i64 i32 i32 i64 f32 f16 bf  f32 f64 c64 c128
int64   i64 i64 i64 i64 i64 i64 i64 i64 f32 f16 bf  f32 f64 c64 c128
uint8   u8  i16 i16 i32 i64 u8  u16 u32 u64 f16 bf  f32 f64 c64 c128
uint16  u16 i32 i32 i32 i64 u16 u16 u32 u64 f16 bf  f32 f64 c64 c128
uint32  u32 i64 i64 i64 i64 u32 u32 u32 u64 f16 bf  f32 f64 c64 c128
uint64  u64 f32 f32 f32 f32 u64 u64 u64 u64 f16 bf  f32 f64 c64 c128
float16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128
bfloat16 bf bf  bf  bf  bf  bf  bf  bf  bf  f32 bf  f32 f64 c64 c128
float32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128
float64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128
complex64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128
complex128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
SHORT = dict(
    zip(
        [
            "b",
            "i8",
            "i16",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
            "f16",
            "bf",
            "f32",
            "f64",
            "c64",
            "c128",
        ],
        d.ALL,
        strict=True,
    )
)
PAIRS = [
    (d.as_dtype(row.split()[0]), d.ALL[j], SHORT[want])
    for row in TABLE.strip().splitlines()
    for j, want in enumerate(row.split()[1:])
]


def test_promotion_table_has_all_pairs() -> None:
    assert len(PAIRS) == len(d.ALL) ** 2


@pytest.mark.parametrize(("a", "b", "want"), PAIRS, ids=lambda x: x.name)
def test_promotion_of_pairs(a: d.DType, b: d.DType, want: d.DType) -> None:
    assert d.promote(a, b) is want
    assert d.promote(b, a) is want


@pytest.mark.parametrize(
    ("dtype", "scalar", "want"),
    [
        (ms.uint8, 300, ms.uint8),  # B14: uint8 * 300 stays UInt8
        (ms.int32, 2, ms.int32), (ms.int32, 2.5, ms.float32), (ms.int32, True, ms.int32),
        (ms.bool_, 1, ms.int64), (ms.bool_, 1.5, ms.float32), (ms.bool_, True, ms.bool_),
        (ms.float16, 2.5, ms.float16), (ms.bfloat16, 3, ms.bfloat16), (ms.float64, 2.5, ms.float64),
        (ms.float32, 1j, ms.complex64), (ms.float64, 1j, ms.complex128),
        (ms.int8, 1j, ms.complex64),
    ],
)  # fmt: skip
def test_numbers_are_weak(dtype: d.DType, scalar: object, want: d.DType) -> None:
    """B14: int32 + float16 gives Float16; uint8 * 300 stays UInt8; int / int gives Float32."""
    assert d.promote_scalar(dtype, scalar) is want
    if want.kind != "b":
        assert (ms.Tensor([1], dtype) * scalar).dtype is want
        assert (scalar * ms.Tensor([1], dtype)).dtype is want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (1, ms.int64), (1.5, ms.float32), (True, ms.bool_), ([1, 2], ms.int64), ([1.5], ms.float32),
        (np.array([1.5]), ms.float64), (np.float64(1.5), ms.float64), (1j, ms.complex128),
        ([[True]], ms.bool_), (np.array([1], np.uint16), ms.uint16),
    ],
)  # fmt: skip
def test_dtype_of_tensors_from_python_values(value: object, want: d.DType) -> None:
    """B13: Python ints infer Int64, floats Float32, NumPy float64 stays Float64."""
    assert ms.Tensor(value).dtype is want


@pytest.mark.parametrize(
    ("given", "want"),
    [("float16", ms.float16), (np.float32, ms.float32), (bool, ms.bool_), (int, ms.int64),
     (float, ms.float32), (np.dtype("int8"), ms.int8), (ms.bfloat16, ms.bfloat16)],
)  # fmt: skip
def test_as_dtype(given: object, want: d.DType) -> None:
    assert d.as_dtype(given) is want


@pytest.mark.parametrize("given", ["float33", object(), 3, np.dtype("U3")])
def test_as_dtype_refuses(given: object) -> None:
    with pytest.raises(TypeError, match="wanted one of bool, int8"):
        d.as_dtype(given)


def test_dtype_names_print_as_in_mindspore() -> None:
    assert [str(x) for x in (ms.float32, ms.bool_, ms.uint8, ms.bfloat16, ms.complex64)] == [
        "Float32", "Bool", "UInt8", "BFloat16", "Complex64"]  # fmt: skip
