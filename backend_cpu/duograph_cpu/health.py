"""Examines this machine for causes that make the CPU backend slow.

`CPU.examine` calls `examine`; the command `duograph doctor` prints the findings. Nothing here
changes a setting of the machine.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from duograph.backend.health import Finding

from . import toolchain
from ._native import lib

__all__ = ["examine"]

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def examine() -> list[Finding]:
    """Return findings about C compiler, BLAS, instruction set, threads and huge pages."""
    return [_compiler(), _blas(), _instructions(), _threads(), *_huge_pages()]


def _compiler() -> Finding:
    said = toolchain.describe()
    problem = toolchain.problem()
    if problem is None:
        return Finding("CPU compiler", "good", said.split(", -")[0])
    return Finding(
        "CPU compiler", "bad", f"{problem}; compiled functions run op by op", _install("gcc")
    )


def _install(package: str) -> str:
    """Return the shell command that installs a system package on this machine."""
    if sys.platform == "darwin":
        return "xcode-select --install"
    for tool, words in (
        ("apt-get", f"apt-get install {package} libc6-dev"),
        ("dnf", f"dnf install {package}"),
        ("apk", f"apk add {package} musl-dev"),
        ("pacman", f"pacman -S {package}"),
    ):
        if shutil.which(tool):
            return words
    return f"install {package} with the package manager of the system, or set CC"


def _blas() -> Finding:
    if importlib.util.find_spec("scipy_openblas32") is None:
        return Finding(
            "CPU BLAS", "bad", "large matmuls run without BLAS, several times slower",
            "pip install scipy-openblas32",
        )  # fmt: skip
    return Finding("CPU BLAS", "good", "OpenBLAS of scipy-openblas32")


def _instructions() -> Finding:
    level = ("baseline x86-64", "AVX2", "AVX-512")[lib.dg_isa()]
    if lib.dg_isa() == 0 and platform.machine() in ("x86_64", "AMD64"):
        return Finding(
            "CPU instructions",
            "slow",
            f"{level}: the processor, or its virtual machine, has no AVX2",
        )
    return Finding("CPU instructions", "good", f"{level} kernels")


def _threads() -> Finding:
    threads, cores = lib.dg_threads(), os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    quota = _quota()
    text = f"{threads} threads on {allowed} of {cores} processors"
    if quota is not None and threads > quota + 0.5:
        return Finding(
            "CPU threads", "slow",
            f"{text}, but the container may use {quota:g}; threads will wait for each other",
            f"taskset -c 0-{max(0, int(quota) - 1)} python ...",
        )  # fmt: skip
    return Finding("CPU threads", "good", text)


def _quota() -> float | None:
    """Return how many processors the control group of this process may use; None if unlimited."""
    try:
        limit, period = QUOTA.read_text().split()
        return int(limit) / int(period)
    except (OSError, ValueError):  # there is none, or it is "max"
        return None


def _huge_pages() -> list[Finding]:
    try:
        setting = HUGE.read_text()
    except OSError:  # another system, or a kernel without them
        return []
    if "[never]" in setting:
        return [
            Finding(
                "CPU huge pages", "slow", "transparent huge pages are off: large tensors cost more "
                "address translations", f"echo madvise | sudo tee {HUGE}",
            )
        ]  # fmt: skip
    return [Finding("CPU huge pages", "good", setting.split("[")[1].split("]")[0])]
