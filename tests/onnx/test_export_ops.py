"""Every op of the conformance suite, exported and run by ONNX Runtime.

The table is that of the suite: one sample of each case. DUOGRAPH_TESTS=full takes all samples in
three dtypes, as `make test-all` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amount import FULL
from duograph import Tensor, bool_, float32, int32
from duograph.conformance.cases import all_cases
from duograph.conformance.check import arrays_of, difference, results_of, run, substitute
from duograph.conformance.tolerance import Tolerance, forward_tolerance
from duograph.dtype import as_dtype
from duograph.errors import OnnxError, UnsupportedSyntaxError
from duograph.onnx.export import model_bytes
from duograph.train.exported import _traced

onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is missing")

DTYPES = (float32, int32, bool_)
CASES = {case.name: case for case in all_cases()}

# What ONNX cannot say, by reason.
REFUSED = {
    "complex": "dtype complex",
    **dict.fromkeys(("masked_select", "nonzero", "unique", "unique_consecutive"), "size of its"),
    **dict.fromkeys(
        ("bessel", "betainc", "betainc_derivative", "eig", "eigh", "gamma_of_two",
         "gamma_derivative", "gcd", "geqrf",
         "histogram", "lcm", "lu", "matrix_function", "nextafter", "nms_with_mask",
         "orgqr", "permutation_of_pivots", "population_count", "qr"),
        "ONNX has no operator for",
    ),
}  # fmt: skip


def session(content: bytes) -> Any:
    """Return a session of ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(content, options)


def samples_of(case):
    """Yield the dtypes and samples to test of a conformance case."""
    for dtype in DTYPES:
        if dtype not in case.takes:
            continue
        for sample in case.made(dtype):
            if sample.kind != "nan" and any(True for _ in arrays_of((sample.args, sample.kwargs))):
                yield dtype, sample
                if not FULL:
                    return


ROWS = [name for name, case in CASES.items() if next(samples_of(case), None) is not None]


@pytest.mark.parametrize("name", ROWS)
def test_op(name):
    case = CASES[name]
    for dtype, sample in samples_of(case):
        arrays = [np.array(a, order="C") for a in arrays_of((sample.args, dict(sample.kwargs)))]

        def function(*xs, sample=sample):
            it = iter(xs)
            args = substitute(sample.args, lambda a: next(it))
            kwargs = substitute(dict(sample.kwargs), lambda a: next(it))
            return case.function(*args, **kwargs)

        def trace(xs, function=function):
            return _traced(function, xs)

        if name in REFUSED:
            with pytest.raises((OnnxError, UnsupportedSyntaxError), match=REFUSED[name]) as error:
                model_bytes(trace, function, [Tensor(a) for a in arrays])
            assert "test_export_ops.py" in str(error.value)
            return
        want = results_of(run(case, sample))
        made = session(model_bytes(trace, function, [Tensor(a) for a in arrays]))
        got = made.run(None, {i.name: a for i, a in zip(made.get_inputs(), arrays, strict=True)})
        for x, y in zip(got, want, strict=True):
            allowed = forward_tolerance(as_dtype(y.dtype), case.tol.get(dtype))
            wide = Tolerance(allowed.relative * 10, allowed.absolute * 10)
            problem = difference(x, y, wide)
            assert problem is None, f"{name}, {dtype}, {sample.kind}: {problem}"
