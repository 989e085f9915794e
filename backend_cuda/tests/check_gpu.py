"""Check the CUDA backend on a machine with an NVIDIA GPU, in steps that need no network.

Usage: check_gpu.py [--steps smoke,kernels,...] [--out FOLDER] [--processes N]

Each step is one command of the interpreter that runs this script. It has a time limit of ten
minutes at most, and its output is kept in FOLDER/<step>.log as it is printed; FOLDER/summary.txt
gets a line for each step. A step that fails does not stop the next one. The step conformance-full
stands for the parts into which the whole suite is divided. The interpreter needs duograph, pytest
and, for several processes, pytest-xdist.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

from duograph.backend import registry

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parents[1]
KERNEL_TESTS = [
    str(TESTS / f"test_{name}.py")
    for name in ("kernels", "packs", "attention", "cross_entropy", "mixed_precision", "program")
]
# A handful of kernels: compute-sanitizer makes each of them ten to a hundred times slower.
SANITIZED = [
    str(TESTS / "test_kernels.py"),
    str(TESTS / "test_attention.py"),
    "-k",
    "(test_matmul and float16 and 17-129) or (test_nan and 2147483647) "
    "or (test_convolutions and 3x3 and float32) "
    "or test_softmax_of_rows or test_layer_norm or test_scatter_add or ragged",
]


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of the check.

    Attributes:
        arguments: of the Python interpreter.
        seconds: the time limit.
        before: words before the interpreter, such as a tool that runs it.
        environment: variables that are set for the command.
        parallel: whether pytest runs the tests in several processes.
    """

    arguments: list[str]
    seconds: int
    before: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    parallel: bool = False


ON_GPU = ("DUOGRAPH_CUDA_DEVICE", "GPU")
# pytest-benchmark, where it is installed, warns in several processes, and a warning is an error
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", "-q"]
CONFORMANCE = [*PYTEST, "--pyargs", "duograph.conformance", "--device", "GPU"]
# Parts of the whole conformance suite, each a step of its own, and the name for all of them.
PARTS, WHOLE = 6, "conformance-full"


def _sanitize(tool: str) -> Step:
    before = ("compute-sanitizer", "--target-processes", "all", "--error-exitcode", "1")
    return Step([*PYTEST, *SANITIZED], 240, (*before, "--tool", tool), (ON_GPU,))


def _part(number: int) -> Step:
    """Return the step of one part of the conformance suite; see `part_of_tests`."""
    environment = (("PYTHONPATH", str(TESTS)), ("TESTS_PART", f"{number}/{PARTS}"))
    arguments = [*CONFORMANCE, "-p", "part_of_tests"]
    return Step(arguments, 590, environment=environment, parallel=True)


STEPS = {
    "devices": Step(["-m", "duograph.cli", "devices"], 60),
    "smoke": Step([str(TESTS / "smoke.py")], 120),
    "kernels": Step([*PYTEST, *KERNEL_TESTS], 300, environment=(ON_GPU,), parallel=True),
    "kernels-without-libraries": Step(
        [*PYTEST, *KERNEL_TESTS[:3]],
        300,
        environment=(ON_GPU, ("DUOGRAPH_CUDA_CUBLASLT", "0"), ("DUOGRAPH_CUDA_CUDNN", "0")),
        parallel=True,
    ),
    "conformance": Step([*CONFORMANCE, "--quick"], 590, parallel=True),
    "training": Step(
        [*PYTEST, str(ROOT / "tests/devices"), "-k", "GPU"],
        300,
        environment=(("DUOGRAPH_REQUIRE", "gpu"),),
        parallel=True,
    ),
    **{tool: _sanitize(tool) for tool in ("memcheck", "racecheck", "synccheck", "initcheck")},
    **{f"{WHOLE}-{number}": _part(number) for number in range(1, PARTS + 1)},
}
DEFAULT = [name for name in STEPS if not name.startswith(WHOLE)]


def environment_of(step: Step) -> dict[str, str]:
    """Return the variables of a step's command: those of this process, and the step's own.

    Folders on PYTHONPATH are added to those of this process, in which duograph may be.
    """
    found = dict(os.environ)
    for key, value in step.environment:
        known = found.get(key) if key == "PYTHONPATH" else None
        found[key] = os.pathsep.join([value, known]) if known else value
    return found


def run(name: str, out: pathlib.Path, processes: int) -> bool:
    """Run a step; print its last lines and its time; return whether it succeeded."""
    step = STEPS[name]
    if step.before and shutil.which(step.before[0]) is None:
        _say(f"{name}: NOT RUN, {step.before[0]} is not installed", out)
        return False
    several = ["-n", str(processes)] if step.parallel and processes > 1 else []
    command = [*step.before, sys.executable, *step.arguments, *several]
    start = time.perf_counter()
    log = out / f"{name}.log"
    with log.open("wb") as file:
        try:
            code: int | str = subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment_of(step),
                timeout=step.seconds,
                cwd=ROOT,
            ).returncode
        except subprocess.TimeoutExpired:
            code = f"stopped after {step.seconds} s"
    lines = log.read_text(errors="replace").splitlines()
    outcome = "passed" if code == 0 else f"FAILED ({code})"
    _say(f"{name}: {outcome} in {time.perf_counter() - start:.0f} s", out)
    for line in lines[-(12 if code == 0 else 40) :]:
        print(f"    {line[:240]}")
    return code == 0


def _say(line: str, out: pathlib.Path) -> None:
    """Print a line and append it to the summary."""
    print(line, flush=True)
    with (out / "summary.txt").open("a") as file:
        file.write(line + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the steps of the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--steps", default=",".join(DEFAULT), help="names, with commas between")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/check-gpu"))
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    given = parser.parse_args(arguments)
    whole = [name for name in STEPS if name.startswith(WHOLE)]
    names = [n for name in given.steps.split(",") for n in (whole if name == WHOLE else [name])]
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        parser.error(f"no step {', '.join(unknown)}; there are {', '.join([*STEPS, WHOLE])}")
    problem = registry.problem_of(registry.entries()["GPU"])
    if problem is not None:  # the tests of kernels would leave themselves out, and pass
        print(f"check_gpu: this needs an NVIDIA GPU, and nothing was run: {problem}")
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    return 0 if all([run(name, given.out, given.processes) for name in names]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
