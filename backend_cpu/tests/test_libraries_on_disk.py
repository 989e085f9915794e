"""Compiled libraries in the cache on disk: damage, full disks, processes and threads that want the
same one.
"""

import os
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from compiling import COMPILER, DOUBLE, doubles, forget, needs_compiler, source
from duograph.backend import disk_cache
from duograph_cpu import toolchain

pytestmark = pytest.mark.usefixtures("fresh")


@needs_compiler
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "another file", "cut off"])
def test_damaged_entry_is_rebuilt(fake, monkeypatch, damage):
    calls = fake(f'exec {COMPILER} "$@"')
    library = toolchain.build(DOUBLE)
    with open(library.path, "rb") as file:
        data = bytearray(file.read())
    os.unlink(library.path)  # it is mapped into this process
    if damage == "another file":
        disk_cache.store(_key_of(library), ".so", b"no library, but what the checksum says")
    elif damage == "cut off":
        disk_cache.store(_key_of(library), ".so", bytes(data[: len(data) // 3]))
    else:
        data[len(data) // 2] ^= 1
        cut = {"truncated": len(data) // 3, "flipped": len(data), "empty": 0}[damage]
        with open(library.path, "wb") as file:
            file.write(data[:cut])
    before = len(calls())
    forget(monkeypatch)
    again = toolchain.build(DOUBLE)
    assert doubles(again) and len(calls()) == before + 1
    forget(monkeypatch)
    assert doubles(toolchain.build(DOUBLE)) and len(calls()) == before + 1


def _key_of(library):
    return os.path.basename(library.path)[:64]


@needs_compiler
def test_eight_concurrent_processes(tmp_path):
    code = """
        import sys, time
        import numpy as np
        from duograph.dtype import float32
        from duograph.types import TensorType
        from duograph_cpu import backend, region_calls, toolchain
        time.sleep(max(0, float(sys.argv[1]) - time.time()))
        library = toolchain.build(sys.argv[2])
        assert isinstance(library, toolchain.Library), library
        types = [TensorType.of((3,), float32)]
        call = region_calls.make_call(library.function("f"), 3, 9, 1, types, "f")
        cpu = backend.CPU()
        out = call(cpu.copy_in(np.array([1, 2, 3], np.float32), 0))
        assert cpu.copy_out(out, (3,), np.dtype(np.float32), 0).tolist() == [2, 4, 6]
    """
    start = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    start += [str(time.time() + 3), DOUBLE]
    running = [subprocess.Popen(start, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for process in running:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    left = sorted(os.listdir(tmp_path / "cache"))
    assert not [n for n in left if n.startswith(".new")]
    assert doubles(toolchain.build(DOUBLE))


@needs_compiler
def test_world_writable_directory_is_refused(tmp_path):
    root = tmp_path / "cache"
    root.mkdir()
    root.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write to it") as said:
        assert doubles(toolchain.build(DOUBLE))
        assert doubles(toolchain.build(DOUBLE + "int more;"))
    assert len(said) == 1 and not list(root.iterdir())


@needs_compiler
def test_full_disk(fake, monkeypatch, tmp_path):
    """The compiler finds it full: the words are gcc's."""
    root = tmp_path / "cache"
    fake(f"""
        case "$out" in "{root}"*)
            echo "fatal error: error writing: No space left on device" >&2; exit 1;; esac
        exec {COMPILER} "$@"
    """)
    with pytest.warns(RuntimeWarning, match="it is full"):
        library = toolchain.build(DOUBLE)
    assert doubles(library) and not library.path.startswith(str(root))
    monkeypatch.setattr(disk_cache, "_places", {})


@needs_compiler
def test_no_space_for_temporary_files(monkeypatch):
    """What was compiled runs, though no directory takes it."""

    def store(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache, "store", store)
    assert doubles(toolchain.build(DOUBLE))
    monkeypatch.setattr(disk_cache, "scratch", store)
    failure = toolchain.build(source("x0[i]"))
    assert "no room for compiled code" in failure.reason and "No space left" in failure.reason


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    before = toolchain.build(DOUBLE)
    child = os.fork()
    if child == 0:
        try:
            good = doubles(before) and doubles(toolchain.build(DOUBLE + "int child;"))
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert doubles(toolchain.build(DOUBLE + "int parent;"))


@needs_compiler
def test_threads():
    sources = [source(f"x0[i] * {k}") for k in range(6)]
    found = []

    def work(turn):
        found.append(toolchain.build_all(sources[turn:] + sources[:turn])[-turn or 0])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 6 and len({f.function("f") for f in found}) == 1


@needs_compiler
def test_files_are_private():
    library = toolchain.build(DOUBLE)
    root = disk_cache.info().path
    assert stat.S_IMODE(os.stat(root).st_mode) == 0o700
    assert library.path.startswith(root)
