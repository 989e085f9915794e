"""Runs many random programs both compiled and eagerly, in several processes.

`make fuzz` runs its command line; `test_parity` runs a few of the same programs. Program number `i`
of a seed is always the same program, so that its name, such as ``1/250``, suffices to repeat a
failure. Therefore nothing here may depend on which programs ran before.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection, wait

from .. import context
from .._cores import cores
from ..backend import registry
from ..dtype import ALL
from ..placement import device_of
from . import random_aliases, random_programs, random_sizes
from .program_runs import Program, disagreement, is_refused, observe

__all__ = ["KINDS", "Choices", "absent_dtypes", "allowed_refusals", "run", "shrunk", "verdict"]

# Programs that a process runs before another one replaces it: a process keeps compiled kernels.
CHUNK = 500
# Every such chunk runs in debug mode, which checks graphs and rules and takes a quarter longer.
DEBUG_EVERY = 8
# Replays of one failing program while it is made smaller.
REPLAYS = 400
# Seconds after which one program counts as hanging; the machine may be busy.
PATIENCE = 600.0
# Generated code may sum in another order from level O1 on.
ROUNDING = 1e-4


# What draws a program of each kind from choices.
KINDS: dict[str, Callable[[Callable[[int], int]], Program]] = {
    "programs": random_programs.program,
    "aliases": random_aliases.program,
    "sizes": random_sizes.program,
}
# The decorator of a helper that is compiled on its own, and a write in place to a Tensor.
_COMPILED_HELPER = re.compile(r"^@jit\n(?=def helper)", re.MULTILINE)
_WRITE_IN_PLACE = re.compile(r"^ +\w+\[.*\] = ", re.MULTILINE)


class Choices:
    """A source of the decisions of one random program, which also records them.

    Args:
        numbers: recorded decisions to repeat, each modulo the number of options; when they are used
            up, every further decision is 0.
        rng: random generator that makes the decisions if `numbers` is None.
    """

    def __init__(
        self, numbers: Sequence[int] | None = None, rng: random.Random | None = None
    ) -> None:
        self._given = numbers
        self._rng = rng
        self.made: list[int] = []

    def __call__(self, options: int) -> int:
        """Return the next decision: a number from 0 to `options` - 1."""
        at = len(self.made)
        if self._given is None:
            assert self._rng is not None
            choice = self._rng.randrange(options)
        else:
            choice = self._given[at] % options if at < len(self._given) else 0
        self.made.append(choice)
        return choice

    @classmethod
    def of(cls, seed: int, number: int) -> Choices:
        """Return the source of decisions for program `number` of a seed, the same at each call."""
        return cls(rng=random.Random(f"{seed}/{number}"))


@dataclasses.dataclass
class Finding:
    """A program whose compiled and eager runs differ, or that crashed or hung its process.

    Attributes:
        name: seed and number of the program, such as ``1/250``.
        text: what differs, or how the process ended.
        program: the smallest program that was found to fail, as text with its inputs; "" if
            unknown.
    """

    name: str
    text: str
    program: str = ""

    def __str__(self) -> str:
        return f"program {self.name}: {self.text}\n{self.program}"


def verdict(program: Program, level: str, absent: Iterable[str] = ()) -> str:
    """Run a program eagerly and compiled; return "agrees", "refused", "left out" or a difference.

    A program is refused if the compiler raises an error that the program allows.

    Args:
        program: the program.
        level: the jit level (amount of optimisation) of the compiled run. At O0 the results must
            agree bit for bit, unless the program is marked `rounded`.
        absent: names of dtypes that the device lacks; programs that use one are left out.
    """
    if any(re.search(rf"\b{name}\b", program.source) for name in absent):
        return "left out"
    want = observe(program, "eager")
    got = observe(program, program.mode, level)
    if is_refused(program, got):
        return "refused"
    near, rounded = program.near, program.rounded
    if level != "O0":
        near, rounded = max(near, ROUNDING), True
    text = disagreement(want, got, near, rounded)
    inlined = _COMPILED_HELPER.sub("", program.source)
    if text is not None and inlined != program.source and _WRITE_IN_PLACE.search(program.source):
        # A call of a compiled helper returns a new Tensor where Python returns one of the
        # arguments, chosen by a condition on a Tensor (docs/compile.md); a later write shows it.
        return verdict(dataclasses.replace(program, source=inlined), level)
    return text or "agrees"


def allowed_refusals(count: int, kind: str = "programs") -> int:
    """Return how many of `count` programs the compiler may refuse before a test must fail."""
    return 5 + int(count * {"aliases": 2 / 3, "sizes": 1 / 4}.get(kind, 1 / 10))


def is_failure(text: str) -> bool:
    """Return whether a result of `verdict` describes a difference."""
    return text not in ("agrees", "refused", "left out")


def described(program: Program) -> str:
    """Return the text of a program with its inputs, for the report of a failure."""
    calls = program.series or (program.inputs, program.again)
    return f"inputs: {', then '.join(str([a.tolist() for a in xs]) for xs in calls)}\n{program}"


def shrunk(
    numbers: Sequence[int],
    fails: Callable[[Program], bool],
    replays: int = REPLAYS,
    kind: str = "programs",
) -> Program:
    """Return a small failing program, found by omitting decisions of a larger one or making them 0.

    Args:
        numbers: the decisions of a failing program.
        fails: function that returns whether a program fails.
        replays: largest number of programs to try.
        kind: which generator made the program from the decisions, a key of `KINDS`.
    """
    random_program = KINDS[kind]
    best = list(numbers)
    size = max(1, len(best) // 2)
    while size:
        at = 0
        while at < len(best):
            part = best[at : at + size]
            for shorter in ([], [0] * len(part)):
                tried = best[:at] + shorter + best[at + size :]
                if tried == best:
                    continue
                replays -= 1
                if replays < 0:
                    return random_program(Choices(best))
                if fails(random_program(Choices(tried))):
                    best = tried
                    break
            else:
                at += size
        size //= 2
    return random_program(Choices(best))


def examine(
    seed: int, number: int, level: str, absent: Sequence[str], kind: str = "programs"
) -> tuple[str, str]:
    """Run program `number` of a seed; return (verdict, text of a failing program or "").

    If the program fails, a smaller failing program is searched for; both results are about it.
    """
    choices = Choices.of(seed, number)
    text = verdict(KINDS[kind](choices), level, absent)
    if not is_failure(text):
        return text, ""
    small = shrunk(choices.made, lambda p: is_failure(verdict(p, level, absent)), kind=kind)
    return verdict(small, level, absent), described(small)


def run(
    seed: int, numbers: Iterable[int], level: str, absent: Sequence[str], kind: str = "programs"
) -> tuple[Counter[str], str]:
    """Run the programs of a seed with these `numbers` in this process, up to the first failure.

    Returns:
        How often each verdict occurred, and the report of the failure or "".
    """
    seen: Counter[str] = Counter()
    for number in numbers:
        text, small = examine(seed, number, level, absent, kind)
        if is_failure(text):
            return seen, str(Finding(f"{seed}/{number}", text, small))
        seen[text] += 1
    return seen, ""


# ---- several processes --------------------------------------------------------------------------


def _work(options: argparse.Namespace, numbers: Sequence[int], out: Connection) -> None:
    """Run the programs with these numbers in a worker process; send each verdict through `out`.

    A message (number, None, "") announces a program, (number, verdict, smaller program) follows it,
    and None ends the series.
    """
    debug = numbers[0] // CHUNK % DEBUG_EVERY == 0
    device = device_of(options.device)
    context.set_context(device_target=device.name, device_id=device.index, debug=debug)
    absent = absent_dtypes(device.name)
    # what importing made never becomes garbage; the cycles of programs are few
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    for number in numbers:
        out.send((number, None, ""))
        text, small = examine(options.seed, number, options.level, absent, options.kind)
        out.send((number, text, small))
    out.send(None)
    out.close()


def absent_dtypes(device: str) -> list[str]:
    """Return the names of the dtypes that a device lacks."""
    has = registry.backend(device).dtypes
    return [d.name for d in ALL if d not in has]


class _Worker:
    """The parent's record of a worker process, which runs one chunk of programs."""

    def __init__(self, options: argparse.Namespace, numbers: Sequence[int]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.inbox, sender = spawn.Pipe(duplex=False)
        self.process = spawn.Process(target=_work, args=(options, numbers, sender))
        self.process.start()
        sender.close()
        self.left = list(numbers)
        self.heard = time.monotonic()

    def stop(self, text: str) -> Finding:
        """Kill a worker that hangs or crashed; return a finding about its current program.

        `text` says what happened. The program is removed from those left to run.
        """
        self.process.kill()
        self.process.join()
        return Finding(str(self.left.pop(0)), text)


class _Campaign:
    """One run of the command: it starts processes, prints progress, and collects findings."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.seen: Counter[str] = Counter()
        self.findings: list[Finding] = []
        first, count = options.first, options.count
        ends = range(first - first % CHUNK, first + count, CHUNK)
        self.chunks = [list(range(max(first, at), min(first + count, at + CHUNK))) for at in ends]
        self.began = self.reported = time.monotonic()

    def go(self) -> None:
        """Run all programs and print the findings."""
        workers: list[_Worker] = []
        self.chunks.reverse()
        while self.chunks or workers:
            while self.chunks and len(workers) < self.options.jobs:
                workers.append(_Worker(self.options, self.chunks.pop()))
            ready = wait([w.inbox for w in workers], 10.0)
            for worker in list(workers):
                if worker.inbox in ready:
                    ended = self._hear(worker)
                elif time.monotonic() - worker.heard > PATIENCE:
                    ended = self._break(worker, f"hangs: nothing for {PATIENCE:.0f} s")
                else:
                    continue
                if ended:
                    worker.process.join()
                    workers.remove(worker)
            if time.monotonic() - self.reported > self.options.every:
                self.report("so far")

    def _hear(self, worker: _Worker) -> bool:
        """Handle one message of a worker process; return whether the worker has finished."""
        worker.heard = time.monotonic()
        try:
            message = worker.inbox.recv()
        except EOFError:
            worker.process.join()
            return self._break(worker, f"the process ended with code {worker.process.exitcode}")
        if message is None:
            return True
        number, text, small = message
        if text is None:
            return False
        worker.left.remove(number)
        if is_failure(text):
            self._found(Finding(f"{self.options.seed}/{number}", text, small))
        else:
            self.seen[text] += 1
        return False

    def _break(self, worker: _Worker, text: str) -> bool:
        """Record that a program crashed or hung its worker; return True, as the worker has ended.

        `text` says what happened. The programs that the worker had not yet run are queued for
        another one.
        """
        finding = worker.stop(text)
        finding.name = f"{self.options.seed}/{finding.name}"
        self._found(finding)
        if worker.left:
            self.chunks.append(worker.left)
        return True

    def _found(self, finding: Finding) -> None:
        self.findings.append(finding)
        say(f"{finding}\n")

    def report(self, when: str) -> None:
        """Print one line: the text `when`, then how many programs so far had each outcome."""
        self.reported = time.monotonic()
        seconds = self.reported - self.began
        done = sum(self.seen.values()) + len(self.findings)
        parts = [f"{n} {text}" for text, n in sorted(self.seen.items())]
        say(
            f"{when}: {done} programs of seed {self.options.seed} on {self.options.device} at "
            f"{self.options.level}: {', '.join([*parts, f'{len(self.findings)} fail'])}; "
            f"{seconds:.0f} s, {done / max(seconds, 1e-9):.1f} a second"
        )


def say(text: str) -> None:
    """Print a line of text and flush the output, so that a pipe receives it immediately."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a program fails, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m duograph.conformance.fuzz", description=__doc__
    )
    parser.add_argument("-n", "--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--device", default="CPU", help="device to run both ways on")
    parser.add_argument("--seed", type=int, default=0, help="selects other programs")
    parser.add_argument("--kind", choices=tuple(KINDS), default="programs", help="of programs")
    parser.add_argument("--level", choices=("O0", "O1", "O2"), default="O0", help="jit level")
    parser.add_argument("--jobs", type=int, default=cores(), help="number of processes")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between progress lines")
    options = parser.parse_args(arguments)
    campaign = _Campaign(options)
    campaign.go()
    campaign.report("done")
    names = ", ".join(f.name for f in campaign.findings)
    if names:
        say(f"failing programs: {names}; repeat SEED/NUMBER with --seed SEED --first NUMBER -n 1")
    refused = campaign.seen["refused"]
    too_many = refused > allowed_refusals(options.count, options.kind)
    if too_many:
        say(f"{refused} of {options.count} programs were refused, which is too many")
    return int(bool(names) or too_many)


if __name__ == "__main__":
    sys.exit(main())
