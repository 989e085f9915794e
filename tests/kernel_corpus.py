"""Collect the source of every generated kernel of a fixed corpus, or compare two collections.

    python tests/kernel_corpus.py OUT_DIR [--targets CPU,OpenCL-serial] [--only gpt,conformance]
    python tests/kernel_corpus.py --compare OLD_DIR NEW_DIR

The corpus is the benchmarks' workloads (compiled at O1 and at O2), the compiled cases of the
conformance suite, and a few functions written here. Every program is compiled for four targets: the
CPU backend (C), an OpenCL processor, an OpenCL GPU, and the CUDA backend. No kernel is compiled or
launched: the sources are recorded where the backend hands them to the toolchain.

`OUT_DIR/TARGET/HASH.c` holds one kernel, with comments removed and identifiers numbered in
the order of their first use, so that two kernels that differ in names only are one file.
`OUT_DIR/index.json` maps target -> program -> the hashes it needs. Use it to check that a change of
the planner or of a printer leaves the generated kernels as they were.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import hashlib
import json
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("CPU", "OpenCL-serial", "OpenCL-grid", "CUDA")
# The elementwise kernels of the CPU backend, which are printed when it is built.
PREBUILT = "CPU-elementwise"
# Modules with the limits that the conformance suite lowers; the second name is of older trees.
PATCHED = (
    "duograph.passes.fusion",
    "duograph.backend.codegen.regions",
    "duograph.backend.codegen.region_plan",
)
# Workloads that only call a library kernel.
WITHOUT_KERNELS = {"matmul1024", "matmul4096"}
DTYPES = ("float32", "float16", "int32", "bool")

# ---- one kernel's text ---------------------------------------------------------------------------

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*(?:[eE][+-]\d+\w*)?")
KERNEL = re.compile(r"^(?=(?:DG_KERNEL|__global__|__kernel|extern \"C\")\b)", re.MULTILINE)
KEPT = frozenset(
    TOKEN.findall("""
    auto break case char const continue default do double else enum extern float for goto if int
    long return short signed sizeof static struct switch typedef union unsigned void while
    template typename inline restrict volatile bool true false defined pragma define include
    i8 i16 i32 i64 u8 u16 u32 u64 b8 f16 bf16 f32 f64 c64 c128 ix args
    """)
)


def canonical(text: str) -> str:
    """Normalise source code: no comments, one statement per line, numbered identifiers."""
    names: dict[str, str] = {}

    def name_of(match: re.Match[str]) -> str:
        word = match[0]
        if word[0].isdigit() or word in KEPT or word.startswith(("dg_", "DG_", "__", "asm")):
            return word
        return names.setdefault(word, f"v{len(names)}")

    found = []
    for line in COMMENT.sub("", text.replace("\\\n", " ")).splitlines():
        parts = [line] if line.lstrip().startswith("#") else re.split(r"(?<=[;{}])", line)
        found += [" ".join(TOKEN.sub(name_of, part).split()) for part in parts if part.strip()]
    return "\n".join(found) + "\n"


def kernels_in(source: str) -> Iterator[str]:
    """Yield the kernels of a source in canonical form, each with the functions before it."""
    parts = KERNEL.split(source)
    head = parts.pop(0) if len(parts) > 1 else ""
    for k, part in enumerate(parts):
        yield canonical(head + part if k == 0 else part)


class Collection:
    """The kernels of one target by hash, and the hashes that each program needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index: dict[str, list[str]] = {}
        self.program = "none"
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, source: str) -> None:
        """Add the kernels of a source to the collection."""
        found = self.index.setdefault(self.program, [])
        for text in kernels_in(source):
            key = hashlib.sha256(text.encode()).hexdigest()[:16]
            if key not in found:
                found.append(key)
                (self.folder / f"{key}.c").write_text(text)


# ---- targets -------------------------------------------------------------------------------------


@contextlib.contextmanager
def target_of(name: str, kept: Collection) -> Iterator[str]:
    """Record the sources generated for a target; yield the name of the device to compile for."""
    if name == "CPU":
        with _recorded_cpu(kept):
            yield "CPU"
        return
    from duograph.backend import registry
    from duograph.backend.protocol import BackendSpec

    made = _recording_cuda(kept) if name == "CUDA" else _recording_opencl(kept, name)
    registry.register(BackendSpec(made.name, lambda: made, priority=None))
    try:
        yield made.name
    finally:
        registry.unregister(made.name)


@contextlib.contextmanager
def _recorded_cpu(kept: Collection) -> Iterator[None]:
    from duograph_cpu import toolchain

    def build_all(sources: Any) -> list[Any]:
        for source in sources:
            kept.add(source.text)
        return [toolchain.BuildFailure("recorded")] * len(sources)

    before = toolchain.build_all
    toolchain.build_all = build_all
    try:
        yield
    finally:
        toolchain.build_all = before


def _recording_cuda(kept: Collection) -> Any:
    sys.path.insert(0, str(ROOT / "backend_cuda" / "tests"))
    from cuda_recording import Recording

    made = Recording()
    made.launcher = functools.partial(_launcher, kept)
    return made


def _launcher(kept: Collection, device: Any, name: str, launch: Any) -> Callable[..., None]:
    """Add the source of a launch to the collection; return a function that launches nothing."""
    kept.add(launch.source)
    return lambda *handles: None


class _Handle:
    """Stand-in for a handle of device memory."""


def _recording_opencl(kept: Collection, form: str) -> Any:
    import numpy as np
    from duograph.backend.codegen.dialect import OPENCL
    from duograph.backend.grid import GridBackend, GridDevice
    from duograph.backend.protocol import DeviceInfo
    from duograph.dtype import ALL
    from duograph_opencl.backend import OpenCL

    class Device(GridDevice):
        dialect = OPENCL
        serial = form == "OpenCL-serial"
        units = 4
        capabilities = frozenset(("fp64", "int64"))

        def allocate(self, nbytes: int, what: str) -> Any:
            return _Handle()

        def copy_in(self, array: Any) -> Any:
            return _Handle()

        def copy_out(self, handle: Any, shape: tuple[int, ...], dtype: Any) -> Any:
            return np.zeros(shape, dtype)

        def synchronize(self) -> None:
            return

    class Recording(GridBackend):
        name = form
        dtypes = tuple(d for d in ALL if not d.is_complex)
        decomposed = taken_apart = getattr(OpenCL, "decomposed", None) or OpenCL.taken_apart

        def available(self) -> None:
            return None

        def devices(self) -> list[DeviceInfo]:
            return [DeviceInfo(0, form, form, 1 << 34)]

        def device(self, device_id: int) -> Any:
            return only

    only = Device()
    made = Recording()
    made.launcher = functools.partial(_launcher, kept)
    return made


def _prebuilt(kept: Collection) -> None:
    """Collect the element-wise kernels that are compiled when the CPU backend is built."""
    from duograph_cpu.generate import generate

    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(generate(folder)[1]):
            kept.program = Path(path).name
            kept.add(Path(path).read_text())


# ---- programs ------------------------------------------------------------------------------------


def workloads(level: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function) for each workload of the benchmarks; the function runs one step."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from workloads import mindspore_api

    for name, prepare in mindspore_api.CASES.items():
        if name in WITHOUT_KERNELS or (name.startswith(("depth", "batch")) and name not in FEW):
            continue

        def once(prepare: Any = prepare) -> None:
            mindspore_api.LEVEL = level
            prepare().run(1)

        yield name, once


FEW = {"depth4", "batch1", "batch256"}


def conformance() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function) for each case of the conformance suite and dtype.

    The function runs all samples of the dtype as one program.
    """
    import duograph as ms
    from duograph.backend import registry
    from duograph.conformance.cases import all_cases
    from duograph.conformance.check import arrays_of, results_of, substitute, to_tensor

    taken = registry.backend(registry.current_device().name).dtypes

    def program(case: Any, dtype: Any) -> None:
        put = functools.partial(to_tensor, kind="normal")
        calls = [
            (substitute(s.args, put), substitute(dict(s.kwargs), put))
            for s in case.made(dtype)
            if any(True for _ in arrays_of([list(s.args), dict(s.kwargs)]))
        ]

        def whole(calls: Any) -> list[Any]:
            return [case.function(*args, **kwargs) for args, kwargs in calls]

        def alone(args: Any, kwargs: Any) -> Any:
            return case.function(*args, **kwargs)

        try:
            results_of(ms.jit(whole, jit_level="O1")(calls))
        except Exception:  # noqa: BLE001 (a sample that the device refuses)
            for args, kwargs in calls:
                with contextlib.suppress(Exception):
                    results_of(ms.jit(alone, jit_level="O1")(args, kwargs))

    for case in all_cases():
        for dtype in case.takes:
            if dtype.name in DTYPES and dtype in taken:
                yield f"{case.name} {dtype.name}", functools.partial(program, case, dtype)


def functions() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function) for code that is rare in the rest of the corpus."""
    import duograph as ms
    import numpy as np
    from duograph import ops

    def array(*shape: int, dtype: str = "float32") -> Any:
        return ms.Tensor(np.zeros(shape, dtype))

    def index(n: int) -> Any:
        return ms.Tensor(np.zeros(n, np.int32))

    def loss(x: Any, t: Any) -> Any:
        return ops.cross_entropy(x, t)

    def embedded(table: Any, i: Any, w: Any) -> Any:
        return ops.tanh(ops.gather(table, i, 0) * w).sum()

    def normed(x: Any, g: Any, b: Any) -> Any:
        return ops.layer_norm(ops.relu(x), (x.shape[-1],), g, b, 1e-5).sum()

    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    for d in ("float32", "float16", "float64"):
        x, y = array(8, 128, 256, dtype=d), array(128, 256, dtype=d)
        calls |= {
            f"broadcast {d}": (lambda a, b: ops.exp(a + b) * b, (x, y)),
            f"columns {d}": (lambda a, b: ((a * b).sum((0, 1)), a.max(0), a * b), (x, y)),
            f"rows {d}": (lambda a, b: ops.softmax(a * b, -1) + a.max(-1, keepdims=True), (x, y)),
            f"row values {d}": (lambda a, b: (ops.tanh(a).sum(-1), (a - b).mean(-1)), (x, y)),
        }
        w = array(1000, 256, dtype=d)
        calls[f"gather {d}"] = (lambda a, i: ops.relu(ops.gather(a, i, 0)) * 2, (w, index(300)))
        calls[f"gather grad {d}"] = (
            ms.grad(embedded, (0, 2)),
            (w, index(300), array(256, dtype=d)),
        )
        norm = array(512, 384, dtype=d), array(384, dtype=d), array(384, dtype=d)
        calls[f"layer norm grad {d}"] = (ms.grad(normed, (0, 1, 2)), norm)
        calls[f"cross entropy grad {d}"] = (ms.grad(loss), (array(64, 100, dtype=d), index(64)))
    for n in (7, 1 << 12, 1 << 19, 1 << 24):
        calls[f"chain {n}"] = (lambda a: ops.tanh(a) * a + 1, (array(n),))
        calls[f"cheap chain {n}"] = (lambda a: (a * a + 1, a - 2), (array(n),))
    for rows, length in ((3, 5), (1000, 12), (64, 1000), (2, 40000)):
        a = array(rows, length)
        calls[f"normalised {rows}x{length}"] = (lambda a: (a - a.mean(-1, True)) * 2, (a,))
        calls[f"exponentials {rows}x{length}"] = (
            lambda a: ops.exp(a) / ops.exp(a).sum(-1, keepdims=True),
            (a,),
        )
        calls[f"summed {rows}x{length}"] = (lambda a: (a * a + 1).sum(0), (a,))
    for name, (f, arguments) in calls.items():
        jitted = ms.jit(f, jit_level="O1")
        yield name, functools.partial(jitted, *arguments)


def programs(only: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function) of the whole corpus, or of the groups or programs named in `only`."""
    groups = {
        "functions": functions,
        "conformance": conformance,
        "O1": functools.partial(workloads, "O1"),
        "O2": functools.partial(workloads, "O2"),
    }
    for group, found in groups.items():
        for name, call in found():
            if not only or group in only or name in only:
                yield f"{group}: {name}", call


@contextlib.contextmanager
def small_regions(program: str) -> Iterator[None]:
    """Return a context in which regions of a single op are compiled, for conformance cases only.

    The conformance suite does the same.
    """
    if not program.startswith("conformance"):
        yield
        return
    changed: list[tuple[Any, str, Any]] = []
    with contextlib.suppress(ImportError):
        from duograph.backend.costs import Costs, FusionLimits
        from duograph.backend.protocol import Backend

        limits = Costs(fusion=FusionLimits(min_ops=1, min_run=1))
        for kind in [Backend, *Backend.__subclasses__()]:
            if "costs" in vars(kind):
                changed.append((kind, "costs", vars(kind)["costs"]))
                kind.costs = lambda self, device_id: limits  # type: ignore[method-assign]
    for module in list(sys.modules.values()):  # where earlier versions keep the limits
        name = getattr(module, "__name__", "")
        if name not in PATCHED:
            continue
        for constant in ("LEAST", "MIN_RUN"):
            if isinstance(value := module.__dict__.get(constant), int):
                changed.append((module, constant, value))
                setattr(module, constant, 1)
    try:
        yield
    finally:
        for owner, attribute, value in changed:
            setattr(owner, attribute, value)


def collect(out: Path, targets: list[str], only: list[str], verbose: bool) -> None:
    """Write the kernels of the corpus for some targets into the folder `out`."""
    os.environ["DUOGRAPH_CACHE_DIR"] = str(out / "cache")  # tuned tiles of this machine stay out
    warnings.simplefilter("ignore")
    import duograph as ms

    index = {}
    for target in targets:
        kept = Collection(out / target)
        if target == PREBUILT:
            _prebuilt(kept)
            index[target] = kept.index
            continue
        begin, count, failed = time.perf_counter(), 0, []
        with target_of(target, kept) as device:
            ms.set_context(mode=ms.PYNATIVE_MODE, device_target=device)
            for program, call in programs(only):
                kept.program = program
                count += 1
                ms.set_context(device_target=device)  # the workloads' module sets another
                try:
                    with small_regions(program):
                        call()
                except Exception as error:  # noqa: BLE001 (reported below)
                    failed.append(f"{program}: {type(error).__name__}: {error}")
                    if verbose:
                        traceback.print_exc()
            ms.set_context(device_target="CPU")
        index[target] = kept.index
        kernels = len({key for keys in kept.index.values() for key in keys})
        seconds = time.perf_counter() - begin
        print(f"{target}: {count} programs, {kernels} kernels, {seconds:.0f} s", flush=True)
        for text in failed:
            print(f"  failed: {text[:300]}")
    old = out / "index.json"
    known = json.loads(old.read_text()) if old.exists() else {}
    for target, found in index.items():
        known.setdefault(target, {}).update(found)
    old.write_text(json.dumps(known, indent=1, sort_keys=True))


# ---- comparison ----------------------------------------------------------------------------------


def compare(old: Path, new: Path, shown: int) -> int:
    """Print which kernels differ between two collections; return 1 if any differ, else 0."""
    before, after = (json.loads((f / "index.json").read_text()) for f in (old, new))
    wrong = 0
    for target in after:
        if target not in before:
            continue
        same, differing = 0, []
        collected = {program.split(":")[0] for program in after[target]}
        for program in sorted({*before[target], *after[target]}):
            if program.split(":")[0] not in collected:
                continue
            a, b = before[target].get(program, []), after[target].get(program, [])
            gone, come = [k for k in a if k not in b], [k for k in b if k not in a]
            same += len(b) - len(come)
            if gone or come:
                differing.append((program, gone, come))
        print(f"{target}: {same} kernels the same, {len(differing)} programs differ")
        wrong += len(differing)
        seen: set[tuple[str, ...]] = set()
        for program, gone, come in differing:
            print(f"  {program}: {len(gone)} gone, {len(come)} new")
            if (pair := (*gone, "", *come)) in seen or len(seen) >= shown:
                continue
            seen.add(pair)
            for x, y in zip([*gone, *[""] * len(come)], [*come, *[""] * len(gone)]):
                if x or y:
                    _show(old / target, x, new / target, y)
    return min(wrong, 1)


def _show(old: Path, x: str, new: Path, y: str) -> None:
    texts = [(f / f"{k}.c").read_text().splitlines() if k else [] for f, k in ((old, x), (new, y))]
    for line in difflib.unified_diff(*texts, x or "nothing", y or "nothing", lineterm="", n=2):
        print(f"    {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true", help="compare two folders")
    parser.add_argument("--targets", default=",".join((*TARGETS, PREBUILT)))
    parser.add_argument(
        "--only", default="", help="groups (functions, conformance, O1, O2) or names"
    )
    parser.add_argument("--show", type=int, default=3, help="how many differences to print in full")
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of failures")
    options = parser.parse_args()
    if options.compare:
        return compare(*options.folders, options.show)
    only = [name for name in options.only.split(",") if name]
    collect(options.folders[0].resolve(), options.targets.split(","), only, options.verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main())
