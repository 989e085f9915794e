"""Calls the CUDA driver API and turns its error codes into exceptions.

`Driver` calls a module with the functions and conventions of cuda-bindings: either
`cuda.bindings.driver` or, in tests, its emulation (`emulation.driver`). `problem` returns the
reason why there is no usable driver. The devices and `Cuda` call this module.
"""

from __future__ import annotations

from typing import Any, SupportsInt

from duograph.errors import DeviceError, DeviceMemoryError

__all__ = ["OUT_OF_MEMORY", "Driver", "problem"]

OUT_OF_MEMORY = 2
# The version of CUDA whose functions are called by address.
VERSION = 12000
# After one of these errors the context is destroyed, with all data on the device, and every later
# call in the process fails.
LOST = {46, 100, 214, 219, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 720, 721, 999}


class Driver:
    """The CUDA driver API, with calls that raise an exception for an error code.

    Args:
        module: `cuda.bindings.driver`, or an object with the same functions.
        caching: whether freed device memory is kept for later requests; False for the emulation,
            which is to check every request.
    """

    def __init__(self, module: Any, caching: bool = True) -> None:
        self.module = module
        self.caching = caching

    def call(self, name: str, *arguments: object) -> Any:
        """Call a CUDA driver function; return its results without the status code.

        Raises:
            DeviceMemoryError, DeviceError: the function failed.
        """
        code, *rest = getattr(self.module, name)(*arguments)
        if code:
            raise self.error(code, name)
        return rest[0] if len(rest) == 1 else rest

    def address(self, name: str) -> int:
        """Return the address of a CUDA driver function, for C code that calls it."""
        pointer, status = self.call("cuGetProcAddress", name.encode(), VERSION, 0)
        if not pointer:
            raise DeviceError(f"the NVIDIA driver has no {name} (status {int(status)})")
        return int(pointer)

    def error(self, code: SupportsInt, what: str) -> DeviceError | DeviceMemoryError:
        """Return the exception for a CUDA driver error code; its message begins with `what`."""
        text = f"{what}: {self.words(code)}"
        return DeviceMemoryError(text) if int(code) == OUT_OF_MEMORY else DeviceError(text)

    def words(self, code: SupportsInt) -> str:
        """Return the name and the meaning of a CUDA driver error code, as one text."""
        try:
            code = self.module.CUresult(int(code))
        except ValueError:  # a newer driver has more
            return f"code {int(code)}"
        _, name = self.module.cuGetErrorName(code)
        _, text = self.module.cuGetErrorString(code)
        parts = [t.decode() for t in (name, text) if t]
        return ": ".join(parts) or f"code {int(code)}"

    def attribute(self, device: SupportsInt, name: str) -> int:
        """Return an integer attribute of a CUDA device, such as ``MULTIPROCESSOR_COUNT``."""
        key = getattr(self.module.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", key, device))


def _version_of_bindings() -> int:
    """Return the major version of CUDA for which the installed package cuda-bindings was made."""
    import cuda.bindings

    return int(cuda.bindings.__version__.split(".")[0])


INSTALL = "pip install duograph[cuda]"


def problem() -> str | None:
    """Return None if CUDA driver, device and NVRTC are available, else what is missing."""
    try:
        from cuda.bindings import driver as module
    except ImportError as error:
        return f"the Python package cuda-bindings is not installed ({error}); {INSTALL}"
    driver = Driver(module)
    try:
        driver.call("cuInit", 0)
    except DeviceError as error:
        return f"the NVIDIA driver does not start: {error}"
    except RuntimeError:  # cuda-bindings raises it if there is no libcuda
        return "there is no NVIDIA driver on this machine"
    made_for, found = _version_of_bindings(), int(driver.call("cuDriverGetVersion")) // 1000
    if found < made_for:
        return (
            f"the NVIDIA driver is one for CUDA {found}, and the installed cuda-bindings need one "
            f"for CUDA {made_for}: update the driver, or pip install 'cuda-bindings=={found}.*' "
            f"'nvidia-cuda-nvrtc-cu{found}'"
        )
    if driver.call("cuDeviceGetCount") == 0:
        return "the NVIDIA driver has no device"
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        return (
            f"there is no NVRTC, which compiles the kernels ({str(error).splitlines()[0]}); "
            f"{INSTALL}"
        )
    return None
