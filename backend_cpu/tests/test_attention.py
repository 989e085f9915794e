"""Attention past its blocks, chunks and strips: what the small samples of the conformance suite do
not reach.
"""

import ml_dtypes
import numpy as np
import pytest
from duograph import Tensor, jit, ops
from duograph.backend.attention_layouts import AXES
from duograph.conformance.cases.attention import attention, attention_gradient
from duograph.ops.attention import attention_grad, attention_of
from duograph_cpu import memory
from duograph_cpu._native import lib
from harness import CPU_BACKEND, KERNELS, type_of

RNG = np.random.default_rng(11)
TOL = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 5e-3, ml_dtypes.bfloat16: 4e-2}
ALL = (-9999, 9999)

# batch, heads, heads of keys, queries, keys, features, features of values; mask; band; layout
ROWS = {
    "one block": ((2, 2, 2, 64, 128, 64, 64), None, ALL, "BNSD"),
    "causal, ragged": ((1, 2, 2, 200, 200, 24, 24), None, (-9999, 0), "BSND"),
    "causal, last query sees all": ((1, 2, 1, 70, 300, 16, 16), None, (-9999, 230), "BNSD"),
    "a band over blocks": ((1, 1, 1, 400, 400, 8, 8), None, (-150, 3), "SBND"),
    "a band that leaves queries out": ((1, 1, 1, 300, 100, 8, 8), None, (-20, 9), "BNSD"),
    "wide heads": ((1, 2, 1, 33, 150, 200, 136), None, ALL, "BSND"),
    "narrow heads": ((1, 3, 3, 37, 141, 3, 1), None, ALL, "BNSD"),
    "many queries": ((1, 1, 1, 1100, 40, 16, 16), None, ALL, "BNSD"),
    "keys in parts": ((1, 2, 1, 50, 1500, 16, 16), None, ALL, "BNSD"),
    "bools": ((2, 2, 2, 65, 190, 16, 16), "bool", ALL, "BNSD"),
    "added": ((2, 2, 1, 65, 190, 16, 16), "added", (-9999, 0), "BSND"),
    "hidden keys": ((2, 2, 1, 65, 190, 16, 16), "keys", ALL, "BNSD"),
}


def operands(row, dtype):
    (batch, heads, own, queries, keys, width, value_width), mask, (low, high), layout = row

    def x(*shape):
        return np.moveaxis(RNG.standard_normal(shape), range(4), AXES[layout]).astype(dtype)

    given = (
        x(batch, heads, queries, width),
        x(batch, own, keys, width),
        x(batch, own, keys, value_width),
    )
    if mask == "bool":
        mask = RNG.random((batch, 1, queries, keys)) < 0.5
    elif mask == "added":
        mask = RNG.standard_normal((1, heads, queries, keys)).astype(dtype)
    elif mask == "keys":
        mask = np.broadcast_to(np.arange(keys) > 150, (batch, 1, 1, keys))
    settings = {
        "scale": width**-0.5,
        "low": max(low, -queries),
        "high": min(high, keys),
        "layout": layout,
    }
    return [*given, mask], settings


def run(name, arrays, like, settings):
    types = tuple(None if a is None else type_of(a) for a in arrays)
    call = KERNELS[name](types, tuple(type_of(a) for a in like), **settings)
    handles = [
        None if a is None else CPU_BACKEND.copy_in(np.asarray(a, order="C"), 0) for a in arrays
    ]
    return [CPU_BACKEND.copy_out(h, a.shape, a.dtype, 0) for h, a in zip(call(*handles), like)]


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "AVX2", "AVX-512"])
def instructions(request):
    lib.dg_isa_limit(request.param)
    yield
    lib.dg_isa_limit(2)


@pytest.mark.parametrize("dtype", list(TOL), ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("row", ROWS)
def test_attention(row, dtype, instructions):
    arrays, settings = operands(ROWS[row], dtype)
    wanted = attention(*arrays, **settings)
    tol = TOL[dtype]
    for found, want in zip(run("attention", arrays, wanted, settings), wanted):
        np.testing.assert_allclose(found.astype(float), want.astype(float), rtol=tol, atol=tol)
    arrays += [*wanted, RNG.standard_normal(wanted[0].shape).astype(dtype)]
    wanted = attention_gradient(*arrays, **settings)
    for found, want in zip(run("attention_grad", arrays, wanted, settings), wanted):
        top = np.abs(want.astype(float)).max()
        np.testing.assert_allclose(
            found.astype(float), want.astype(float), rtol=4 * tol, atol=4 * tol * max(top, 1)
        )


@pytest.mark.parametrize("queries", [1, 13, 300])
def test_bits_of_a_query_do_not_depend_on_other_queries(queries):
    x = RNG.standard_normal((1, 1, 600, 32)).astype(np.float32)
    settings = {"scale": 0.3, "low": -600, "high": 600, "layout": "BNSD"}
    whole = run("attention", [x, x, x, None], attention(x, x, x, None, **settings), settings)
    some = np.ascontiguousarray(x[:, :, 100 : 100 + queries])
    part = run("attention", [some, x, x, None], attention(some, x, x, None, **settings), settings)
    assert np.array_equal(part[0], whole[0][:, :, 100 : 100 + queries])
    assert np.array_equal(part[1], whole[1][:, :, 100 : 100 + queries])


@pytest.mark.parametrize(
    ("mask", "seen"),
    [([-np.inf] * 5, []), ([-1e9] * 5, range(5)), ([0, -np.inf, -200, 5, -np.inf], [0, 2, 3])],
    ids=["no key", "far below", "some"],
)
def test_extreme_masks(mask, seen, instructions):
    q, k = (RNG.standard_normal((1, 1, n, 4)).astype(np.float32) for n in (2, 5))
    added = np.array(mask, np.float32).reshape(1, 1, 1, 5)
    settings = {"scale": 1.0, "low": -9, "high": 9, "layout": "BNSD"}
    out, sums = run("attention", [q, k, k, added], attention(q, k, k, added, **settings), settings)
    scores = (q @ k.swapaxes(2, 3)).astype(np.float32) + added  # -1e9 swallows the scores
    top = np.maximum(scores.max(3, keepdims=True), -2e9)
    weights = np.where(np.isin(np.arange(5), seen), np.exp(scores - top), 0)
    total = weights.sum(3, keepdims=True)
    np.testing.assert_allclose(
        out, (weights / np.where(total == 0, 1, total)) @ k, rtol=1e-5, atol=1e-6
    )
    assert np.isfinite(sums).all()


def test_nan_affects_only_its_query(instructions):
    q, k = (RNG.standard_normal((1, 1, n, 4)).astype(np.float32) for n in (3, 40))
    q[0, 0, 1, 2] = np.nan
    settings = {"scale": 1.0, "low": -9, "high": 99, "layout": "BNSD"}
    out, _ = run("attention", [q, k, k, None], attention(q, k, k, None, **settings), settings)
    assert np.array_equal(np.isnan(out).all(3), [[[False, True, False]]])
    assert not np.isnan(out[0, 0, ::2]).any()


def test_no_weight_matrix_is_allocated():
    n = 4096
    x = Tensor(RNG.standard_normal((1, 1, n, 16)).astype(np.float32))
    settings = (0.25, -n, 0, "BNSD")
    memory.lib.dg_memory_trim()
    before = memory.stats()["peak"]
    out, sums = attention_of(x, x, x, None, *settings)
    attention_grad(x, x, x, None, out, sums, out, *settings)
    assert memory.stats()["peak"] - before < n * n


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_linked_into_native_programs(masked):
    x = Tensor(RNG.standard_normal((2, 3, 8)).astype(np.float32))
    mask = Tensor(np.triu(np.ones((3, 3), bool), 1)) if masked else None

    @jit
    def f(x):
        return ops.flash_attention_score(x * 2.0, x, x, 2, attn_mask=mask).sum()

    f(x)
    before = lib.dg_program_crossings()
    f(x)
    assert lib.dg_program_crossings() == before + 1


@pytest.mark.parametrize("dtype", list(TOL), ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("mask", ["none", "keys"])
@pytest.mark.parametrize("layout", ["BSND", "SBND"])
@pytest.mark.parametrize("heads,own,width", [(4, 4, 64), (6, 2, 20)])
def test_joint_projection_has_the_bits_of_separate_operands(
    heads, own, width, layout, mask, dtype, instructions
):
    shape = (2, 150) if layout == "BSND" else (150, 2)
    x = RNG.standard_normal((*shape, (heads + 2 * own) * width)).astype(dtype)
    parts = np.split(x, [heads * width, (heads + own) * width], 2)
    parts = [np.ascontiguousarray(p).reshape(*shape, -1, width) for p in parts]
    mask = None if mask == "none" else np.broadcast_to(np.arange(150) > 140, (2, 1, 1, 150))
    settings = {"scale": 0.2, "low": -150, "high": 0, "layout": layout}
    like = attention(*parts, mask, **settings)
    apart = run("attention", [*parts, mask], like, settings)
    whole = run("self_attention", [x, mask], like, {"heads": heads, "own": own, **settings})
    dout = RNG.standard_normal(like[0].shape).astype(dtype)
    grads = run("attention_grad", [*parts, mask, *apart, dout], parts, settings)
    call = KERNELS["self_attention_grad"](
        tuple(None if a is None else type_of(a) for a in (x, mask, *whole, dout)), (type_of(x),),
        heads=heads, own=own, **settings,
    )  # fmt: skip
    handles = [
        None if a is None else CPU_BACKEND.copy_in(np.asarray(a, order="C"), 0)
        for a in (x, mask, *whole, dout)
    ]
    grad = CPU_BACKEND.copy_out(call(*handles), x.shape, x.dtype, 0)
    joined = np.concatenate([g.reshape(*shape, -1) for g in grads], 2)
    for one, other in zip((*apart, joined), (*whole, grad)):
        assert one.tobytes() == other.tobytes()
