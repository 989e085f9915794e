"""The fixture of tests that run on every backend of this repository that is available."""

import os

import duograph as ms
import pytest
from duograph.backend import registry

NAMES = ("CPU", "OpenCL", "CUDA-emulated", "GPU")
required = {w.strip().lower() for w in os.environ.get("DUOGRAPH_REQUIRE", "").split(",")} - {""}


@pytest.fixture(params=NAMES)
def device(request):
    """A device_target; those that are not here are left out, or fail where DUOGRAPH_REQUIRE names
    them.
    """
    before = ms.get_context("device_target")
    use(request.param)
    yield request.param
    ms.set_context(device_target=before)


def use(name):
    """Make a device the target, or leave the test out when it is not here."""
    problem = registry.problem_of(registry.entries()[name])
    if problem is not None:
        if name.lower() in required:
            pytest.fail(f"DUOGRAPH_REQUIRE names {name.lower()}: {problem}", pytrace=False)
        pytest.skip(f"{name}: {problem}")
    ms.set_context(device_target=name)
