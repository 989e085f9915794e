"""Programs: built once for each source, options, device and driver; binaries are kept on disk for later processes."""

import os
import tempfile

import pyopencl as cl
from duograph.errors import DeviceError
from duograph.runtime import disk_cache

# Part of every key: changes when what is stored does.
_FORMAT = "opencl-1"


def build_program(device, source):
    """The built program of a source.

    Raises:
        DeviceError: it does not build; source and log were saved, and the message says where.
    """
    d = device.cl_device
    key = disk_cache.key_of(
        _FORMAT, source, " ".join(device.options), d.name, d.vendor, d.version, d.driver_version,
        d.platform.name, d.platform.version,
    )  # fmt: skip
    binary = disk_cache.read(key, ".clbin")
    if binary is not None:
        try:
            return cl.Program(device.context, [d], [binary]).build(device.options, cache_dir=False)
        except cl.Error:
            binary = None  # a driver may refuse what it wrote: built again below
    try:
        program = cl.Program(device.context, source).build(device.options, cache_dir=False)
    except cl.Error as error:
        raise DeviceError(_report(device, source, error)) from None
    (made,) = program.get_info(cl.program_info.BINARIES)
    if made:
        disk_cache.store(key, ".clbin", made)
    return program


def _report(device, source, error):
    """Save source and log; the message that names them."""
    folder = tempfile.mkdtemp(prefix="duograph-opencl-")
    text = os.path.join(folder, "kernel.cl")
    log = os.path.join(folder, "build.log")
    with open(text, "w") as file:
        file.write(source)
    with open(log, "w") as file:
        file.write(str(error))
    return f"a kernel does not build on {device.name}: source in {text}, the compiler's words in {log}"
