"""Runs one op of the OpenCL backend on NumPy arrays, against the op's reference.

Callers choose one of the two ways to divide the work, or a device with fewer features.
"""

import os

import numpy as np
import pytest
from duograph.backend import registry
from duograph.dtype import as_dtype
from duograph.op import OPS
from duograph.tensor import Tensor
from duograph.types import TensorType

FORMS = ("serial", "grid")
# Devices that do without a feature, or have lower limits: a name, the way of cutting the work, and
# the two environment variables of `duograph_opencl.features`.
CONFIGURATIONS = {
    f"{form}: {without or limits or 'everything'}": (form, without, limits)
    for form, without, limits in (
        ("serial", "", ""),
        ("serial", "fp64", ""),
        ("serial", "fma", ""),
        ("serial", "pragmas", ""),
        ("serial", "embedded", ""),
        ("grid", "", ""),
        ("grid", "fp64", ""),
        ("grid", "fp16", ""),
        ("grid", "subgroups", ""),
        ("grid", "fma", ""),
        ("grid", "pragmas", ""),
        ("grid", "embedded", ""),
        ("grid", "", "group=64"),
        ("grid", "", "group=8"),
        ("grid", "", "kernel_group=32"),
        ("grid", "", "kernel_group=1"),
        ("grid", "", "local=2048"),
        ("grid", "", "buffer=1048576,address=32"),
    )
}


def missing():
    """Return None if an OpenCL device works, else the reason why not.

    The test fails instead if DUOGRAPH_REQUIRE names opencl.
    """
    problem = registry.problem_of(registry.entries()["OpenCL"])
    required = [w.strip().lower() for w in os.environ.get("DUOGRAPH_REQUIRE", "").split(",")]
    if problem is not None and "opencl" in required:
        pytest.fail(f"DUOGRAPH_REQUIRE names opencl: {problem}", pytrace=False)
    return problem


needs_device = pytest.mark.skipif(missing() is not None, reason=f"no OpenCL device: {missing()}")
_backends = {}


def environment(form):
    """Return the environment variables of a form or of a configuration, by name."""
    from duograph_opencl.device import FORM_VARIABLE
    from duograph_opencl.features import LIMITS_VARIABLE, WITHOUT_VARIABLE

    values = CONFIGURATIONS.get(form, (form, "", ""))
    return dict(zip((FORM_VARIABLE, WITHOUT_VARIABLE, LIMITS_VARIABLE), values))


def backend(form="serial"):
    """Return an OpenCL backend that schedules for a processor ("serial") or a GPU ("grid").

    `form` may also be the name of a configuration: the device then lacks features.
    """
    if form not in _backends:
        from duograph_opencl.backend import OpenCL

        made = OpenCL()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(form).items():
                patch.setenv(name, value)
            made.device(0)
        _backends[form] = made
    return _backends[form]


def type_of(array):
    return TensorType.of(array.shape, as_dtype(array.dtype))


def run(form, name, arrays, **attributes):
    """Run an op on the OpenCL device; return its results as arrays."""
    b, op = backend(form), OPS[name]
    types = tuple(type_of(a) for a in arrays)
    results = op.infer_types(types, attributes)
    call = b.prepare(op, types, attributes, 0)
    assert call is not None, f"{name} has no kernel for {types}"
    found = call(*[b.copy_in(np.ascontiguousarray(a), 0) for a in arrays])
    found = found if isinstance(found, tuple) else (found,)
    return [b.copy_out(h, t.shape, t.dtype.np, 0) for h, t in zip(found, results, strict=True)]


def reference(op, arrays, attributes):
    """Return the results that an op's reference computes or, for a composite, the CPU."""
    if op.reference_rule is not None:
        with np.errstate(all="ignore"):
            found = op.reference_rule(*op.arguments(arrays), **attributes)
    else:
        found = op(*op.arguments([Tensor(a, device="CPU") for a in arrays]), **attributes)
        several = found if isinstance(found, tuple) else (found,)
        found = tuple(t.asnumpy() for t in several)
    return found if isinstance(found, tuple) else (found,)


def check(form, name, arrays, tol=0.0, **attributes):
    """Check an op's results on the device against its reference, or against its body on the CPU.

    `tol` is relative to the largest element.
    """
    wanted = reference(OPS[name], arrays, attributes)
    for got, want in zip(run(form, name, arrays, **attributes), wanted, strict=True):
        want = np.asarray(want)
        assert got.shape == want.shape, f"{name}: got {got.shape}, wanted {want.shape}"
        if tol == 0:
            same = (got == want) | ((got != got) & (want != want))
            assert same.all(), f"{name} {attributes}: got {got}, wanted {want}"
            continue
        got, want = got.astype(np.float64), want.astype(np.float64)
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(
            got, want, rtol=tol, atol=tol * scale, err_msg=f"{name} {attributes}"
        )
