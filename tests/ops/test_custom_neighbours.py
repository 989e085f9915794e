"""Operators of the user's own near the usual case: dtypes, views, threads, second derivatives."""

from __future__ import annotations

import threading
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.backend import registry
from duograph.errors import UnsupportedOpError
from ops.test_custom_kernels import (
    CUDA,
    LEVELS,
    OPENCL,
    SIGNATURE,
    C,
    arrays,
    at,
    device,  # noqa: F401 (a fixture)
    scaled,
)

pytestmark = pytest.mark.usefixtures("restored")

# out = -x for float16, by its sign bit; every language has 16-bit integers.
NEGATE = {
    "c": SIGNATURE.format("negate")
    + """ {
    const uint16_t *x = params[0];
    uint16_t *out = params[1];
    int64_t n = 1;
    for (int k = 0; k < ndims[1]; k++) n *= shapes[1][k];
    for (int64_t i = 0; i < n; i++) out[i] = x[i] ^ 0x8000;
    return 0;
}
""",
    "opencl": """
__kernel void negate(__global const ushort *x, __global ushort *out) {
    size_t i = get_global_id(0);
    if (i < OUT0_SIZE) out[i] = x[i] ^ 0x8000;
}
""",
    "cuda": """
extern "C" __global__ void negate(const unsigned short *x, unsigned short *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < OUT0_SIZE) out[i] = x[i] ^ 0x8000;
}
""",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(3, 5), (), (0,), (33,)], ids=str)
def test_float16(device: str, shape: tuple[int, ...], level: str | None) -> None:
    f = ops.Custom(
        NEGATE, None, None, "source", lambda x, out, dout: (-dout,), name="negate",
        in_dtype=ms.float16,
    )  # fmt: skip
    x = arrays(shape)[0].astype(np.float16)
    got = at(level, lambda x: f(x))(Tensor(x))
    assert got.dtype is ms.float16
    np.testing.assert_array_equal(got.asnumpy(), -x)
    dx = at(level, ms.grad(lambda x: (f(x) * 2).sum()))(Tensor(x))
    np.testing.assert_array_equal(dx.asnumpy(), np.full(shape, -2, np.float16))


VIEWS: dict[str, Any] = {
    "transposed": lambda x: x.T,
    "every second": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1],
    "broadcast": lambda x: ops.broadcast_to(x[:1], (4, 5)),
    "one element": lambda x: x[1, 2],
    "none": lambda x: x[:0],
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", VIEWS)
def test_inputs_that_are_views(device: str, name: str, level: str | None) -> None:
    view, f = VIEWS[name], scaled()
    a, b = arrays()
    got = at(level, lambda x, y: f(view(x), view(y)))(Tensor(a), Tensor(b))
    x, y = (view(Tensor(v, device="CPU")).asnumpy() for v in (a, b))
    np.testing.assert_allclose(got.asnumpy(), 2 * x + np.sin(y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", [None, "O0", "O2"])
def test_second_derivatives(device: str, level: str | None) -> None:
    f = scaled()
    a, b = arrays()

    def first(y: Tensor, x: Tensor) -> Tensor:
        return ms.grad(lambda y: (f(x, y) ** 2).sum())(y).sum()

    got = at(level, ms.grad(first))(Tensor(b), Tensor(a)).asnumpy()
    want = 2 * (np.cos(b) ** 2 - (2 * a + np.sin(b)) * np.sin(b))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_threads(device: str) -> None:
    f = scaled()
    wrong: list[object] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).standard_normal((64, seed + 1)).astype(np.float32)
        run = ms.jit(lambda x, y: f(x, y) + 1, jit_level="O1") if seed % 2 else f
        for _ in range(5):
            got = run(Tensor(a, device=device), Tensor(a, device=device)).asnumpy()
            want = 2 * a + np.sin(a) + seed % 2
            if not np.allclose(got, want, rtol=1e-5, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


EFFECTS = {
    "c": C.replace("return nparam", "out[0] = ++own; return nparam").replace(
        "#include <math.h>", "#include <math.h>\nstatic int own;"
    ),
    "opencl": OPENCL,
    "cuda": CUDA,
}


@pytest.mark.parametrize("level", LEVELS)
def test_results_that_nobody_reads_are_computed_if_there_are_effects(level: str | None) -> None:
    ms.set_context(device_target="CPU")
    f = ops.Custom(EFFECTS, func_type="source", name="scaled", in_dtype="any", effects=True)
    x, y = map(Tensor, arrays())
    start = float(f(x, y)[0, 0])

    def thrice(x: Tensor, y: Tensor) -> Tensor:
        f(x, y)
        f(x, y)
        return f(x, y)[0, 0]

    assert float(at(level, thrice)(x, y)) == start + 3


# devices without a language -> how the refusal begins
@pytest.mark.parametrize("name", ["Reference", "InnerRing", "Template"])
def test_a_device_without_a_language_says_so(name: str) -> None:
    entry = registry.entries().get(name)
    if entry is None:
        pytest.skip(f"{name} is not installed")
    x, y = (Tensor(a, device=name) for a in arrays())
    with pytest.raises(UnsupportedOpError, match=r"'scaled' cannot run on this device.*source in"):
        scaled()(x, y)
    total = ops.Custom("x * 2 + sin(y)", func_type="expression")(x, y).asnumpy()
    a, b = arrays()
    np.testing.assert_allclose(total, 2 * a + np.sin(b), rtol=1e-5, atol=1e-5)


def test_the_check_runs_on_all_installed_devices() -> None:
    ms.set_context(device_target="CPU")
    done = ms.check_custom(scaled(), *map(Tensor, arrays((2, 3))))
    for name in ("OpenCL", "CUDA-emulated"):
        entry = registry.entries().get(name)
        if entry is not None and registry.problem_of(entry) is None:
            assert f"the same on {name}" in done
    assert not any("Reference" in text for text in done)
