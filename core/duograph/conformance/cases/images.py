"""Conformance test cases of image resampling, embedding lookup and bounding boxes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...dtype import FLOATING, bfloat16, float16, float32, float64, int32
from ...ops.detection import (
    bounding_box_decode,
    bounding_box_encode,
    crop_and_resize,
    iou,
    nms_with_mask,
    roi_align,
)
from ...ops.grid_sampling import grid_sample
from ...ops.nn_functions import embedding, resize_by
from ..case import ROWS, Array, Bad, Make, OpCase, Sample
from .convolution import GRAD_TOL, NO_POINT, TOL, WHY, wide

INTEGERS = np.ones((1, 2, 2, 2), np.int64)
WHOLE = np.ones((1, 4), np.int64)


def resizes(make: Make) -> Iterator[Sample]:
    for mode in ("nearest", "linear", "cubic"):
        for rule in ("corners", "half", "plain"):
            yield Sample((make(1, 2, 4, 5), (3, 7), mode, rule, (None, None)))
            yield Sample((make(2, 1, 5), (8,), mode, rule, (None,)))
    yield Sample((make(1, 1, 3, 2, 4), (2, 3, 5), "linear", "half", (None, None, None)))
    yield Sample((make(1, 2, 5), (7,), "linear", "half", (1.5,)))
    yield Sample((make(0, 2, 3, 3), (2, 4), "linear", "half", (None, None)), kind="empty")
    yield Sample((make(3, 5, 7, 11), (13, 4), "linear", "corners", (None, None)), kind="odd")
    yield Sample(
        (make.strided(2, 3, 4, 5), (3, 3), "linear", "half", (None, None)), kind="noncontiguous"
    )
    if make.inexact:
        x = make(1, 2, 4)
        x[0, 1, 1] = np.nan
        yield Sample((x, (6,), "linear", "half", (None,)), kind="nan")


def grids(make: Make) -> Iterator[Sample]:
    def places(*shape: int) -> Array:
        # away from the edges of cells, where the derivative jumps
        return (np.floor(make.rng.uniform(0, 12, shape)) * 0.2 - 1.13).astype(make.dtype.np)

    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            smooth = mode == "bilinear" and padding == "zeros"
            yield Sample(
                (make(2, 3, 4, 5), places(2, 3, 2, 2), mode, padding, padding == "border"),
                grad=smooth,
            )
    yield Sample((make(1, 2, 3, 4, 3), places(1, 2, 2, 3, 3), "bilinear", "zeros", True))
    yield Sample((make(0, 2, 3, 3), places(0, 2, 2, 2), "bilinear", "zeros", False), kind="empty")
    yield Sample((make(3, 5, 7, 11), places(3, 5, 3, 2), "bilinear", "zeros", False), kind="odd")
    yield Sample(
        (make.strided(1, 2, 4, 5), places(1, 3, 2, 2), "bilinear", "border", False),
        kind="noncontiguous",
        grad=False,
    )
    x = make(1, 2, 4, 4)
    x[0, 1, 1, 1] = np.nan
    yield Sample((x, places(1, 2, 2, 2), "bilinear", "zeros", False), kind="nan")


def embeddings(make: Make) -> Iterator[Sample]:
    yield Sample((make.index(3, 2, below=5), make(5, 4), -1, False))
    yield Sample((make.index(3, 2, below=5), make(5, 4), 2, False), grad=False)
    yield Sample((make.index(6, below=3, dtype=int32), make(3, 2), -1, True), grad=False)
    yield Sample((make.index(below=5), make(5, 4), -1, False), kind="zero_d")
    yield Sample((make.index(0, below=5), make(5, 4), -1, False), kind="empty")
    yield Sample((make.index(11, 3, below=13), make(13, 7), -1, False), kind="odd")
    yield Sample(
        (np.repeat(make.index(4, below=5), 2)[::2], make.strided(5, 4), -1, False),
        kind="noncontiguous",
    )
    if make.inexact:
        yield Sample((make.index(4, below=3), make.special(3, 3), -1, False), kind="nan")


# ---- boxes --------------------------------------------------------------------------------------


def boxes(make: Make, n: int) -> Array:
    low = make(n, 2, low=0.0, high=8.0)
    return np.concatenate([low, low + make(n, 2, low=1.0, high=8.0)], 1).astype(make.dtype.np)


def overlaps(make: Make) -> Iterator[Sample]:
    for of_ground in (False, True):
        yield Sample((boxes(make, 3), boxes(make, 4), of_ground))
        yield Sample((boxes(make, 0), boxes(make, 4), of_ground), kind="empty")
        yield Sample((boxes(make, 7), boxes(make, 13), of_ground), kind="odd")
        yield Sample(
            (np.repeat(boxes(make, 3), 2, 0)[::2], boxes(make, 2), of_ground), kind="noncontiguous"
        )
    bad = boxes(make, 3)
    bad[1, 2] = np.nan
    yield Sample((bad, boxes(make, 2), False), kind="nan")


def overlap_of(anchor: Array, ground: Array, of_ground: bool) -> Array:
    a, g = wide(anchor), wide(ground)
    out = np.zeros((len(g), len(a)))
    for i, q in enumerate(g):
        for j, p in enumerate(a):
            w = np.maximum(np.minimum(p[2], q[2]) - np.maximum(p[0], q[0]) + 1, 0)
            h = np.maximum(np.minimum(p[3], q[3]) - np.maximum(p[1], q[1]) + 1, 0)
            own = (q[2] - q[0] + 1) * (q[3] - q[1] + 1)
            whole = own if of_ground else own + (p[2] - p[0] + 1) * (p[3] - p[1] + 1) - w * h
            out[i, j] = w * h / whole
    return out.astype(anchor.dtype)


STATS = ((0.1, 0.0, 0.2, 0.0), (0.5, 1.0, 2.0, 1.0))


def encodings(make: Make) -> Iterator[Sample]:
    yield Sample((boxes(make, 3), boxes(make, 3), *STATS))
    yield Sample((boxes(make, 0), boxes(make, 0), *STATS), kind="empty")
    yield Sample((boxes(make, 13), boxes(make, 13), *STATS), kind="odd")
    yield Sample(
        (np.repeat(boxes(make, 3), 2, 0)[::2], boxes(make, 3), *STATS), kind="noncontiguous"
    )
    bad = boxes(make, 3)
    bad[1, 2] = np.nan
    yield Sample((bad, boxes(make, 3), *STATS), kind="nan")


def decodings(make: Make) -> Iterator[Sample]:
    for sample in encodings(make):
        anchor = sample.args[0]
        rest = ((9, 12), *STATS, 0.016)
        yield Sample(
            (anchor, make(len(anchor), 4, low=-0.3, high=0.3), *rest), kind=sample.kind, grad=False
        )
    # nothing is cut here
    yield Sample((boxes(make, 3) + 20, make(3, 4, low=-0.3, high=0.3), (99, 99), *STATS, 0.016))


def suppressions(make: Make) -> Iterator[Sample]:
    def scored(n: int) -> Array:
        return np.concatenate([boxes(make, n), make.distinct(n, 1)], 1).astype(make.dtype.np)

    yield Sample((scored(6), 0.3))
    yield Sample((scored(0), 0.3), kind="empty")
    yield Sample((scored(31), 0.5), kind="odd")
    yield Sample((np.repeat(scored(4), 2, 0)[::2], 0.3), kind="noncontiguous")


def regions(make: Make) -> Iterator[Sample]:
    def rois(m: int, n: int) -> Array:
        low = make(m, 2, low=0.0, high=4.0)
        return np.concatenate(
            [
                make.index(m, 1, below=max(n, 1)).astype(low.dtype),
                low,
                low + make(m, 2, low=1.3, high=5.0),
            ],
            1,
        ).astype(make.dtype.np)

    yield Sample((make(2, 3, 6, 5), rois(3, 2), 2, 3, 0.5, 2, 1), grad=False)
    yield Sample((make(1, 2, 6, 5), rois(2, 1), 2, 2, 1.0, 1, 0), grad=False)
    yield Sample((make(1, 2, 6, 5), rois(0, 1), 2, 2, 1.0, 2, 1), kind="empty")
    yield Sample((make(3, 5, 7, 11), rois(7, 3), 3, 1, 0.75, 2, 1), kind="odd", grad=False)
    yield Sample(
        (make.strided(1, 2, 6, 5), rois(2, 1), 2, 2, 1.0, 2, 1), kind="noncontiguous", grad=False
    )
    x = make(1, 2, 6, 5)
    x[0, 1, 2, 2] = np.nan
    yield Sample((x, rois(2, 1), 2, 2, 1.0, 2, 1), kind="nan")


def crops(make: Make) -> Iterator[Sample]:
    def squares(m: int) -> Array:
        return make(m, 4, low=-0.1, high=1.1)

    for method in ("bilinear", "nearest"):
        args = (make(2, 4, 5, 3), squares(3), make.index(3, below=2), (2, 3), method, 0.5)
        yield Sample(args, grad=False)
    yield Sample(
        (make(1, 4, 5, 2), squares(0), make.index(0, below=1), (2, 2), "bilinear", 0.0),
        kind="empty",
    )
    odd = (make(3, 7, 11, 5), squares(7), make.index(7, below=3), (1, 5), "bilinear", 0.0)
    yield Sample(odd, kind="odd", grad=False)
    yield Sample(
        (make.strided(1, 4, 5, 2), squares(2), make.index(2, below=1), (2, 2), "bilinear", 0.0),
        kind="noncontiguous",
        grad=False,
    )
    x = make(1, 4, 5, 2)
    x[0, 1, 1, 1] = np.nan
    yield Sample((x, squares(2), make.index(2, below=1), (2, 2), "bilinear", 0.0), kind="nan")


NO_BOX_POINT = {"zero_d": "boxes are rows of four", "broadcast": "all pairs are formed"}

CASES = [
    OpCase(
        resize_by,
        resizes,
        dtypes=FLOATING,
        without=NO_POINT,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; integers are not meant",
        errors=[Bad(("text", (2,), "linear", "half", (None,)), TypeError, "str")],
    ),
    OpCase(
        grid_sample,
        grids,
        without=NO_POINT,
        tol={float16: 5e-2, bfloat16: 5e-1, float32: 5e-5},
        grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 5e-3},
        why=WHY,
        errors=[Bad((INTEGERS, INTEGERS, "bilinear", "zeros", True), TypeError, "int64")],
    ),
    OpCase(
        embedding,
        embeddings,
        dtypes=FLOATING,
        grad=(1,),
        why="tables are floating",
        errors=[Bad(("text", ROWS, -1, False), TypeError, "str")],
    ),
    OpCase(
        iou,
        overlaps,
        oracle=overlap_of,
        without=NO_BOX_POINT,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad=False,
        why="quotients of areas",
        errors=[Bad((WHOLE, WHOLE, False), TypeError, "int64")],
    ),
    OpCase(
        bounding_box_encode,
        encodings,
        without=NO_BOX_POINT,
        tol={float16: 2e-2, bfloat16: 2e-1},
        grad_tol={float16: 2e-1, bfloat16: 2.0, float32: 2e-4},
        why="quotients of sides",
        errors=[Bad((WHOLE, WHOLE, *STATS), TypeError, "int64")],
    ),
    OpCase(
        bounding_box_decode,
        decodings,
        without=NO_BOX_POINT,
        tol={float16: 5e-2, bfloat16: 5e-1},
        grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 2e-4},
        why="exponentials of offsets",
        errors=[Bad((WHOLE, WHOLE, (9, 9), *STATS, 0.1), TypeError, "int64")],
    ),
    OpCase(
        nms_with_mask,
        suppressions,
        dtypes=FLOATING,
        grad=False,
        without={
            "zero_d": "boxes are rows of five",
            "nan": "scores that are not numbers have no order",
        },
        why="boxes are floating; there is no gradient rule",
        errors=[Bad(("text", 0.5), TypeError, "str")],
    ),
    OpCase(
        roi_align,
        regions,
        without=NO_BOX_POINT,
        tol={float16: 1e-1, bfloat16: 1.0, float32: 1e-4},
        why="positions round to the dtype",
        grad=False,
        errors=[Bad((INTEGERS, np.ones((1, 5), np.int64), 1, 1, 1.0, 1, 1), TypeError, "int64")],
    ),
    OpCase(
        crop_and_resize,
        crops,
        dtypes=(float32, float64),
        without=NO_BOX_POINT,
        tol={float32: 1e-4},
        grad=False,
        why="positions round to the dtype; images of other dtypes are cast to that of the boxes",
        errors=[
            Bad(
                ("text", np.ones((1, 4)), np.zeros(1, np.int64), (1, 1), "bilinear", 0.0),
                TypeError,
                "str",
            )
        ],
    ),
]
