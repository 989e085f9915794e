"""Tests of packed operands on processors for which BLAS is preferred: BLAS stays closed for them.

BLAS cannot be closed again, so they run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from duograph_cpu._native import lib

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(lib.dg_isa() != 1, reason="with AVX-512 they run in every process")
@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("tests/jit/test_cached_values.py", "test"),
        ("tests/jit/test_packed_operands.py", "test"),
        ("backend_cpu/tests/test_conv.py", "packed_weights"),
    ],
)
def test_packed_operands_without_blas(file: str, names: str) -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "own_products", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*line, "-k", names, file],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert "passed" in done.stdout and "skipped" not in done.stdout, done.stdout[-2000:]
