"""Plugins that were written for older versions of the plugin seam go on to work.

The folder `frozen` holds copies that are never changed, one per version; a new version of the seam
adds a copy of the one before.
"""

from __future__ import annotations

import pathlib
import re
import sys

import pytest
from duograph.backend.protocol import SEAM_VERSION

FROZEN = sorted((pathlib.Path(__file__).parent / "frozen").glob("seam_*.py"))
OWN = ".".join(map(str, SEAM_VERSION))

PROGRAM = """
import warnings
import numpy as np
import duograph as ms
from duograph import nn, ops

with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    ms.set_context(device_target="{name}")
    x = ms.Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    print(x.device)
for w in found:
    print(w.category.__name__, w.message)

def net(x, w):
    return ops.softmax(ops.tanh(x @ w) + 1.0).sum(0)

def steps(x, w):
    for _ in range(3):
        if x.sum() > -100:
            x = x - 0.1 * ms.grad(lambda a: (net(a, w) ** 2).sum())(x)
    return x, ops.sort(x, 1)[1], ops.concat((x, x)).max()

w = ms.Tensor(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4))
want = [t.asnumpy() for t in steps(x.move_to("CPU"), w.move_to("CPU"))]
for level in (None, "O0", "O1", "O2"):
    f = steps if level is None else ms.jit(steps, jit_level=level)
    for _ in range(2):
        got = f(x, w)
        assert all(t.device == x.device for t in got)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a.asnumpy(), b, 1e-4, 1e-5)
plain = ms.jit(lambda a: (ops.tanh(a * 2) + 1, ops.exp(a).sum(1)), jit_level="O1")
for _ in range(3):
    np.testing.assert_allclose(plain(x)[0].asnumpy(), np.tanh(x.asnumpy() * 2) + 1, 1e-5)

layer = nn.Dense(4, 2)
optimizer = nn.SGD(layer.trainable_params(), 0.1)
step = nn.TrainOneStepCell(nn.WithLossCell(layer, nn.MSELoss()), optimizer)
target = ms.Tensor(np.zeros((3, 2), np.float32))
losses = [float(step(x, target)) for _ in range(5)]
assert losses[-1] < losses[0], losses
ms.synchronize()
import seam_{module} as module
print(sorted(getattr(module, "CALLS", ())))
"""


def _version(path: pathlib.Path) -> tuple[int, int]:
    match = re.fullmatch(r"seam_(\d+)_(\d+)", path.stem)
    assert match is not None
    return int(match[1]), int(match[2])


def test_every_older_version_has_a_copy() -> None:
    versions = [_version(path) for path in FROZEN]
    assert versions == [(SEAM_VERSION[0], k) for k in range(SEAM_VERSION[1])]


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: p.stem)
def test_a_frozen_plugin_works_and_is_named_once(site, path: pathlib.Path) -> None:
    major, minor = _version(path)
    name = f"Frozen{major}{minor}"
    site.install(path.stem, path.read_text())
    source = PROGRAM.replace("{name}", name).replace("{module}", f"{major}_{minor}")
    (site.folder / "program.py").write_text(source)  # compiled functions need their source
    done = site.command([sys.executable, "-W", "error::RuntimeWarning", "program.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    device, warned, calls = done.stdout.splitlines()
    assert device == f"{name}:0"
    assert warned.startswith(
        f"DeprecationWarning the backend {name} was written for version {major}.{minor} of the "
        f"plugin seam, this duograph has {OWN}"
    )
    if minor:
        assert {"compile", "link", "synchronize"} <= set(eval(calls))


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: p.stem)
def test_a_frozen_plugin_passes_conformance_cases(site, path: pathlib.Path) -> None:
    major, minor = _version(path)
    site.install(path.stem, path.read_text())
    done = site.command(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--pyargs", "duograph.conformance", "--device", f"Frozen{major}{minor}", "--quick"),
            *("-k", "[add- or [matmul- or [softmax- or [reduce_sum- or [gather-"),
        ]
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)


def test_a_warning_that_is_an_error_does_not_disable_the_plugin(site) -> None:
    """Test runs that turn warnings into errors see it once; the device works."""
    path = FROZEN[0]
    major, minor = _version(path)
    site.install(path.stem, path.read_text())
    said = site.run(
        f"""
        import warnings
        import duograph as ms
        warnings.simplefilter("error", DeprecationWarning)
        for _ in range(2):
            try:
                ms.set_context(device_target="Frozen{major}{minor}")
                print((ms.Tensor([1.0]) + 1).device)
            except DeprecationWarning:
                print("warned")
        """
    )
    assert said.split() == ["warned", f"Frozen{major}{minor}:0"]
