"""Every kernel that the backend emits for the conformance cases compiles for every architecture
that is promised.

Every one for the oldest, and one in `THIN` for one of the others; those that look at the
architecture for all of them; most optimisations are off. `DUOGRAPH_TESTS=full` (`make test-all`)
takes every dtype, what is emitted for fused regions too, and compiles everything for all with the
optimisations of users.
"""

from __future__ import annotations

import functools

import duograph as ms
import pytest
from amount import FULL
from cuda_architectures import CAPABILITIES, refused
from cuda_recording import NAME, Recording
from duograph.backend import registry
from duograph.backend.costs import Costs, FusionLimits
from duograph.backend.protocol import BackendSpec
from duograph.conformance.cases import all_cases
from duograph.conformance.check import run, substitute, to_tensor
from duograph.conformance.session import QUICK
from duograph.errors import BackendError, DeviceError
from duograph_cuda.sources import CUDA

THIN = 5


class EveryOpFuses(Recording):
    """A recording backend for which regions of a single op are compiled, too."""

    def costs(self, device_id):
        return Costs(fusion=FusionLimits(min_ops=1))


@pytest.fixture(scope="module")
def sources():
    """Fixture: the CUDA sources that the backend emits for the conformance cases."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs the packages of duograph[cuda]")
    made = []
    registry.register(
        BackendSpec(NAME, lambda: made.append(EveryOpFuses()) or made[0], priority=None)
    )
    before = ms.get_context("device_target")
    try:
        ms.set_context(device_target=NAME)
        for case in all_cases():
            takes = [d for d in case.takes if d in made[0].dtypes]
            for dtype in takes if FULL else [d for d in takes if d in QUICK] or takes[:1]:
                _emit(case, dtype)
    finally:
        ms.set_context(device_target=before)
        registry.unregister(NAME)
    return made[0].seen


def _emit(case, dtype):
    for sample in case.made(dtype):
        _quietly(functools.partial(run, case, sample))
        if FULL:
            put = functools.partial(to_tensor, kind=sample.kind)
            args, kwargs = substitute(sample.args, put), substitute(dict(sample.kwargs), put)
            compiled = ms.jit(lambda a, k: case.function(*a, **k), jit_level="O1")
            _quietly(functools.partial(compiled, args, kwargs))


def _quietly(call):
    """Call a function; ignore its errors, since the emulated memory holds zeros only.

    Errors of the backend are raised again.
    """
    try:
        call()
    except (DeviceError, BackendError):
        raise
    except Exception:  # noqa: BLE001 (see above)
        return


def _chosen(sources, capability):
    """Return the sources to compile for an architecture: all, or its part of them."""
    oldest, *others = CAPABILITIES
    if FULL or capability == oldest:
        return sources
    ordered = sorted(sources)
    its_part = ordered[others.index(capability) :: THIN * len(others)]
    # every source begins with the prelude, which looks at the architecture, too
    prelude = CUDA.own_prelude()
    return {*its_part, *(s for s in ordered if "__CUDA_ARCH__" in s.removeprefix(prelude))}


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda c: f"sm_{c[0]}{c[1]}")
def test_every_kernel_compiles(sources, capability, record_property):
    assert len(sources) > 500, "the cases reach more kernels than that"
    chosen = _chosen(sources, capability)
    bad = refused(chosen, capability, optimised=FULL)
    record_property("kernels", len(chosen))
    print(f"{len(chosen)} sources for {capability}")
    assert not bad, (
        f"{len(bad)} of {len(chosen)} sources do not compile; the first:\n{bad[0][:4000]}"
    )
