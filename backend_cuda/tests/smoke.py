"""The first program for a GPU that duograph has not run on: a line for each thing that works.

Usage: smoke.py [DEVICE]    (GPU by default)
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import duograph as ms
import numpy as np
from duograph import ops

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "GPU"
rng = np.random.default_rng(0)
X, W = rng.normal(size=(300, 200)).astype(np.float32), rng.normal(size=(200, 70)).astype(np.float32)


def tensors(dtype: ms.dtype.DType = ms.float32) -> tuple[ms.Tensor, ms.Tensor]:
    """Return X and W on the device."""
    return ms.Tensor(X, dtype, device=DEVICE), ms.Tensor(W, dtype, device=DEVICE)


def near(got: ms.Tensor, want: np.ndarray, tolerance: float = 1e-5) -> None:
    """Raise AssertionError if a result differs from the expected array by more than the tolerance.

    The tolerance is relative to the largest expected element, or absolute if that is below 1.
    """
    found = got.asnumpy().astype(np.float64)
    error = np.abs(found - want).max() / max(1.0, np.abs(want).max())
    assert error <= tolerance, f"the error is {error:.3g}, at most {tolerance} was wanted"


def network(x: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    """A small network: matmul, softmax and a sum."""
    return (ops.softmax(ops.tanh(ops.matmul(x, w)), axis=1) ** 2).sum()


def expected() -> np.ndarray:
    """Return the value of `network` in float64."""
    h = np.exp(np.tanh(X.astype(np.float64) @ W))
    return ((h / h.sum(1, keepdims=True)) ** 2).sum()


def compiled(level: str) -> None:
    """Run `network` three times at a compilation level."""
    run = ms.jit(network, jit_level=level)
    for _ in range(3):
        near(run(*tensors()), expected())


def gradient() -> None:
    """Compare a gradient, eager and compiled, with the CPU's."""
    want = ms.grad(network)(ms.Tensor(X, device="CPU"), ms.Tensor(W, device="CPU")).asnumpy()
    near(ms.grad(network)(*tensors()), want)
    near(ms.jit(ms.grad(network), jit_level="O2")(*tensors()), want)


STEPS: dict[str, Callable[[], None]] = {
    "copy to the device and back": lambda: near(tensors()[0], X, 0),
    "add": lambda: near(tensors()[0] + 1, X + np.float32(1), 0),
    "sum": lambda: near(tensors()[0].sum(), X.astype(np.float64).sum()),
    "matmul, float32": lambda: near(ops.matmul(*tensors()), X.astype(np.float64) @ W),
    "matmul, float16": lambda: near(
        ops.matmul(*tensors(ms.float16)), X.astype(np.float64) @ W, 5e-3
    ),
    "compiled, O0": lambda: compiled("O0"),
    "compiled, O1": lambda: compiled("O1"),
    "compiled, O2 (CUDA graph)": lambda: compiled("O2"),
    "gradient": gradient,
}


def main() -> int:
    """Run all steps, also after a failure; return the exit status."""
    ms.set_context(device_target=DEVICE)
    failures = 0
    for name, step in STEPS.items():
        start = time.perf_counter()
        try:
            step()
            outcome = "works"
        except Exception:  # noqa: BLE001  (the next step runs all the same)
            failures += 1
            outcome = "FAILS\n" + traceback.format_exc()
        print(f"{name}: {outcome} ({time.perf_counter() - start:.2f} s)", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
