"""Fixtures that install plugins as third parties do: a module and an entry point on the path of a
subprocess.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

# A device in a few lines: kernels from the reference rules, so that tests can bend one thing at a
# time.
DEVICE = """
import numpy as np
from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec, DeviceInfo

class Device(Backend):
    name = "{name}"
    host_fallback = "{fallback}"
    lacks = {lacks!r}

    def devices(self):
        return [DeviceInfo(i, "{name} " + str(i)) for i in range({count})]

    def copy_in(self, array, device_id):
        return np.array(array)

    def copy_out(self, handle, shape, dtype, device_id):
        return np.array(handle).reshape(shape)

    def prepare(self, op, types, attributes, device_id):
        if op.is_composite or op.name in self.lacks:
            return None
        (result,) = op.infer_types(types, attributes)
        def call(*handles):
            arrays = [h.reshape(t.shape) for h, t in zip(handles, types)]
            found = op.reference_rule(*op.arguments(arrays), **attributes)
            return np.array(found, result.dtype.np)
        return call

@hookimpl
def duograph_backend():
    return BackendSpec("{name}", Device, priority={priority})
"""


def device_source(
    name: str = "Toy",
    *,
    lacks: tuple[str, ...] = (),
    fallback: str = "off",
    count: int = 1,
    priority: int | None = 1,
) -> str:
    return DEVICE.format(name=name, lacks=lacks, fallback=fallback, count=count, priority=priority)


class Site:
    """A folder of installed distributions that duograph, run in a subprocess, sees first."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def install(self, module: str, source: str, version: str = "1.0") -> None:
        """Install a distribution `dist-<module>` with one module and one duograph entry point."""
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"dist_{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: dist-{module}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(f"[duograph]\n{module} = {module}\n")

    def run(self, program: str, *, check: bool = True, **environment: str) -> str:
        """Run a program and return its output, with its errors if it may fail."""
        done = self.command([sys.executable, "-c", textwrap.dedent(program)], **environment)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        return done.stdout + done.stderr

    def command(self, line: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("DUOGRAPH_")}
        paths = [str(self.folder), *filter(None, [env.get("PYTHONPATH")])]
        env |= {"PYTHONPATH": os.pathsep.join(paths), **environment}
        return subprocess.run(
            line, capture_output=True, text=True, timeout=300, check=False, env=env, cwd=self.folder
        )


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def device() -> Callable[..., str]:
    return device_source
