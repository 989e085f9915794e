"""The node tests that the package onnx ships, run through `duograph.onnx`, eager and compiled.

Each module of onnx.backend.test.case.node makes its cases when it is imported; a test here is one
module. All cases run eagerly. The first case of each module runs compiled, and with
DUOGRAPH_TESTS=full all do. What fails stands in the tables below, with the reason.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import warnings

import duograph as ms
import numpy as np
import pytest
from amount import FULL
from duograph import Tensor
from duograph.dtype import as_dtype
from duograph.errors import OnnxError

onnx = pytest.importorskip("onnx", reason="the package onnx is missing")

from duograph.onnx.reading import _static_names, cell_of  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from onnx.backend.test.case import node as suite  # noqa: E402

MODULES = sorted(m.name for m in pkgutil.iter_modules(suite.__path__))
# Domains of their own, with operators that are not those of the default domain.
LEFT_OUT = {
    m for m in MODULES if m.startswith("ai_onnx_ml") or m in ("adam", "adagrad", "momentum")
}

RANDOM = "its random numbers are those of NumPy's generator"
FAILING = {
    r"test_bernoulli(_double|_seed)?(_expanded)?": RANDOM,
    r"test_training_dropout(_default)?(_mask)?": RANDOM,
    r"test_image_decoder_.*": "ImageDecoder needs a decoder of image files",
}
# Cases that are right and cannot be compiled.
EAGER_ONLY = {
    r"test_nonzero_.*": "the size of the result is a value",
    r"test_(loop13_seq|loop16_seq_none|if_seq|if_opt)": "a sequence depends on a Tensor",
    r"test_center_crop_pad_.*_expanded": "a shape is computed from a Tensor",
    r"test_range_.*_expanded": "the number of iterations is computed from a Tensor",
}
# 16-bit floats: the expected values were rounded at other steps. Units in the last place of each.
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2}
# Expected values that hold rounding errors of float32, where 0 is right.
ABSOLUTE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}


def listed(name, table):
    return any(re.fullmatch(pattern, name) for pattern in table)


@functools.cache
def cases_of(module):
    """Import a module of the suite and return the cases that it made."""
    before = len(suite._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about overflow in the expected values
        importlib.import_module(f"{suite.__name__}.{module}")
    made = suite._NodeTestCases[before:]
    return [c for c in made if all(n.domain in ("", "ai.onnx") for n in c.model.graph.node)]


def value_of(stored):
    """Return a stored input or result as arrays, lists and None."""
    if isinstance(stored, onnx.TensorProto):
        return value_of(numpy_helper.to_array(stored))
    if isinstance(stored, onnx.SequenceProto):
        return [value_of(v) for v in numpy_helper.to_list(stored)]
    if isinstance(stored, onnx.OptionalProto):
        return value_of(numpy_helper.to_optional(stored))
    if isinstance(stored, (list, tuple)):
        return [value_of(v) for v in stored]
    if stored is None:
        return None
    array = np.asarray(stored)
    if array.dtype.kind not in "SUO":
        return array
    texts = [s.decode() if isinstance(s, bytes) else str(s) for s in array.reshape(-1)]
    return np.array(texts, object).reshape(array.shape)


def to_tensors(value):
    """Return a value with Tensors for arrays of element types that duograph has."""
    if isinstance(value, list):
        return [to_tensors(v) for v in value]
    if value is None:
        return None
    try:
        as_dtype(value.dtype)
    except TypeError:
        return value
    return Tensor(value)


def to_arrays(value):
    if isinstance(value, (list, tuple)):
        return [to_arrays(v) for v in value]
    return value.asnumpy() if isinstance(value, Tensor) else value


def compare(got, want, case):
    if isinstance(want, list) or want is None:
        assert type(got) is type(want)
        for x, y in zip(got or [], want or [], strict=True):
            compare(x, y, case)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind in "fcV" and want.dtype.name not in ("int4", "uint4", "int2", "uint2"):
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        relative = TOLERANCES.get(want.dtype.name, max(case.rtol, 1e-5))
        absolute = max(case.atol, 1e-7, ABSOLUTE.get(case.name, 0.0))
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), relative, absolute)
    else:
        np.testing.assert_array_equal(got, want)


def run(case, compiled):
    cell = cell_of(case.model, case.name)
    static = set(_static_names(cell._graph_of_model))
    for inputs, outputs in case.data_sets:
        given = [value_of(v) for v in inputs]
        if not compiled:
            got = cell(*[to_tensors(v) for v in given])
        else:
            args = [v if n in static else to_tensors(v) for n, v in zip(cell.input_names, given)]
            tensors = [a for a in args if isinstance(a, Tensor)]

            def call(*xs, args=args, cell=cell):
                it = iter(xs)
                return cell(*[next(it) if isinstance(a, Tensor) else a for a in args])

            got = ms.jit(call)(*tensors)
        found = [got] if len(cell.output_names) == 1 else list(got)
        for x, y in zip(found, outputs, strict=True):
            compare(to_arrays(x), value_of(y), case)


@pytest.mark.parametrize("module", [m for m in MODULES if m not in LEFT_OUT])
def test_module(module):
    problems = []
    for k, case in enumerate(cases_of(module)):
        compiled = [False, True] if FULL or k == 0 else [False]
        for mode in compiled:
            if listed(case.name, FAILING) or (mode and listed(case.name, EAGER_ONLY)):
                continue
            try:
                run(case, mode)
            except Exception as error:  # noqa: BLE001 (every failing case is reported)
                problems.append(f"{case.name}, compiled={mode}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


def test_operators_that_do_not_run_are_refused():
    for case in cases_of("image_decoder"):
        with pytest.raises(OnnxError, match="does not run the operator ImageDecoder"):
            run(case, False)
