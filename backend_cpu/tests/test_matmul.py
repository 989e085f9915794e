import itertools
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from harness import check

RNG = np.random.default_rng(2)
DTYPES = [
    np.int8,
    np.uint16,
    np.int32,
    np.uint64,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]
SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 70), (70, 300)),
    ((300, 70), (70, 1)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((130, 600), (600, 700)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((40, 33, 65), (40, 65, 17)),
    ((1, 1, 9), (6, 9, 8)),
    ((1, 3000), (3000, 2000)),
    ((2000, 3000), (3000, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, b", SHAPES)
def test_matmul(a, b, dtype):
    """Both operands as they are, and transposed: four ways to the same numbers."""
    dtype = np.dtype(dtype)
    x, y = RNG.integers(0, 3, a).astype(dtype), RNG.integers(-1, 2, b).astype(dtype)
    if dtype.kind == "c":
        x, y = x + dtype.type(1j) * RNG.integers(0, 3, a), y + dtype.type(1j)
        x, y = x.astype(dtype), y.astype(dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64 if dtype.kind in "fV" else dtype
    if dtype.kind in "iu" and max(a) > 1000:
        return
    want = np.matmul(x.astype(wide), y.astype(wide)).astype(dtype)
    tol = 1e-2 if dtype.itemsize == 2 else 1e-5
    for ta, tb in itertools.product([False, True], repeat=2):
        xs = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if ta else x
        ys = np.ascontiguousarray(np.swapaxes(y, -1, -2)) if tb else y
        check("matmul", [xs, ys], want, tol=tol, transpose_a=ta, transpose_b=tb)


# Around the heights and widths of register tiles, the blocks they stand in, and the sizes from
# which work is split.
EDGES = [
    (1, 1, 1),
    (2, 17, 5),
    (7, 31, 33),
    (13, 16, 16),
    (14, 32, 384),
    (15, 33, 385),
    (29, 47, 3),
    (300, 9, 40),
    (257, 513, 70),
    (97, 641, 769),
    (1031, 37, 101),
    (6, 1100, 400),
    (64, 64, 1600),
    (2, 1030, 515),
    (3, 70, 131),
    (3, 200, 3),
    (4, 5, 7),
    (4, 33, 64),
]

EDGES_PROGRAM = """
import sys
import numpy as np
import duograph_cpu.linear as linear
from duograph_cpu._native import lib
from harness import run
lib.dg_isa_limit(int(sys.argv[1]))
if sys.argv[2] == "own":
    linear.open_blas = lambda: None
rng = np.random.default_rng(4)
for m, n, k in EDGES:
    for dtype, wide, tol in ((np.float32, np.float64, 1e-5), (np.float64, np.longdouble, 1e-13)):
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        if m > 4:
            a[3, k // 2] = np.inf
            b[k // 3, n - 1] = np.nan
        with np.errstate(invalid="ignore"):
            want = np.matmul(a.astype(wide), b.astype(wide)).astype(dtype)  # of long doubles: slow
        for ta in (False, True):
            for tb in (False, True):
                x = np.ascontiguousarray(a.T) if ta else a
                y = np.ascontiguousarray(b.T) if tb else b
                got = run("matmul", [x, y], want, transpose_a=ta, transpose_b=tb)
                where = f"{(m, n, k)} {dtype.__name__} ta={ta} tb={tb}"
                np.testing.assert_allclose(got, want, rtol=tol, atol=tol * k, err_msg=where)
"""


@pytest.mark.parametrize("isa", [0, 1, 2])
@pytest.mark.parametrize("library", ["own", "blas"])
def test_edges(isa, library):
    """Every instruction set, with and without BLAS, each in a new process: both are chosen once."""
    program = f"EDGES = {EDGES}\n{EDGES_PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(isa), library],
        capture_output=True, text=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


BITS_PROGRAM = """
import os
import sys
import zlib
if sys.argv[2] == "one":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import duograph_cpu.linear as linear
from duograph_cpu._native import lib
from harness import run
lib.dg_isa_limit(int(sys.argv[1]))
linear.open_blas = lambda: None
rng = np.random.default_rng(4)
total = 0
for m, n, k in [*EDGES, (64, 514, 600), (130, 33, 257), (300, 17, 700)]:
    for dtype in (np.float32, np.float64):
        for ta in (False, True):
            for tb in (False, True):
                x = rng.standard_normal((k, m) if ta else (m, k)).astype(dtype)
                y = rng.standard_normal((n, k) if tb else (k, n)).astype(dtype)
                out = run("matmul", [x, y], np.empty((m, n), dtype), transpose_a=ta, transpose_b=tb)
                total = zlib.crc32(out.tobytes(), total)
print(total)
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot confine a process to a core"
)
@pytest.mark.parametrize("isa", [1, 2])
def test_bits_do_not_depend_on_threads(isa):
    """Columns left over by the last strip are summed in one order, however rows and columns are
    split.
    """
    program = f"EDGES = {EDGES}\n{BITS_PROGRAM}"
    done = [
        subprocess.run(
            [sys.executable, "-c", program, str(isa), threads],
            capture_output=True, text=True, cwd=Path(__file__).parent,
        )
        for threads in ("one", "all")
    ]  # fmt: skip
    assert [d.returncode for d in done] == [0, 0], done[0].stderr + done[1].stderr
    assert done[0].stdout == done[1].stdout
