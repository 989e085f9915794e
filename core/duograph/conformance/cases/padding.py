"""Conformance test cases of padding, and of ops that exchange pixels and channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ops
from ...dtype import ALL
from ...ops.movement import pad_by
from ...ops.padding import (
    channel_shuffle,
    depth_to_space,
    pad_index,
    pixel_shuffle,
    pixel_unshuffle,
    space_to_depth,
)
from ..case import CUBE, ROWS, Array, Bad, OpCase, Oracle, Samples, by_shape

if TYPE_CHECKING:
    from ...dtype import DType


def padded(mode: str) -> Oracle:
    def oracle(
        x: Array, padding: Sequence[int], mode_: str | None = None, value: Array | None = None
    ) -> Array:
        pairs = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
        pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
        inner = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape))]
        if mode != "constant":
            inner = x  # what is cut off is still reflected
            full = [(max(a, 0), max(b, 0)) for a, b in pairs]
            how: Any = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
            wide = np.pad(inner, full, how)
            return wide[
                tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, wide.shape))
            ]
        fit = np.asarray(0 if value is None else value).astype(x.dtype)
        full = [(max(a, 0), max(b, 0)) for a, b in pairs]
        return np.pad(inner, full, constant_values=fit) if x.ndim else x

    return oracle


def pads(mode: str) -> Samples:
    rows: list[tuple[object, ...]] = [
        ("normal", (3, 4), (2, 1), mode),
        ("normal", (2, 3, 4), (1, 2, 2, 1), mode),
        ("normal", (3, 5), (-1, 1, 1, -1), mode),
        ("noncontiguous", (4, 5), (1, 1), mode),
        ("odd", (7, 11, 3), (0, 2, 3, 0), mode),
        ("nan", (3, 3), (1, 1), mode),
    ]
    if mode == "constant":
        rows += [("empty", (0, 3), (1, 1, 2, 0), mode), ("zero_d", (), (), mode)]
        rows += [("edge", (2, 3), (1, 1), mode, 1)]
    return by_shape(*rows)


def blocks_out(x: Array, r: int, depth_first: bool) -> Array:
    *lead, c, h, w = x.shape
    if depth_first:  # the place in the block is the slower part of the channel
        parts = x.reshape(lead[0], r, r, c // (r * r), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        k = len(lead)
        parts = x.reshape(*lead, c // (r * r), r, r, h, w)
        parts = parts.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return parts.reshape(*lead, c // (r * r), h * r, w * r)


def blocks_in(x: Array, r: int, depth_first: bool) -> Array:
    *lead, c, h, w = x.shape
    if depth_first:
        parts = x.reshape(lead[0], c, h // r, r, w // r, r).transpose(0, 3, 5, 1, 2, 4)
    else:
        k = len(lead)
        parts = x.reshape(*lead, c, h // r, r, w // r, r)
        parts = parts.transpose(*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return parts.reshape(*lead, c * r * r, h // r, w // r)


NO_ZERO_D = {"zero_d": "it has three axes at least"}


def shuffles(factor: int, channels: int, side: int) -> Samples:
    c, s = channels, side
    return by_shape(
        ("normal", (1, c, s, s), factor),
        ("normal", (2, 2 * c, s, 2 * s), factor),
        ("empty", (0, c, s, s), factor),
        ("odd", (3, c, 3 * s, 5 * s), factor),
        ("noncontiguous", (1, c, s, 2 * s), factor),
        ("nan", (1, c, s, 2 * s), factor),
    )


def full(shape: Sequence[int], value: Array, dtype: DType) -> Array:
    return np.full(shape, np.asarray(value).astype(dtype.np), dtype.np)


CASES = [
    OpCase(
        pad_by,
        by_shape(
            ("normal", (2, 3), (1, 0), (0, 2), 0),
            ("normal", (2, 3), (1, 1), (1, 1), 1),
            ("zero_d", (), (), (), 0),
            ("empty", (0, 3), (1, 0), (1, 0), 1),
            ("odd", (7, 11), (3, 5), (2, 0), 0),
            ("noncontiguous", (4, 5), (1, 1), (0, 0), 0),
            ("nan", (9,), (1,), (1,), 0),
        ),
        errors=[Bad((ROWS, (-1, 0), (0, 0), 0), ValueError, "pad_constant: got low=")],
    ),
    *[
        OpCase(
            ops.pad,
            pads(mode),
            dtypes=ALL,
            oracle=padded(mode),
            name=f"pad {mode}",
            covers=[pad_index] if mode == "reflect" else (),
            errors=[
                Bad((ROWS, (1, 1, 1)), ValueError, "pad: got padding="),
                Bad((ROWS, (1, 1), "odd"), ValueError, "pad: got mode='odd'"),
                Bad((ROWS, (3, 0), "reflect"), ValueError, "pad: .*has at most 2 to give"),
                Bad((ROWS, (-2, -2)), ValueError, "pad: .*less than nothing"),
            ],
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    ],
    OpCase(
        pixel_shuffle,
        shuffles(2, 4, 1),
        oracle=lambda x, r: blocks_out(x, r, False),
        without=NO_ZERO_D,
        errors=[
            Bad((CUBE, 2), ValueError, "pixel_shuffle: got shape"),
            Bad((CUBE, 0), ValueError, "positive"),
        ],
    ),
    OpCase(
        pixel_unshuffle,
        shuffles(2, 3, 2),
        oracle=lambda x, r: blocks_in(x, r, False),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "pixel_unshuffle: got shape")],
    ),
    OpCase(
        depth_to_space,
        shuffles(2, 8, 1),
        oracle=lambda x, r: blocks_out(x, r, True),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "DepthToSpace: got shape")],
    ),
    OpCase(
        space_to_depth,
        shuffles(2, 3, 2),
        oracle=lambda x, r: blocks_in(x, r, True),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "SpaceToDepth: got shape")],
    ),
    OpCase(
        channel_shuffle,
        shuffles(2, 4, 2),
        without=NO_ZERO_D,
        oracle=lambda x, g: (
            x.reshape(x.shape[0], g, x.shape[1] // g, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)
        ),
        errors=[Bad((CUBE, 2), ValueError, "channel_shuffle: got shape")],
    ),
]
