import itertools

import ml_dtypes
import numpy as np
import pytest
from harness import check

RNG = np.random.default_rng(3)


def conv_reference(x, w, stride, padding, dilation, groups):
    nd = x.ndim - 2
    xp = np.pad(x, [(0, 0), (0, 0), *padding])
    out = [
        (xp.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1
        for d in range(nd)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    og, cg = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, out, stride)
        )
        part = xp[(slice(None), slice(None), *window)]
        for g in range(groups):
            wt = w[(slice(g * og, (g + 1) * og), slice(None), *tap)]
            y[:, g * og : (g + 1) * og] += np.einsum(
                "oc,nc...->no...", wt, part[:, g * cg : (g + 1) * cg]
            )
    return y


def grads_reference(x, w, dy, stride, padding, dilation, groups):
    nd = x.ndim - 2
    xp = np.pad(x, [(0, 0), (0, 0), *padding])
    dxp, dw = np.zeros(xp.shape), np.zeros(w.shape)
    og, cg = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, dy.shape[2:], stride)
        )
        for g in range(groups):
            o, c = slice(g * og, (g + 1) * og), slice(g * cg, (g + 1) * cg)
            at = (slice(None), c, *window)
            dxp[at] += np.einsum("oc,no...->nc...", w[(o, slice(None), *tap)], dy[:, o])
            axes = [0, *range(2, nd + 2)]
            dw[(o, slice(None), *tap)] += np.tensordot(dy[:, o], xp[at], (axes, axes))
    crop = tuple(slice(low, low + n) for (low, high), n in zip(padding, x.shape[2:]))
    return dxp[(slice(None), slice(None), *crop)], dw


# x, w, stride, padding, dilation, groups
CASES = [
    ((2, 3, 8, 9), (4, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((2, 3, 8, 9), (5, 3, 3, 2), (2, 3), ((0, 1), (2, 1)), (1, 2), 1),
    ((1, 17, 30, 30), (20, 17, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 17, 31, 30), (20, 17, 1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1), 1),
    ((2, 6, 11), (8, 3, 5), (1,), ((2, 2),), (1,), 2),
    ((2, 6, 11), (6, 1, 3), (2,), ((1, 1),), (1,), 6),
    ((2, 8, 12, 13), (16, 1, 3, 3), (2, 1), ((1, 0), (1, 1)), (1, 2), 8),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), (1, 2, 1), ((1, 1), (0, 1), (1, 1)), (1, 1, 2), 1),
    ((2, 64, 28, 28), (64, 64, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((3, 64, 28, 28), (96, 64, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 1),
    ((1, 3, 60, 60), (64, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1), 1),
    ((4, 130, 7, 7), (70, 130, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((3, 11, 5, 7), (101, 11, 3, 3), (1, 1), ((1, 0), (2, 1)), (1, 2), 1),
    ((2, 99, 9, 8), (98, 99, 3, 2), (2, 1), ((1, 1), (0, 1)), (1, 1), 1),
    ((7, 100, 7, 7), (100, 100, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((1, 97, 3, 4, 5), (96, 97, 2, 3, 1), (1, 1, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 1), 1),
    ((2, 40, 13), (100, 40, 4), (3,), ((3, 0),), (1,), 1),
    ((2, 12, 9, 7), (20, 6, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 2),
    ((1, 33, 2, 3), (40, 33, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((2, 6, 40, 41), (12, 2, 3, 5), (2, 1), ((1, 1), (2, 2)), (1, 1), 3),
    ((1, 5, 4, 9, 11), (5, 1, 3, 3, 3), (1, 2, 2), ((1, 1), (1, 1), (1, 1)), (1, 1, 1), 5),
    ((1, 3, 130, 150), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
    ((2, 5, 14, 14), (5, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 5),
    ((2, 6, 33, 34), (6, 1, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 6),
    ((1, 4, 28, 71), (4, 1, 3, 3), (2, 2), ((0, 1), (0, 1)), (1, 1), 4),
    ((1, 3, 40, 37), (6, 1, 5, 5), (2, 2), ((2, 2), (1, 3)), (1, 1), 3),
    ((2, 4, 20, 23), (4, 1, 3, 3), (3, 3), ((1, 1), (2, 0)), (1, 1), 4),
    ((1, 4, 25, 40), (8, 1, 3, 3), (2, 2), ((2, 2), (2, 2)), (2, 2), 4),
    ((1, 3, 2, 3), (3, 1, 5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1), 3),
    ((1, 2, 4, 5), (2, 1, 1, 1), (2, 2), ((3, 3), (2, 2)), (1, 1), 2),
    ((1, 3, 8), (6, 1, 4), (1,), ((1, 2),), (1,), 3),
    ((2, 4, 3, 3), (4, 4, 2, 2), (3, 3), ((0, 0), (0, 0)), (1, 1), 1),
    ((0, 4, 5, 5), (4, 4, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
]  # fmt: skip
TOL = {np.float32: 1e-4, np.float64: 1e-10, np.float16: 3e-2, ml_dtypes.bfloat16: 1e-1}


@pytest.mark.parametrize("dtype", list(TOL))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv(case, dtype):
    xs, ws, stride, padding, dilation, groups = case
    x, w = (
        RNG.standard_normal(xs).astype(dtype),
        (RNG.standard_normal(ws) / np.sqrt(ws[1] * 9)).astype(dtype),
    )
    wide = x.astype(np.float64), w.astype(np.float64)
    tol = TOL[dtype]
    y = conv_reference(*wide, stride, padding, dilation, groups)
    attributes = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    check("conv", [x, w], y.astype(dtype), tol, **attributes)
    dy = (RNG.standard_normal(y.shape) / np.sqrt(max(1, y.size // max(1, y.shape[1])))).astype(
        dtype
    )
    dx, dw = grads_reference(*wide, dy.astype(np.float64), stride, padding, dilation, groups)
    check("conv_input_grad", [dy, w], dx.astype(dtype), tol, input_shape=xs, **attributes)
    check("conv_weight_grad", [x, dy], dw.astype(dtype), tol, weight_shape=ws, **attributes)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_instruction_sets(level):
    from duograph_cpu._native import lib

    lib.dg_isa_limit(level)
    try:
        for dtype in (np.float32, np.float64):
            for case in CASES[5:7] + CASES[9:10] + CASES[12:-2]:
                test_conv(case, dtype)
    finally:
        lib.dg_isa_limit(2)
