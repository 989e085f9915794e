"""Bias and gelu computed by cuBLASLt's matmul in compiled functions, over its imitation."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from cublaslt_fixtures import NAME, backend, fake, path  # noqa: F401
from duograph import ops
from duograph_cuda import tuning

BIAS, GELU_BIAS, GELU_AUX_BIAS, DGELU = 4, 36, 164, 192
NEAR = {"float16": 2e-3, "bfloat16": 1.6e-2}
ROWS, DEPTH, WIDTH = 24, 16, 32


def tensors(dtype, *shapes):
    """Return random tensors of the given shapes on the device under test."""
    rng = np.random.default_rng(0)
    return [ms.Tensor(rng.normal(size=s), getattr(ms, dtype), device=NAME) for s in shapes]


def wide(x):
    """Return a tensor as a float64 array."""
    return x.asnumpy().astype(np.float64)


def gelu(v):
    """Return gelu, approximated by tanh, of a float64 array."""
    return 0.5 * v * (1 + np.tanh(0.7978845608028654 * (v + 0.044715 * v**3)))


def near(got, want, dtype):
    """Compare a result with a float64 array, relative to its largest element."""
    np.testing.assert_allclose(wide(got), want, atol=NEAR[dtype] * np.abs(want).max(), rtol=0)


def x_of(lead):
    """Return the shape of x with leading axes of ROWS rows together."""
    return (*lead, DEPTH)


LEADS = [(ROWS,), (4, 6), (2, 3, 4)]


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("dtype", NEAR)
def test_gelu_after_a_dense_layer(backend, fake, dtype, lead):
    """Forward: gelu alone. With a gradient: the sum is saved, and its derivative multiplied."""
    x, w, b = tensors(dtype, x_of(lead), (WIDTH, DEPTH), (WIDTH,))

    @ms.jit(jit_level="O1")
    def forward(x, w, b):
        return ops.gelu(ops.dense(x, w, b), approximate="tanh")

    before = fake.fake_calls()
    near(forward(x, w, b), gelu(wide(x) @ wide(w).T + wide(b)), dtype)
    assert fake.fake_calls() == before + 1 and fake.fake_epilogue() == GELU_BIAS


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("dtype", NEAR)
def test_gradients_of_two_layers_with_gelu(backend, fake, dtype, lead):
    """Gradients of all operands agree with eager ones on the CPU, which computes in float32."""
    shapes = x_of(lead), (WIDTH, DEPTH), (WIDTH,), (DEPTH, WIDTH)
    given = tensors(dtype, *shapes)

    def loss(x, w, b, v):
        h = ops.gelu(ops.dense(x, w, b), approximate="tanh")
        return (ops.dense(h, v).astype(ms.float32) ** 2).mean()

    step = ms.jit(ms.grad(loss, (0, 1, 2, 3)), jit_level="O1")
    got = step(*given)
    want = ms.grad(loss, (0, 1, 2, 3))(
        *(ms.Tensor(wide(t), ms.float32, device="CPU") for t in given)
    )
    for mine, theirs in zip(got, want, strict=True):
        near(mine, wide(theirs), dtype)
    kinds = epilogues_of(backend)
    assert {"CUBLASLT_EPILOGUE_GELU_AUX_BIAS", "CUBLASLT_EPILOGUE_DGELU"} <= kinds


def epilogues_of(backend):
    """Return the kinds of epilogues that the library was asked for and has."""
    chosen = backend.device(0).library()._chosen
    return {key[-1].kind for key, found in chosen.items() if key[-1] is not None and found}


def test_bias_of_what_only_libraries_read(backend, fake):
    """Another matmul reads the sum, so the library adds the bias; the second sum is an output."""
    x, w, b, v, c = tensors("bfloat16", (ROWS, DEPTH), (WIDTH, DEPTH), (WIDTH,), (8, WIDTH), (8,))

    @ms.jit(jit_level="O1")
    def two(x, w, b, v, c):
        return ops.dense(ops.dense(x, w, b), v, c)

    want = (wide(x) @ wide(w).T + wide(b)) @ wide(v).T + wide(c)
    near(two(x, w, b, v, c), want, "bfloat16")
    assert epilogues_of(backend) == {"CUBLASLT_EPILOGUE_BIAS"}


# Programs beside those that match, which must be computed as before: (what, function).
BESIDE = {
    "a bias that is a row per line": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w.T) + c, approximate="tanh"
    ),
    "gelu with erf": lambda x, w, b, c: ops.gelu(ops.matmul(x, w.T) + b),
    "no bias": lambda x, w, b, c: ops.gelu(ops.matmul(x, w.T), approximate="tanh"),
    "the matmul is read twice": lambda x, w, b, c: (
        ops.gelu((y := ops.matmul(x, w.T)) + b, approximate="tanh") + y
    ),
    "a batch of matmuls": lambda x, w, b, c: ops.gelu(
        ops.matmul(ops.stack([x, x]), ops.stack([w.T, w.T])) + b, approximate="tanh"
    ),
    "a bias of another dtype": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w.T) + b.astype(ms.float32), approximate="tanh"
    ),
    "the sum is an output": lambda x, w, b, c: (
        ops.gelu((y := ops.matmul(x, w.T) + b), approximate="tanh"), y * 2, y
    ),
    "the sum is reshaped and read": lambda x, w, b, c: (
        ops.gelu((y := ops.matmul(x, w.T) + b).reshape(-1), approximate="tanh"),
        y.reshape(2, -1).sum(1),
    ),
    "the same operand twice": lambda x, w, b, c: ops.gelu(
        ops.matmul((z := x[:16]), z) + z[0], approximate="tanh"
    ),
    "the bias is computed": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w.T) + ops.exp(b), approximate="tanh"
    ),
    "a width that is not aligned": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w[:13].T) + b[:13], approximate="tanh"
    ),
    "the bias on the left": lambda x, w, b, c: ops.gelu(
        b + ops.matmul(x, w.T), approximate="tanh"
    ),
    "the bias subtracted": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w.T) - b, approximate="tanh"
    ),
    "a bias of shape (1, n)": lambda x, w, b, c: ops.gelu(
        ops.matmul(x, w.T) + b.reshape(1, -1), approximate="tanh"
    ),
    "two gelus of a sum": lambda x, w, b, c: (
        ops.gelu((y := ops.matmul(x, w.T) + b), approximate="tanh")
        + ops.gelu(y * 2, approximate="tanh")
    ),
    "the sum is transposed": lambda x, w, b, c: ops.gelu(
        (ops.matmul(x, w.T) + b).T, approximate="tanh"
    ),
    "a row": lambda x, w, b, c: ops.gelu(ops.matmul(x[0], w.T) + b, approximate="tanh"),
    "no rows": lambda x, w, b, c: ops.gelu(ops.matmul(x[:0], w.T) + b, approximate="tanh"),
}  # fmt: skip


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", BESIDE)
def test_neighbours(backend, name, level):
    """Each program gives what the CPU computes op by op, also with gradients."""
    given = tensors("bfloat16", (ROWS, DEPTH), (WIDTH, DEPTH), (WIDTH,), (ROWS, WIDTH))
    on_cpu = [ms.Tensor(t.asnumpy(), t.dtype, device="CPU") for t in given]
    f = BESIDE[name]

    def total(*arguments):
        parts = f(*arguments)
        parts = parts if isinstance(parts, tuple) else (parts,)
        return sum([(p.astype(ms.float32) ** 2).sum() for p in parts])

    for made in (f, ms.grad(total, (0, 1, 2))):
        got, want = ms.jit(made, jit_level=level)(*given), made(*on_cpu)
        got, want = (v if isinstance(v, tuple) else (v,) for v in (got, want))
        for mine, theirs in zip(got, want, strict=True):
            assert mine.shape == theirs.shape and mine.dtype is theirs.dtype
            if mine.size:
                near(mine, wide(theirs), "bfloat16")


def test_a_call_that_fails_says_so(backend):
    """Nothing else computes the region, so the call raises."""
    x, w, b = tensors("bfloat16", (ROWS, DEPTH), (WIDTH, DEPTH), (WIDTH,))
    run = ms.jit(lambda x, w, b: ops.gelu(ops.dense(x, w, b), approximate="tanh"), jit_level="O1")
    run(x, w, b)
    (chosen,) = [v for k, v in backend.device(0).library()._chosen.items() if k[-1]]
    chosen.library.set("MatmulDesc", chosen.desc, 7, "uint32_t", 2)  # no such epilogue
    with pytest.raises(ms.errors.DeviceError, match="GELU_BIAS gave CUBLAS_STATUS_INVALID_VALUE"):
        run(x, w, b).asnumpy()


def test_without_the_library_nothing_changes(monkeypatch):
    """The emulated device has no library: gelu stays in a region after the matmul."""
    x, w, b = (t.move_to("CUDA-emulated") for t in (
        ms.Tensor(np.ones(s), ms.bfloat16, device="CPU")
        for s in ((ROWS, DEPTH), (WIDTH, DEPTH), (WIDTH,))
    ))  # fmt: skip
    run = ms.jit(lambda x, w, b: ops.gelu(ops.dense(x, w, b), approximate="tanh"), jit_level="O1")
    assert "1 fused region, 1 kernel" in str(run.explain(x, w, b))


@pytest.mark.parametrize("with_epilogue", [False, True])
def test_the_fastest_algorithm_is_kept(backend, fake, monkeypatch, tmp_path, with_epilogue):
    """With DUOGRAPH_CUDA_TUNE=1 all proposals are timed once; the disk cache keeps the choice."""
    monkeypatch.setenv("DUOGRAPH_CUDA_TUNE", "1")
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path))
    times = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(tuning, "_seconds", lambda device, run, best: (run(), next(times))[1])
    x, w, b = tensors("bfloat16", (ROWS, DEPTH), (40, DEPTH), (40,))
    if with_epilogue:
        run = ms.jit(lambda x, w, b: ops.gelu(ops.dense(x, w, b), approximate="tanh"))
        want = gelu(wide(x) @ wide(w).T + wide(b))
    else:
        run, want = (lambda x, w, b: ops.matmul(x, w.T)), wide(x) @ wide(w).T
    near(run(x, w, b), want, "bfloat16")
    assert fake.fake_algorithm() == 1
