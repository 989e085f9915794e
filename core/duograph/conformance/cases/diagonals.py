"""Conformance test cases of triangles, bands and diagonals of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import ops
from ...dtype import ALL, bool_
from ...ops.banded_diagonals import matrix_diag
from ...ops.diagonals import (
    diag_embed_by,
    diagonal_by,
    fill_diagonal,
    matrix_band_part,
    set_diagonal_by,
    trace,
    tril,
    triu,
)
from ..case import FOUR, NUMBER, ROWS, Array, Bad, Make, OpCase, Sample, Samples, by_shape

MATRICES = {"zero_d": "a matrix has two axes"}


def triangle(*args: object) -> Samples:
    return by_shape(
        ("normal", (3, 4), *args),
        ("normal", (4, 2), *args),
        ("normal", (2, 3, 3), *args),
        ("empty", (0, 3), *args),
        ("empty", (2, 3, 0), *args),
        ("odd", (7, 11, 13), *args),
        ("noncontiguous", (4, 5), *args),
        ("nan", (3, 3), *args),
    )


def band(x: Array, lower: int, upper: int) -> Array:
    at = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    keep = ((lower < 0) | (at >= -lower)) & ((upper < 0) | (at <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


def embedded(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def set_diagonals(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), make(3), 0, 0, 1))
    yield Sample((make(2, 4, 3), make(2, 2), 1, 1, 2))
    yield Sample((make(3, 4), make(2), -1, 0, 1))
    yield Sample((make(2, 0), make(0), 0, 0, 1), kind="empty")
    yield Sample((make(7, 11), make(7), 2, 0, 1), kind="odd")
    yield Sample((make.strided(4, 5), make(4), 0, 0, 1), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), make.special(3), 0, 0, 1), kind="nan")


def set_diagonal(x: Array, values: Array, offset: int, dim1: int, dim2: int) -> Array:
    out = np.array(x)
    view = np.moveaxis(out, (dim1, dim2), (-2, -1))
    i = np.arange(values.shape[-1])
    view[..., i + max(-offset, 0), i + max(offset, 0)] = values
    return out


def filled_diagonal(x: Array, value: Array, wrap: bool = False) -> Array:
    out = np.array(x)
    if out.size:
        np.fill_diagonal(out, np.asarray(value).astype(x.dtype), wrap)
    return out


CASES = [
    OpCase(
        tril,
        triangle(1),
        oracle=np.tril,
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "tril: got shape")],
    ),
    OpCase(
        triu,
        triangle(-1),
        oracle=np.triu,
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "triu: got shape")],
    ),
    OpCase(
        matrix_band_part,
        triangle(1, 0),
        oracle=band,
        without=MATRICES,
        errors=[Bad((FOUR, 0, 0), ValueError, "matrix_band_part: got shape")],
    ),
    OpCase(
        ops.diagonal,
        by_shape(
            ("normal", (3, 4)),
            ("normal", (2, 3, 4), 1, 0, 2),
            ("normal", (3, 4), -1),
            ("empty", (0, 3)),
            ("empty", (2, 3), 7),
            ("odd", (7, 11, 3), 2, 1, 0),
            ("noncontiguous", (4, 5)),
            ("nan", (3, 3)),
        ),
        dtypes=ALL,
        oracle=np.diagonal,
        covers=[diagonal_by],
        errors=[
            Bad((FOUR,), ValueError, "diagonal: got 1 axes"),
            Bad((ROWS, 0, 1, -1), ValueError, "diagonal: got dim1="),
        ],
    ),
    OpCase(
        trace,
        by_shape(
            ("normal", (3, 4)),
            ("empty", (0, 3)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (3, 3)),
        ),
        dtypes=tuple(d for d in ALL if d is not bool_),
        why="a sum of bools is none",
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "trace: got shape")],
    ),
    OpCase(
        ops.diag_embed,
        by_shape(
            ("normal", (3,)),
            ("normal", (2, 3), 1),
            ("normal", (2, 3), -2, 0, 1),
            ("empty", (0,)),
            ("empty", (0, 2)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (9,)),
        ),
        dtypes=ALL,
        oracle=embedded,
        covers=[diag_embed_by],
        errors=[Bad((NUMBER,), ValueError, "diag_embed: got 1 axes")],
    ),
    OpCase(
        ops.diagonal_scatter,
        set_diagonals,
        dtypes=ALL,
        oracle=set_diagonal,
        covers=[set_diagonal_by],
        errors=[
            Bad(
                (ROWS, FOUR),
                ValueError,
                r"diagonal_scatter: got src of shape \(4,\); wanted \(2,\)",
            )
        ],
    ),
    OpCase(
        ops.matrix_diag,
        by_shape(
            ("normal", (3,)),
            ("normal", (2, 2), 1, 3, 3),
            ("empty", (0,)),
            ("odd", (7, 5), -3),
            ("nan", (9,)),
        ),
        dtypes=ALL,
        covers=[matrix_diag],
        oracle=lambda x, k=0, rows=-1, columns=-1: embedded(x, k),
        errors=[Bad((FOUR, 0, 3, 3), ValueError, "matrix_diag: got shape")],
    ),
    OpCase(
        ops.fill_diagonal,
        by_shape(
            ("normal", (3, 4), 1),
            ("normal", (5, 2), 1, True),
            ("normal", (3, 3, 3), 1),
            ("empty", (0, 3), 1),
            ("odd", (13, 7), 1),
            ("noncontiguous", (4, 5), 1),
            ("nan", (3, 3), 0),
        ),
        dtypes=ALL,
        oracle=filled_diagonal,
        covers=[fill_diagonal],
        errors=[Bad((FOUR, 1), ValueError, "fill_diagonal: got shape")],
    ),
]
