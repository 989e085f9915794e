"""Fused attention at sizes with several tiles, on the emulated device, against the matrix of
weights in float64.
"""

from __future__ import annotations

import itertools
import os

import duograph as ms
import numpy as np
import pytest
from amount import FULL, spread
from duograph.conformance.cases.attention import AXES, attention, attention_gradient
from duograph.op import OPS
from duograph_cuda import attention as fused

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU
NEAR = {"float32": 2e-5, "float16": 6e-3, "bfloat16": 4e-2}
ALL = (-999, 999)
ALL_PAIRS = FULL or DEVICE != "CUDA-emulated"  # of rows and dtypes

# batch, heads, heads of keys, queries, keys, features, features of values; mask; band; layout
ROWS = {
    "one tile": ((1, 1, 1, 16, 16, 16, 16), None, ALL, "BNSD"),
    "ragged": ((1, 2, 1, 37, 71, 24, 9), None, ALL, "BSND"),
    "causal": ((2, 2, 2, 70, 70, 32, 32), None, (-999, 0), "BNSD"),
    "a band": ((1, 1, 1, 90, 80, 8, 8), None, (-20, 3), "SBND"),
    "wide": ((1, 1, 1, 20, 35, 128, 100), None, ALL, "BNSD"),
    "middling": ((1, 2, 2, 35, 40, 64, 64), None, (-999, 5), "BSND"),
    "bools": ((2, 2, 2, 20, 40, 16, 16), "bool", ALL, "BNSD"),
    "added": ((1, 2, 1, 20, 40, 16, 16), "added", ALL, "BNSD"),
}
# as large as cuDNN wants them; minutes on the emulated device
LARGE = {
    "several tiles": ((1, 4, 2, 128, 192, 64, 64), None, ALL, "BSND"),
    "long, causal": ((1, 2, 2, 136, 136, 64, 64), None, (-999, 0), "BSND"),
    "sliding": ((1, 2, 1, 128, 128, 64, 64), None, (-20, 0), "BNSD"),
    "a long band": ((1, 1, 1, 128, 136, 64, 64), None, (-20, 3), "SBND"),
}
if DEVICE != "CUDA-emulated":
    ROWS.update(LARGE)


@pytest.fixture(autouse=True)
def _there():
    problem = ms.backend.registry.problem_of(ms.backend.registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)


@pytest.mark.parametrize("row, dtype", spread(ROWS, NEAR, 3, ALL_PAIRS))
def test_attention(row, dtype, monkeypatch):
    (batch, heads, own, queries, keys, width, value_width), mask, (low, high), layout = ROWS[row]
    rng = np.random.default_rng(5)
    np_dtype = ms.Tensor([1.0], getattr(ms, dtype)).asnumpy().dtype

    def x(*shape):
        return np.ascontiguousarray(
            np.moveaxis(rng.normal(size=shape), range(4), AXES[layout]).astype(np_dtype)
        )

    arrays = [
        x(batch, heads, queries, width),
        x(batch, own, keys, width),
        x(batch, own, keys, value_width),
        None,
    ]
    if mask == "bool":
        arrays[3] = rng.random((batch, 1, queries, keys)) < 0.5
    elif mask == "added":
        arrays[3] = rng.normal(size=(1, heads, 1, keys)).astype(np_dtype)
    settings = (width**-0.5, max(low, -queries), min(high, keys), layout)
    made = []
    monkeypatch.setattr(
        fused, "text", lambda *names, real=fused.text: made.append(names) or real(*names)
    )

    def check(name, arrays, wanted):
        given = [None if a is None else ms.Tensor(a, device=DEVICE) for a in arrays]
        OPS[name].table.clear()
        for found, want in zip(OPS[name](*given, *settings), wanted, strict=True):
            found, want = found.asnumpy().astype(np.float64), want.astype(np.float64)
            assert np.abs(found - want).max() <= NEAR[dtype] * max(1.0, np.abs(want).max()), name

    wanted = attention(*arrays, *settings)
    check("attention", arrays, wanted)
    arrays += [*wanted, rng.normal(size=wanted[0].shape).astype(np_dtype)]
    check("attention_grad", arrays, attention_gradient(*arrays, *settings))
    by_cudnn = not isinstance(ms.backend.registry.backend(DEVICE).device(0).cudnn(), str)
    assert by_cudnn or len(made) == 3, "the kernels of their own ran, not the composed form"


@pytest.mark.parametrize("layout, dtype", spread(["BSND", "SBND"], NEAR, 1, ALL_PAIRS))
@pytest.mark.parametrize("heads, own, width", [(2, 2, 64), (4, 2, 16), (2, 1, 7)])
def test_self_attention(heads, own, width, layout, dtype):
    """Query, key and value are parts of one operand; the numbers are those of separate operands."""
    rng = np.random.default_rng(5)
    length, batch = 37, 2
    lead = (batch, length) if layout == "BSND" else (length, batch)
    arrays = rng.normal(size=(*lead, (heads + 2 * own) * width))
    x = ms.Tensor(arrays, getattr(ms, dtype), device=DEVICE)
    settings = (width**-0.5, -length, 0, layout)
    counts = np.cumsum([0, heads, own, own]) * width
    parts = [
        x[:, :, int(a) : int(b)].reshape(*lead, -1, width) for a, b in itertools.pairwise(counts)
    ]
    wanted = OPS["attention"](*parts, None, *settings)
    got = OPS["self_attention"](x, None, heads, own, *settings)
    dout = ms.Tensor(rng.normal(size=got[0].shape), getattr(ms, dtype), device=DEVICE)
    grads = OPS["attention_grad"](*parts, None, *wanted, dout, *settings)
    joined = ms.ops.cat([g.reshape(*lead, -1) for g in grads], 2)
    grad = OPS["self_attention_grad"](x, None, *got, dout, heads, own, *settings)
    near = 0 if DEVICE == "CUDA-emulated" else NEAR[dtype]
    for found, want in zip((*got, grad), (*wanted, joined), strict=True):
        difference = np.abs(found.asnumpy().astype(np.float64) - want.asnumpy().astype(np.float64))
        assert difference.max() <= near
