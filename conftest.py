"""What all tests share: a test that leaves the process changed fails, and harms no other test.

A test that changes the process on purpose asks for the fixture `restored`.

pytest loads this file for `tests`, `backend_*/tests` and the conformance suite. Tests run in any
order and in several processes, so none may depend on what another one left behind.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from duograph import context
from duograph.runtime_state import runtime_state, thread_state

# Environment variables that libraries set when they are imported, by prefix.
OF_LIBRARIES = ("PYTEST_", "KMP_", "PYOPENCL_", "CRC32C_", "OMP_", "MPL", "TF_")

# dictionaries of the process that tests write to through functions of duograph, and their names
DICTIONARIES: dict[str, dict[str, Any]] = {
    "set_context": vars(context.settings),
    "recorded options of set_context": context._recorded,
    "set_auto_parallel_context": context._parallel,
    "device or mode of compat.install": context._forced,
    # the encoded form of os.environ: decoding all of it takes longer than most tests
    "os.environ": os.environ._data,  # type: ignore[attr-defined]
}


def _depths() -> tuple[object, ...]:
    """Return what is not at rest: open derivatives, evaluations, calls, the thread's device."""
    thread = thread_state
    return (
        runtime_state.derivatives, runtime_state.staging, thread.builder, thread.call_depth,
        thread.derivative_depth, thread.device,
    )  # fmt: skip


def _snapshot() -> dict[str, dict[Any, Any]]:
    found = {name: dict(known) for name, known in DICTIONARIES.items()}
    found["os.environ"].pop(b"PYTEST_CURRENT_TEST", None)  # says setup, call or teardown
    return found


def _differences(name: str, before: dict[Any, Any], now: dict[Any, Any]) -> list[str]:
    """Describe the entries of a dictionary that a test has changed."""
    found = []
    for key in sorted({*before, *now}, key=str):
        was, is_now = before.get(key, "nothing"), now.get(key, "nothing")
        if key == "device_target" and (was, is_now) == (None, "CPU"):
            continue  # get_context names the default device, which was then set again
        text = os.fsdecode(key) if isinstance(key, bytes) else str(key)
        if was != is_now and not (name == "os.environ" and text.startswith(OF_LIBRARIES)):
            found.append(f"{name}: {text} was {was!r} and is {is_now!r}")
    return found


class _Process:
    """What tests may not leave changed, as it was when the object was made."""

    def __init__(self) -> None:
        self.known = _snapshot()
        self.folder, self.path, self.finders = os.getcwd(), list(sys.path), list(sys.meta_path)
        self.alias, self.depths = "mindspore" in sys.modules, _depths()

    def changes(self) -> list[str]:
        """Describe what has changed since."""
        found = [
            text
            for name, known in _snapshot().items()
            if known != self.known[name]
            for text in _differences(name, self.known[name], known)
        ]
        for name, was, is_now in (
            ("the current folder", self.folder, os.getcwd()),
            ("sys.path", self.path, sys.path),
            ("whether `mindspore` is imported", self.alias, "mindspore" in sys.modules),
            ("depths of derivatives, evaluations and calls", self.depths, _depths()),
        ):
            if was != is_now:
                found.append(f"{name}: was {was!r} and is {is_now!r}")
        return found

    def restore(self) -> None:
        """Undo the changes of all but depths."""
        for name, known in self.known.items():
            if name != "os.environ":
                DICTIONARIES[name].clear()
                DICTIONARIES[name].update(known)
        now = _snapshot()["os.environ"]
        for key in {*self.known["os.environ"], *now}:
            value = self.known["os.environ"].get(key)
            if value is not None:
                os.environ[os.fsdecode(key)] = os.fsdecode(value)
            elif not os.fsdecode(key).startswith(OF_LIBRARIES):
                del os.environ[os.fsdecode(key)]
        os.chdir(self.folder)
        sys.path[:], sys.meta_path[:] = self.path, self.finders
        if not self.alias:
            for name in [n for n in sys.modules if n.partition(".")[0] == "mindspore"]:
                del sys.modules[name]
        # prepared calls and compiled functions depend on settings
        runtime_state.settings_version = object()
        for call in context.on_device_change:
            call()


# What `repr` prints of most objects: a name of its own in every process.
ADDRESS = re.compile(r" at 0x[0-9a-f]{8,}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse test names with an address: processes that share tests must find the same names."""
    bad = [item.nodeid for item in items if ADDRESS.search(item.name)]
    if bad:
        raise pytest.UsageError("\n  ".join(["give these parameters names with ids=[...]:", *bad]))


def pytest_collection_finish() -> None:
    """Leave out the objects of 30,000 tests from every later search for garbage (0.3 s each)."""
    gc.collect()
    gc.freeze()


RESTORED = pytest.StashKey[bool]()


@pytest.fixture
def restored(request: pytest.FixtureRequest) -> None:
    """Fixture: the test may change settings, environment and folders, which are restored."""
    request.node.stash[RESTORED] = True


@pytest.fixture(autouse=True)
def _process_is_left_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fixture: fails the test that leaves the process changed, and restores the process.

    It takes about 20 microseconds. The conformance suite sets its device for each test itself.
    """
    if request.node.nodeid.startswith("core/"):
        yield
        return
    before = _Process()
    yield
    found = before.changes()
    if found:
        before.restore()
        if not request.node.stash.get(RESTORED, False):
            pytest.fail("the test leaves changed:\n  " + "\n  ".join(found), pytrace=False)
