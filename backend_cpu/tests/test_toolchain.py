"""From C source to calls: whatever the machine's compiler does, a program gets functions or a
reason.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from compiling import COMPILER, DOUBLE, doubles, floats, forget, needs_compiler, run, source
from duograph.backend.codegen import C
from duograph.cli import main
from duograph_cpu import compiler_process, generate, region_calls, toolchain
from duograph_cpu._native import lib
from duograph_cpu.toolchain import BuildFailure, Library

pytestmark = pytest.mark.usefixtures("fresh")


# ---- a compiler that works -----------------------------------------------------------------------


@needs_compiler
def test_builds_and_runs():
    library = toolchain.build(DOUBLE)
    assert doubles(library)
    assert toolchain.build(DOUBLE) is library
    with pytest.raises(LookupError, match="undefined symbol: g"):
        library.function("g")


@needs_compiler
def test_next_process_compiles_nothing(fake, monkeypatch):
    calls = fake(f'exec {COMPILER} "$@"')
    assert doubles(toolchain.build(DOUBLE))
    assert len(calls()) == 1  # neither its version nor flags were asked for alone
    forget(monkeypatch)
    assert doubles(toolchain.build(DOUBLE))
    assert "fake 1.0" in toolchain.describe()
    assert len(calls()) == 2
    forget(monkeypatch)
    assert "fake 1.0" in toolchain.describe()
    assert len(calls()) == 2
    assert doubles(toolchain.build(DOUBLE + "int changed;"))
    assert len(calls()) == 3


@needs_compiler
def test_comments_do_not_change_the_key():
    """They name lines of the user's program."""
    library = toolchain.build(DOUBLE + "int x; /* model.py:3 */ int y; // here\n")
    assert toolchain.build(DOUBLE + "int x; /* model.py:4 */ int y; // there\n") is library
    texts = [
        '"/* 1 */"',
        '"/* 2 */"',
        "'\"', '/', '*'",
        '"//"',
        '"a\\"/*", "*/"',
        '"a\\"/*", "b*/"',
    ]
    made = [toolchain.build(DOUBLE + f"const char *text[] = {{{t}}};") for t in texts]
    assert len({m.path for m in made}) == len(texts)


@needs_compiler
def test_instruction_set_is_part_of_the_key(fake):
    calls = fake(f'exec {COMPILER} "$@"')
    level = lib.dg_isa()
    try:
        for limit in range(level + 1):
            lib.dg_isa_limit(limit)
            assert doubles(toolchain.build(DOUBLE))
            assert len(calls()) == 1 + limit
    finally:
        lib.dg_isa_limit(2)


FUNCTIONS = ["exp", "tanh", "erf", "sin"]
PREBUILT = """
import sys
import duograph, numpy as np
from duograph import ops
from duograph_cpu._native import lib
lib.dg_isa_limit(int(sys.argv[1]))
x = duograph.Tensor(np.frombuffer(sys.stdin.buffer.read(), np.float32))
for name in sys.argv[2:]:
    sys.stdout.buffer.write(getattr(ops, name)(x).asnumpy().tobytes())
"""


@functools.cache
def prebuilt(limit, data):
    """Return, by function, the bytes that its prebuilt kernel computes from `data`.

    A new process runs them, because the instruction set is chosen once in a process.
    """
    line = [sys.executable, "-c", PREBUILT, str(limit), *FUNCTIONS]
    said = subprocess.run(line, input=data, capture_output=True, check=True).stdout
    assert len(said) == len(FUNCTIONS) * len(data)
    return {name: said[k * len(data) :][: len(data)] for k, name in enumerate(FUNCTIONS)}


@needs_compiler
@pytest.mark.parametrize("function", FUNCTIONS)
def test_bits_equal_those_of_prebuilt_kernels(function):
    import duograph
    from duograph import ops

    text = C.prelude() + source(f"dg_{function}_f32(x0[i])").replace("long", "i64")
    x = np.random.default_rng(0).standard_normal(100_003).astype(np.float32) * 10
    try:
        for limit in range(lib.dg_isa() + 1):
            lib.dg_isa_limit(limit)
            library = toolchain.build(text)
            assert isinstance(library, Library), library
            n = x.size
            call = region_calls.make_call(library.function("f"), n, 4096, 1, [floats(n)], function)
            (found,) = run(call, x)
            if limit == lib.dg_isa() and limit == 2:
                want = getattr(ops, function)(duograph.Tensor(x)).asnumpy()
                assert found.tobytes() == want.tobytes()
            assert found.tobytes() == prebuilt(limit, x.tobytes())[function], limit
    finally:
        lib.dg_isa_limit(2)


def test_instruction_sets_equal_those_of_prebuilt_kernels():
    for flags, (target, define) in zip(toolchain.ISAS, generate.ISAS.values(), strict=True):
        assert ",".join(flags) == target
        assert bool(flags) == bool(define) and "DG_HAS_FMA" in (define or "DG_HAS_FMA")


@needs_compiler
def test_devices_command_shows_the_compiler(capsys, monkeypatch):
    assert main(["devices"]) == 0
    lines = [n for n in capsys.readouterr().out.splitlines() if n.startswith("  compiler ")]
    assert any("-ffp-contract=off" in line for line in lines)
    monkeypatch.setenv("CC", "/nonexistent")
    assert main(["devices"]) == 0
    wanted = "  compiler no C compiler: CC=/nonexistent is not there; compiled functions run at O0"
    assert wanted in capsys.readouterr().out.splitlines()


@needs_compiler
def test_builds_several_in_parallel():
    sources = [source(f"x0[i] + {k}") for k in range(5)] + ["no C at all"] + [DOUBLE]
    found = toolchain.build_all(sources)
    assert [isinstance(f, Library) for f in found] == [True] * 5 + [False, True]
    assert doubles(found[6])
    assert len({f.function("f") for f in found if isinstance(f, Library)}) == 6
    assert toolchain.build_all([]) == []


def test_error_in_a_thread_is_raised_and_stops_the_others(monkeypatch):
    """Such as a warning that is an error."""
    turns = []

    def build(text):
        turns.append(text)
        time.sleep(0.05)
        raise RuntimeWarning("the cache")

    monkeypatch.setattr(toolchain, "build", build)
    with pytest.raises(RuntimeWarning, match="the cache"):
        toolchain.build_all([str(i) for i in range(1000)])
    assert len(turns) <= lib.dg_threads()


@needs_compiler
def test_library_may_use_libm_and_memcpy():
    library = toolchain.build(
        "extern double lgamma(double); extern void *memcpy(void *, const void *, unsigned long);\n"
        + source("(float)lgamma(x0[i]) + 0 * *(float *)memcpy(y0 + i, x0 + i, 4)")
    )
    call = region_calls.make_call(library.function("f"), 3, 9, 1, [floats(3)], "lgamma")
    (found,) = run(call, np.array([1, 3, 5], np.float32))
    np.testing.assert_allclose(found, [0, np.log(2), np.log(24)], rtol=1e-6)


@needs_compiler
def test_large_sources():
    """More than a pipe holds."""
    filler = "".join(f"static int unused{i}(int x) {{ return x + {i}; }}\n" for i in range(9000))
    assert doubles(toolchain.build(filler + DOUBLE))


@needs_compiler
@pytest.mark.parametrize("name", ["with spaces", "größe-缓存-🚀", "quote'\"$;"])
def test_unusual_compiler_names(name, fake, tmp_path, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path / name / "cache"))
    fake(f'exec {COMPILER} "$@"', name=name + " cc")
    assert doubles(toolchain.build(DOUBLE))
    assert name in toolchain.describe()


@needs_compiler
def test_compiler_with_arguments(monkeypatch):
    monkeypatch.setenv("CC", f"{COMPILER} -DFACTOR=2")
    assert doubles(toolchain.build(source("x0[i] * FACTOR")))


@needs_compiler
def test_compiler_without_optional_flags(fake, monkeypatch):
    """Those that are about speed are left out; what was found is kept for the next process."""
    calls = fake(f"""
        case "$*" in *vect-cost-model*|*openmp*) echo "unknown flag" >&2; exit 1;; esac
        exec {COMPILER} "$@"
    """)
    assert doubles(toolchain.build(DOUBLE))
    described = toolchain.describe()
    assert "-ftree-vectorize" in described and "openmp" not in described
    assert "cost-model" not in described
    before = len(calls())
    forget(monkeypatch)
    assert doubles(toolchain.build(DOUBLE)) and toolchain.describe() == described
    assert len(calls()) == before


@needs_compiler
def test_compiler_without_required_flags_is_refused(fake):
    calls = fake(f"""
        case "$*" in *fp-contract*) echo "unknown flag -ffp-contract" >&2; exit 1;; esac
        exec {COMPILER} "$@"
    """)
    failure = toolchain.build(DOUBLE)
    assert isinstance(failure, BuildFailure) and "unknown flag -ffp-contract" in failure.reason
    assert "unknown flag -ffp-contract" in toolchain.describe()
    assert "unknown flag -ffp-contract" in toolchain.problem()
    before = len(calls())
    assert isinstance(toolchain.build(source("x0[i]")), BuildFailure)
    assert len(calls()) == before  # not asked again


@needs_compiler
def test_changed_compiler_changes_the_key(fake, monkeypatch, tmp_path):
    fake(f'exec {COMPILER} "$@"')
    first = toolchain.build(DOUBLE)
    forget(monkeypatch)
    fake(f'exec {COMPILER} "$@" # changed')
    second = toolchain.build(DOUBLE)
    assert doubles(second) and first.path != second.path


# ---- compilers that do not -----------------------------------------------------------------------


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    failure = toolchain.build(DOUBLE)
    assert failure == BuildFailure("no C compiler: none of cc, gcc, clang is on the path")
    assert toolchain.describe() == f"{failure.reason}; compiled functions run at O0"
    assert toolchain.problem() == failure.reason
    assert toolchain.build_all([DOUBLE, DOUBLE]) == [failure, failure]
    monkeypatch.setenv("PATH", "")
    assert isinstance(toolchain.build(DOUBLE), BuildFailure)


def test_chosen_compiler_is_missing(monkeypatch):
    """It is not replaced by another one in silence."""
    for chosen in ("/nonexistent", "no-such-cc -m64", "unclosed 'quote"):
        monkeypatch.setenv("CC", chosen)
        reason = f"no C compiler: CC={chosen} is not there"
        assert toolchain.build(DOUBLE) == BuildFailure(reason)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("echo 'internal error: out of luck' >&2; exit 4", "failed with exit status 4\n"
                                                           "  internal error: out of luck"),
        ("kill -SEGV $$", "crashed: Segmentation fault"),
        ("kill -KILL $$", "crashed: Killed"),
        ("exit 0", "succeeded and wrote nothing"),
        (': > "$out"', "succeeded and wrote nothing"),
        ('echo garbage > "$out"', "is no library, or not a whole one"),
        ('head -c 100000 /dev/urandom > "$out"', "is no library, or not a whole one"),
        ("head -c 3000000 /dev/zero >&2; exit 1", "failed with exit status 1"),
    ],
)  # fmt: skip
def test_compiler_that_fails(fake, monkeypatch, lines, reason):
    fake(lines)
    failure = toolchain.build(DOUBLE)
    assert isinstance(failure, BuildFailure) and reason in failure.reason
    assert toolchain.build(DOUBLE) is failure
    if COMPILER:  # nothing of it was kept
        forget(monkeypatch)
        fake(f'exec {COMPILER} "$@"')
        assert doubles(toolchain.build(DOUBLE))


@needs_compiler
def test_truncated_library(fake):
    fake(f'{COMPILER} "$@" -o "$out.full"; head -c 9000 "$out.full" > "$out"; rm "$out.full"')
    failure = toolchain.build(DOUBLE)
    assert "is no library, or not a whole one" in failure.reason


@needs_compiler
def test_library_with_missing_symbol():
    failure = toolchain.build("extern float nowhere(float);\n" + source("nowhere(x0[i])"))
    assert "cannot be loaded" in failure.reason and "nowhere" in failure.reason
    assert doubles(toolchain.build(DOUBLE))


@needs_compiler
def test_invalid_source():
    failure = toolchain.build("int f(void) { return undeclared; }")
    assert "failed with exit status 1" in failure.reason and "undeclared" in failure.reason
    assert len(failure.reason.splitlines()) <= 7
    assert toolchain.problem() is None
    assert doubles(toolchain.build(DOUBLE))


def test_compiler_that_does_not_start(tmp_path, monkeypatch):
    path = tmp_path / "cc"
    path.write_text("#!/nonexistent/interpreter\n")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    assert "does not start" in toolchain.build(DOUBLE).reason


@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
def test_compiler_that_hangs(fake, tmp_path, monkeypatch, deaf):
    monkeypatch.setenv("DUOGRAPH_CC_TIMEOUT", "1")
    calls = fake(f'{deaf}sleep 1000 & echo $! > "{tmp_path}/pid"; wait')
    start = time.monotonic()
    failure = toolchain.build(DOUBLE)
    assert time.monotonic() - start < 500, "the compiler would sleep for 1000 s"
    assert "did not finish within 1 s (DUOGRAPH_CC_TIMEOUT)" in failure.reason
    pid = int((tmp_path / "pid").read_text())
    for _ in range(2000):  # what the compiler had started was stopped with it
        if not alive(pid):
            break
        time.sleep(0.05)
    assert not alive(pid)
    toolchain.build(source("x0[i] + 1"))
    before = len(calls())
    assert "did not finish" in toolchain.build(source("x0[i] + 2")).reason
    assert len(calls()) == before  # its time is over


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"  # dead, and nobody's child
    return True


def test_compiler_that_hangs_on_version(tmp_path, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CC_TIMEOUT", "1")
    path = tmp_path / "cc"
    path.write_text("#!/bin/sh\nsleep 1000\n")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    assert "did not finish" in toolchain.build(DOUBLE).reason
    assert "did not finish" in toolchain.describe()


@needs_compiler
def test_invalid_timeout_is_ignored(monkeypatch):
    for text in ("soon", "0", "-1", "nan", "inf", ""):
        monkeypatch.setenv("DUOGRAPH_CC_TIMEOUT", text)
        assert compiler_process._timeout() == 60
    assert doubles(toolchain.build(DOUBLE))


def test_interrupt_stops_the_compiler(tmp_path):
    """Ctrl-C reaches this process alone: the compiler has a session of its own."""
    path = tmp_path / "cc"
    path.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exit 0;; esac\n'
        f'echo $$ > "{tmp_path}/pid"; sleep 1000\n'
    )
    path.chmod(0o755)
    # a shell lets what it starts in the background ignore interrupts
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from duograph_cpu import toolchain; toolchain.build('')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "CC": str(path)}, stderr=subprocess.PIPE
    )
    pid_file = tmp_path / "pid"
    for _ in range(6000):
        if pid_file.exists() and pid_file.read_text().strip():
            break
        time.sleep(0.05)
    pid = int(pid_file.read_text())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert b"KeyboardInterrupt" in err
    assert not alive(pid)


def test_an_interrupt_waits_until_the_process_is_known():
    """Otherwise a compiler that starts at that moment would run on."""
    found = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), compiler_process._interrupts_later():
            signal.raise_signal(signal.SIGINT)
            found.append("process")
        assert found == ["process"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupts_in_another_thread_change_no_handler():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run():
        with compiler_process._interrupts_later():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
