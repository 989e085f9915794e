"""Determines which features of an OpenCL device kernels may use.

`Device` and `probe` call `features_of`. Two environment variables, `DUOGRAPH_OPENCL_WITHOUT` and
`DUOGRAPH_OPENCL_LIMITS`, remove features or lower limits, so that kernels for weaker devices can be
tested without such a device. This module launches nothing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

import pyopencl as cl
from duograph.backend.codegen.dialect import OPENCL, GridDialect
from duograph.errors import DeviceError

__all__ = [
    "Features",
    "LIMITS_VARIABLE",
    "WITHOUT_VARIABLE",
    "build_options",
    "dialect_of",
    "features_of",
]

# Names of features that a device is used without, separated by commas.
WITHOUT_VARIABLE = "DUOGRAPH_OPENCL_WITHOUT"
# Lower limits than the device's, such as "group=64,buffer=1048576".
LIMITS_VARIABLE = "DUOGRAPH_OPENCL_LIMITS"

# The ways in which work items of a subgroup exchange values, by extension, best first; the numbers
# are those of DG_WITH_SUBGROUPS in the dialect's prelude.
_SHUFFLES = {"cl_khr_subgroup_shuffle": 1, "cl_intel_subgroups": 2}


@dataclasses.dataclass(frozen=True)
class Features:
    """What kernels may use on a device, and the device's limits.

    Attributes:
        fp64: whether there is 64-bit floating point.
        fp16: whether there are instructions that convert float16.
        int64: whether there are 64-bit integers, which OpenCL's embedded profile has only as an
            extension.
        fma: whether the compiler may use a multiply-add instruction.
        pragmas: whether clang's pragmas may be used, if the compiler is clang.
        subgroups: how work items of a subgroup exchange values, a number of `_SHUFFLES`; 0 if they
            cannot.
        group: most work items that any group may have.
        kernel_group: most work items of a group with which kernels are launched; a kernel may have
            a lower limit.
        local: bytes of local memory of a group.
        buffer: bytes of the largest buffer.
        address: bits of an address.
    """

    fp64: bool
    fp16: bool
    int64: bool
    fma: bool
    pragmas: bool
    subgroups: int
    group: int
    kernel_group: int
    local: int
    buffer: int
    address: int

    @property
    def capabilities(self) -> frozenset[str]:
        """The names of features that kernels may need (`GridDevice.capabilities`)."""
        names = ("fp64", "fp16", "int64", "subgroups")
        return frozenset(name for name in names if getattr(self, name))

    def options(self) -> list[str]:
        """Return compiler options that define macros for the features, which the prelude reads."""
        options = []
        for name in ("fp64", "fma", "pragmas"):
            if not getattr(self, name):
                options.append(f"-DDG_WITHOUT_{name.upper()}")
        if self.fp16:
            options.append("-DDG_WITH_FP16")
        if self.subgroups:
            options.append(f"-DDG_WITH_SUBGROUPS={self.subgroups}")
        return options


_SWITCHES = ("fp64", "fp16", "int64", "fma", "pragmas", "subgroups")
_LIMITS = ("group", "kernel_group", "local", "buffer", "address")
# What the embedded profile of OpenCL guarantees, with 64-bit integers.
_EMBEDDED_WITHOUT = ("fp64", "fp16", "fma", "subgroups")
_EMBEDDED_LIMITS = {"local": 1 << 10, "buffer": 1 << 20, "address": 32}


def features_of(device: cl.Device, environment: Mapping[str, str] = os.environ) -> Features:
    """Return the features of an OpenCL device, without those that the environment removes.

    Raises:
        DeviceError: one of the two environment variables has an unknown name or an invalid number.
    """
    extensions = device.extensions.split()
    embedded = "EMBEDDED" in device.profile
    without, limits = _restrictions(environment)
    double = "cl_khr_fp64" in extensions or bool(device.get_info(cl.device_info.DOUBLE_FP_CONFIG))
    shuffles = [way for name, way in _SHUFFLES.items() if name in extensions]
    group = min(device.max_work_group_size, device.max_work_item_sizes[0])
    has = Features(
        fp64=double,
        fp16="cl_khr_fp16" in extensions,
        int64=not embedded or "cles_khr_int64" in extensions,
        fma=True,
        pragmas=True,
        subgroups=shuffles[0] if shuffles else 0,
        group=group,
        kernel_group=group,
        local=device.local_mem_size,
        buffer=device.max_mem_alloc_size,
        address=device.address_bits,
    )
    lower = {name: min(getattr(has, name), value) for name, value in limits.items()}
    return dataclasses.replace(has, **dict.fromkeys(without, False), **lower)


def _restrictions(environment: Mapping[str, str]) -> tuple[set[str], dict[str, int]]:
    """Return (features that the environment removes, dict from limit name to its lower value)."""
    without: set[str] = set()
    limits: dict[str, int] = {}
    for name in _words(environment, WITHOUT_VARIABLE):
        if name == "embedded":
            without.update(_EMBEDDED_WITHOUT)
            limits.update(_EMBEDDED_LIMITS)
        elif name in _SWITCHES:
            without.add(name)
        else:
            raise DeviceError(
                f"{WITHOUT_VARIABLE}: got {name!r}; wanted some of embedded, {', '.join(_SWITCHES)}"
            )
    for word in _words(environment, LIMITS_VARIABLE):
        name, _, number = word.partition("=")
        if name not in _LIMITS or not number.isdigit() or int(number) < 1:
            raise DeviceError(
                f"{LIMITS_VARIABLE}: got {word!r}; wanted NAME=NUMBER with one of "
                f"{', '.join(_LIMITS)}, and a number above 0"
            )
        limits[name] = int(number)
    return without, limits


def _words(environment: Mapping[str, str], variable: str) -> list[str]:
    return [w for w in environment.get(variable, "").replace(" ", "").split(",") if w]


def build_options(device: cl.Device, features: Features) -> list[str]:
    """Return the OpenCL compiler options for a device with given features.

    If the device supports it, division is correctly rounded as in NumPy.
    """
    options = ["-cl-std=CL1.2", "-w"]  # compilers warn about intended code in the headers
    if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    return options + features.options()


def dialect_of(features: Features) -> GridDialect:
    """Return the OpenCL C dialect in which code generators write kernels for these features."""
    single, subgroups = not features.fp64, bool(features.subgroups)
    return dataclasses.replace(OPENCL, single=single, subgroups=subgroups)
