"""Compiles C source with the host's C compiler and loads it; a disk cache keeps the libraries.

    CC    the compiler (default: the first of cc, gcc, clang)

`fused_regions` calls `build_all`. No failure of a compiler raises an exception: a compiler that is
missing, fails, crashes or hangs leads to a `BuildFailure` with a reason for the user. Functions in
a source must have default visibility, and a source must not include headers.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from duograph.backend import disk_cache
from duograph.backend.locks import new_lock

from ._native import ffi, lib
from .compiler_process import Failed, Hung, run_compiler
from .native_call import keep

if TYPE_CHECKING:
    from ._native import CData

# Increase when the stored files or the calling convention change.
FORMAT = 2
NAMES = ("cc", "gcc", "clang")

# Flags that give the same bits as the prebuilt kernels, and flags for the loader. -nostdlib saves
# 10 of 40 ms in the linker; undefined symbols such as memcpy are resolved in this process, which
# may not have loaded libm.
REQUIRED: tuple[str, ...] = (
    "-std=gnu11",
    "-O2",
    "-fwrapv",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-w",
)
# Flags that a build can do without. With these, -O2 gives the loops of -O3 in 90 % of the time: gcc
# 12 would otherwise vectorise only loops of a known length. -fopenmp-simd enables the pragmas for
# sums in any order, nothing else.
OPTIONAL = (
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-fopenmp-simd",
    "-lm",
)
if sys.platform == "darwin":
    REQUIRED = (*(f for f in REQUIRED if f != "-nostdlib"), "-undefined", "dynamic_lookup")

# Instruction sets by the levels of `dg_isa`, as in generate.py, so that both kinds of kernels
# compute the same bits. A test compares them; importing that module would take 4 of the 10 ms that
# a warm first result may take.
ISAS = (
    (),
    ("avx2", "fma", "f16c"),
    (
        "avx512f",
        "avx512dq",
        "avx512bw",
        "avx512vl",
        "avx2",
        "fma",
        "f16c",
        "prefer-vector-width=512",
    ),
)

PROBE = """
__attribute__((visibility("default"))) int probe(void **args, long begin, long end) {
    float *out = args[0];
    for (long i = begin; i < end; i++) out[i] = out[i] * 2.0f;
    return 0;
}
"""

# After this many sources at which it hung, a compiler is not used again by this process.
PATIENCE = 2


class BuildFailure(NamedTuple):
    """The reason why a C source was not built."""

    reason: str


class Library:
    """A loaded shared library of compiled functions, unloaded when nothing refers to it.

    Each function pointer that `function` returns keeps the library loaded. A C struct that stores a
    function's address must keep that Python object alive (`native_call.keep`), since a stored
    address is only a number.
    """

    def __init__(self, path: str | os.PathLike[str], handle: CData) -> None:
        self.path = path
        self._handle = handle
        # when the process ends, other threads may still run its functions
        weakref.finalize(self, lib.dg_close, handle).atexit = False

    def function(self, name: str) -> CData:
        """Return a pointer to a `dg_generated` function, which keeps the library loaded.

        Raises:
            LookupError: the library has no function of this name.
        """
        found = lib.dg_symbol(self._handle, name.encode())
        if found == ffi.NULL:
            raise LookupError(f"{self.path}: {_problem()}")
        return keep(ffi.cast("dg_generated", found), self)

    def __repr__(self) -> str:
        return f"Library({self.path!r})"


class Compiler:
    """A C compiler of this machine: command, accepted flags and known problems.

    Attributes:
        command: the absolute path of the compiler, then the arguments in the variable CC.
        identity: hash of the command, the compiler's file size and modification time, and our
            flags.
        flags: the flags that the compiler accepts; all flags until a build fails.
        known: whether trial builds have determined `flags`.
        problem: reason why the compiler cannot be used, or None.
        hung: number of sources for which the compiler exceeded the time limit.
    """

    def __init__(self, command: Sequence[str], identity: str) -> None:
        self.command = command
        self.identity = identity
        self.flags = REQUIRED + OPTIONAL
        self.known = False
        self.problem: str | None = None
        self.hung = 0


def _problem() -> str:
    return ffi.string(lib.dg_open_problem()).decode("utf-8", "replace")


# ---- finding and probing it ----------------------------------------------------------------------

_lock = new_lock()
_found: dict[tuple[str | None, str | None], Compiler | BuildFailure] = {}


def compiler() -> Compiler | BuildFailure:
    """Return the host's C compiler, or a `BuildFailure` with the reason why there is none."""
    key = (os.environ.get("CC"), os.environ.get("PATH"))
    found = _found.get(key)
    if found is None:
        with _lock:
            found = _found.get(key)
            if found is None:
                found = _found[key] = _find(key[0])
    return found


def _find(chosen: str | None) -> Compiler | BuildFailure:
    """Return the C compiler that `chosen` names, or a `BuildFailure` if there is none.

    `chosen` is the value of the variable CC; if that is not set, the first compiler of NAMES on the
    path is used. The compiler's flags are those that an earlier process stored on disk, if any.
    """
    if chosen and chosen.strip():
        path, extra = shutil.which(chosen), []
        if path is None:
            import shlex

            try:
                first, *extra = shlex.split(chosen)
            except ValueError:
                first = chosen
            path = shutil.which(first)
        if path is None:
            return BuildFailure(f"no C compiler: CC={chosen} is not there")
    else:
        path, extra = next(filter(None, map(shutil.which, NAMES)), None), []
        if path is None:
            return BuildFailure(f"no C compiler: none of {', '.join(NAMES)} is on the path")
    path = os.path.abspath(path)
    command = (path, *extra)
    try:
        facts = os.stat(path)
    except OSError as error:
        return BuildFailure(f"no C compiler: {path}: {error.strerror}")
    identity = disk_cache.key_of(
        "compiler", FORMAT, REQUIRED, OPTIONAL, *command, facts.st_size, facts.st_mtime_ns
    )
    made = Compiler(command, identity)
    stored = disk_cache.read(identity, ".txt")
    if stored is not None:
        made.flags, made.known = tuple(stored.decode("utf-8", "replace").split("\n")), True
    return made


def isa_flags(level: int) -> tuple[str, ...]:
    """Return the C compiler flags of instruction set 0 (baseline), 1 (AVX2) or 2 (AVX-512)."""
    flags = tuple(f"-m{name}" for name in ISAS[level])
    return (*flags, "-DDG_HAS_FMA=1") if flags else ()


def _command(found: Compiler, flags: Sequence[str], out: str | os.PathLike[str]) -> tuple[str, ...]:
    libraries = [f for f in flags if f.startswith("-l")]  # some linkers want them last
    rest = [f for f in flags if f not in libraries]
    isa = isa_flags(lib.dg_isa())
    return (*found.command, *rest, *isa, "-x", "c", "-", "-o", str(out), *libraries)


def _learn(found: Compiler) -> None:
    """Find out by trial builds which flags a C compiler accepts, and store them.

    Raises:
        Failed: the compiler rejects a required flag, on which results depend.
    """
    with _lock:
        if found.known:
            return

        def trial(flags: Sequence[str]) -> None:
            out = disk_cache.scratch(".so")
            try:
                run_compiler(_command(found, flags, out), PROBE)
            finally:
                _unlink(out)

        flags = REQUIRED + OPTIONAL
        try:
            trial(flags)
        except Hung:
            raise
        except Failed:
            flags = REQUIRED
            trial(flags)
            for flag in OPTIONAL:
                with contextlib.suppress(Failed):
                    trial((*flags, flag))
                    flags = (*flags, flag)
        _remember(found, flags)


def _remember(found: Compiler, flags: tuple[str, ...]) -> None:
    """Set the flags that a C compiler accepts, and store them on disk for later processes."""
    found.flags, found.known = flags, True
    with contextlib.suppress(OSError):  # the next process tries again
        disk_cache.store(found.identity, ".txt", "\n".join(flags).encode())


def describe() -> str:
    """Describe the C compiler and its flags in one line, or say why there is none."""
    found = compiler()
    if isinstance(found, Compiler) and not found.known and found.problem is None:
        try:
            _learn(found)
        except (Failed, OSError) as error:
            found.problem = str(error)
    if isinstance(found, BuildFailure) or found.problem is not None:
        reason = found.reason if isinstance(found, BuildFailure) else found.problem
        return f"{reason}; compiled functions run at O0"
    flags = " ".join((*found.flags, *isa_flags(lib.dg_isa())))
    return f"{_version(found)} ({' '.join(found.command)}), {flags}"


def _version(found: Compiler) -> str:
    """Return the first line that the C compiler prints as its version; the disk cache stores it."""
    key = disk_cache.key_of("version", found.identity)
    stored = disk_cache.read(key, ".txt")
    if stored is not None:
        return stored.decode("utf-8", "replace")
    said = ""
    with contextlib.suppress(Failed):  # some have no such flag
        said = run_compiler((*found.command, "--version")).strip()
    version = said.splitlines()[0] if said else "unknown version"
    with contextlib.suppress(OSError):
        disk_cache.store(key, ".txt", version.encode())
    return version


def problem() -> str | None:
    """Return the known reason why the C compiler cannot build anything, or None."""
    found = compiler()
    return found.reason if isinstance(found, BuildFailure) else found.problem


def _unlink(path: str | os.PathLike[str]) -> None:
    with contextlib.suppress(OSError):  # it does not exist
        os.unlink(path)


# ---- building ------------------------------------------------------------------------------------

_failed: dict[str, BuildFailure] = {}
_loaded: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
# The libraries that were loaded last stay loaded, so that a function that is defined again and
# again does not load its kernels each time.
_recent: deque[Library] = deque(maxlen=128)


class Source(NamedTuple):
    """C source whose prelude of definitions is made only when it has to be compiled.

    Attributes:
        text: the functions.
        prelude: function of `text` that returns the definitions (prelude) which the functions need.
        version: text that differs whenever `prelude` would return another result for the same text.
    """

    text: str
    prelude: Callable[[str], str]
    version: str

    def __str__(self) -> str:
        return self.prelude(self.text) + "\n" + self.text


def build(source: str | Source) -> Library | BuildFailure:
    """Return the loaded library of a C source, compiled unless it is cached, or the failure."""
    found = compiler()
    if isinstance(found, BuildFailure):
        return found
    key = _key(found, source, found.flags)
    if key in _failed:
        return _failed[key]
    library = _loaded.get(key)
    if library is None:
        try:
            library = _load(key) or _compile(found, source)
        except (Failed, OSError) as error:
            short = isinstance(error, OSError)
            reason = f"no room for compiled code: {error}" if short else str(error)
            return _failed.setdefault(_key(found, source, found.flags), BuildFailure(reason))
        library = _loaded.setdefault(_key(found, source, found.flags), library)
        _recent.append(library)
    return library


# A comment, or a string, inside of which no comment starts.
COMMENT = r"""/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""


def _key(found: Compiler, source: str | Source, flags: Sequence[str]) -> str:
    """Return the disk cache key of the library that a C compiler makes from a source.

    `found` is the compiler, and `flags` are its flags. Comments are ignored: they name lines of the
    user's program, whose numbers change if the user edits the program.
    """
    command = _command(found, flags, "")
    text = source if isinstance(source, str) else f"{source.version}\n{source.text}"
    text = re.sub(COMMENT, lambda match: match[1] or " ", text, flags=re.DOTALL)
    return disk_cache.key_of("library", FORMAT, found.identity, *command, text)


def build_all(sources: Iterable[str | Source]) -> list[Library | BuildFailure]:
    """Build several C sources in parallel; return for each the loaded library or the failure."""
    results: dict[str | Source, Library | BuildFailure] = {}
    todo = list(dict.fromkeys(sources))[::-1]
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while todo:
                source = todo.pop()
                results[source] = build(source)
        except IndexError:  # another thread took the last source
            pass
        except BaseException as error:  # noqa: BLE001 (it is raised below)
            errors.append(error)
            todo.clear()

    count = min(lib.dg_threads(), len(todo))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:  # such as an interrupt, or a warning turned into an error
        raise errors[0]
    return [results[source] for source in sources]


def _load(key: str) -> Library | None:
    """Load the library of a cache key from the disk cache; return None if the cache lacks it.

    A file that cannot be loaded is deleted.
    """
    with disk_cache.opened(key, ".so") as found:
        if found is None:
            return None
        whole = _is_whole(found.data[:64], len(found.data))
        handle = lib.dg_open(os.fsencode(found.checked_path)) if whole else ffi.NULL
        if handle == ffi.NULL:  # cut off before it was stored, or built on another machine
            _unlink(found.path)
            return None
        return Library(str(found.path), handle)


def _compile(found: Compiler, source: str | Source) -> Library:
    if found.problem is not None:
        raise Failed(found.problem)
    try:
        return _library(found, source)
    except Hung as error:
        found.hung += 1
        if found.hung >= PATIENCE:
            found.problem = str(error)
        raise
    except Failed as error:
        text = str(error)
        if any(words in text for words in FULL) and disk_cache.distrust("it is full"):
            return _library(found, source)
        if found.known:
            raise
        # the source is wrong, or the compiler rejects a flag
        try:
            _learn(found)
        except Failed as worse:
            found.problem = str(worse)
            raise
        if found.flags == REQUIRED + OPTIONAL:
            raise
        return _library(found, source)


def _library(found: Compiler, source: str | Source) -> Library:
    flags = found.flags  # another thread may replace these meanwhile
    out = disk_cache.scratch(".so")
    try:
        run_compiler(_command(found, flags, out), str(source))
        _check(found, out)
        # opened before it is stored: an entry may be evicted, and a broken file is not stored
        handle = lib.dg_open(os.fsencode(out))
        if handle == ffi.NULL:
            reason = _problem()
            if _forbids_code(out) and disk_cache.distrust("its file system lets no code be run"):
                return _library(found, source)
            raise Failed(f"what {found.command[0]} wrote cannot be loaded: {reason}")
        path = out
        with contextlib.suppress(OSError):  # this process has it open already
            path = disk_cache.store(_key(found, source, flags), ".so", out)
    finally:
        _unlink(out)
    if not found.known:
        _remember(found, flags)
    return Library(str(path), handle)


FULL = ("No space left on device", "Disk quota exceeded")


def _check(found: Compiler, out: str | os.PathLike[str]) -> None:
    """Check that the file `out`, written by the C compiler `found`, is a complete library.

    Loading an incomplete one may crash the process.

    Raises:
        Failed: the file is missing, empty, or shorter than its header says.
    """
    try:
        with open(out, "rb") as file:
            header, size = file.read(64), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        header, size = b"", 0
    if not size:
        raise Failed(f"{found.command[0]} succeeded and wrote nothing")
    if not _is_whole(header, size):
        raise Failed(f"what {found.command[0]} wrote is no library, or not a whole one")


def _is_whole(header: bytes, size: int) -> bool:
    """Return whether a library's file has the size that its header (its first 64 bytes) states.

    Loading a shorter file ends the process with a bus error. Only 64-bit little-endian ELF files on
    Linux are checked. On Linux, a file that is not ELF counts as incomplete; all other files count
    as complete.
    """
    if sys.platform != "linux":
        return True
    if header[:4] != b"\x7fELF" or len(header) < 64:
        return False
    if header[4:6] != b"\2\1":
        return True  # 32-bit or big-endian files have another layout
    table = int.from_bytes(header[40:48], "little")  # of sections, at the end of the file
    each = int.from_bytes(header[58:60], "little")
    return table + each * int.from_bytes(header[60:62], "little") <= size


def _forbids_code(path: str | os.PathLike[str]) -> bool:
    return hasattr(os, "ST_NOEXEC") and bool(os.statvfs(path).f_flag & os.ST_NOEXEC)
