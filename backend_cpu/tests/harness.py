"""Runs one kernel of the CPU backend on NumPy arrays."""

import numpy as np
from duograph.dtype import as_dtype
from duograph.types import TensorType
from duograph_cpu.backend import CPU
from duograph_cpu.kernels import KERNELS

CPU_BACKEND = CPU()


def type_of(array):
    return TensorType.of(array.shape, as_dtype(array.dtype))


def run(name, arrays, like, **attributes):
    """Run the kernel of op `name` on arrays; return its results as arrays."""
    single = not isinstance(like, tuple)
    like = (like,) if single else like
    arrays = [np.asarray(a, order="C") for a in arrays]
    call = KERNELS[name](
        tuple(type_of(a) for a in arrays), tuple(type_of(a) for a in like), **attributes
    )
    assert call is not None, f"{name} has no kernel for {[a.dtype for a in arrays]}"
    found = call(*[CPU_BACKEND.copy_in(a, 0) for a in arrays])
    found = (found,) if single else found
    out = [CPU_BACKEND.copy_out(h, a.shape, a.dtype, 0) for h, a in zip(found, like)]
    return out[0] if single else tuple(out)


def check(name, arrays, expected, tol=0, **attributes):
    """Check that a kernel's results are the expected arrays, to within `tol`.

    `tol` is both the absolute and the relative tolerance.
    """
    found = run(name, arrays, expected, **attributes)
    single = not isinstance(expected, tuple)
    for f, e in zip((found,) if single else found, (expected,) if single else expected):
        if tol == 0:
            same = (f == e) | ((f != f) & (e != e))
            assert same.all(), f"{name} {attributes}: got {f}, wanted {e}"
        else:
            wide = np.complex128 if f.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                f.astype(wide), e.astype(wide), rtol=tol, atol=tol, err_msg=f"{name} {attributes}"
            )
