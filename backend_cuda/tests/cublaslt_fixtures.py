"""Fixtures for tests of the CUDA backend with the imitation of cuBLASLt in `fake_cublaslt.c`."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess

import pytest
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.op import OPS
from duograph_cuda import cublaslt
from duograph_cuda.emulation.backend import CudaEmulated

__all__ = ["NAME", "WithLibrary", "backend", "fake", "path"]

NAME = "CUDA-with-cuBLASLt"


class WithLibrary(CudaEmulated):
    """The emulated CUDA backend with the library that DUOGRAPH_CUDA_CUBLASLT names."""

    name = NAME
    find_library = staticmethod(cublaslt.find)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Fixture: the path of the shared library that `fake_cublaslt.c` is compiled to."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    out = tmp_path_factory.mktemp("cublaslt") / "libcublasLt.so"
    source = str(pathlib.Path(__file__).with_name("fake_cublaslt.c"))
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(out), source, "-lm"], check=True)
    return str(out)


@pytest.fixture
def backend(path, monkeypatch):
    """Fixture: the backend with the imitation, registered under NAME."""
    problem = CudaEmulated().available()
    if problem is not None:
        pytest.skip(problem)
    monkeypatch.setenv("DUOGRAPH_CUDA_CUBLASLT", path)
    made = WithLibrary()
    registry.register(BackendSpec(NAME, lambda: made, priority=None))
    yield made
    registry.unregister(NAME)
    for name in ("matmul", "conv", "conv_input_grad", "conv_weight_grad"):
        OPS[name].forget_calls()


@pytest.fixture
def fake(path):
    """Fixture: the imitation itself, which tells what it was asked."""
    return ctypes.CDLL(path)
