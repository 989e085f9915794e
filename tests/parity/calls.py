"""Make the same sampled calls with MindSpore and with duograph, and compare the outcomes.

    python tests/parity/calls.py --mindspore PYTHON             # names that packages use
    python tests/parity/calls.py --mindspore PYTHON --only mint.    # paths that begin with mint.
    python tests/parity/calls.py --report --show 20             # differences of the last run

The calls of a name are those of its docstring's examples, and variations of them (`sampling.py`).
Results are kept in build/parity; those of MindSpore are reused by later runs. `--every N` also
samples names that no package uses. Of values that differ between two equal calls of MindSpore, only
the form is compared.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parity.call_judging import AGREE, EXPECTED, LISTED, Difference, judge_call
from parity.given_seeds import given
from parity.listed_differences import Row, row_of, unneeded
from parity.run import FOLDER, NAMES, collected, forget, results, run_all
from parity.sampling import sampled, seeds_for

HERE = Path(__file__).resolve().parent
Call = dict[str, Any]
HEADS = ("ops", "Tensor", "nn", "mint", "numpy")


def names() -> list[tuple[str, int, str]]:
    """Return (path, number of packages that use it, signature) of the names to sample."""
    rows = [x.split("\t") for x in NAMES.read_text().splitlines() if x[:1] != "#"]
    return [(r[0], int(r[1]), r[3]) for r in rows if r[0].split(".")[0] in HEADS]


def recorded(python: str | None, jobs: int) -> dict[str, list[Call]]:
    """Return the calls that docstring examples make, by path.

    MindSpore runs the examples only once.
    """
    file = FOLDER / "recorded.jsonl"
    if python:
        examples = [e for e in collected(python) if e["path"].split(".")[0] in HEADS]
        run_all(examples, [python, str(HERE / "harvest.py")], file, jobs, 30)
    return {path: calls or [] for path, calls in results(file).items()}


def all_calls(seeds: dict[str, list[Call]], used: int, rest: int) -> list[Call]:
    """Return the sampled calls: `used` per name that packages use, `rest` per other name."""
    found = []
    for name, packages, signature in names():
        most = used if packages >= 3 else rest
        valid = (seeds_for(name, seeds) or given(name)) if most else []
        if valid:
            group = "in use" if packages >= 3 else "others"
            for call in sampled(name, signature, valid, most):
                found.append({**call, "group": group})
    return found


def judged(
    calls: list[Call], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, list[Difference]], set[Row]]:
    """Return the differences of every call, the worst first, and the rows of listed ones.

    A difference that `listed_differences` has comes last, with the kind "listed".
    """
    verdicts, needed = {}, set()
    for call in calls:
        if call["id"] not in theirs or call["id"] not in ours:
            continue
        found, listed = [], []
        for difference in judge_call(call, ours[call["id"]], theirs[call["id"]]):
            row = row_of(call, difference)
            if row is None:
                found.append(difference)
            else:
                needed.add(row)
                listed.append(Difference(LISTED, difference.mode, row.reason))
        verdicts[call["id"]] = found + listed
    return verdicts, needed


def table(calls: list[Call], verdicts: dict[str, list[Difference]]) -> None:
    """Print how many calls agree, by group and by kind of change."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for call in calls:
        if call["id"] in verdicts:
            worst = verdicts[call["id"]][0].kind if verdicts[call["id"]] else AGREE
            for key in ((call["group"], call["sort"]), (call["group"], "all")):
                counts[key][worst] += 1
    kinds = sorted({k for row in counts.values() for k in row}, key=lambda k: (k != AGREE, k))
    print(f"{'':24}" + "".join(f"{k:>14}" for k in kinds) + f"{'share':>10}")
    for key in sorted(counts):
        row = counts[key]
        total = sum(row.values())
        share = 100 * (row[AGREE] + sum(row[k] for k in EXPECTED)) / total
        print(f"{' '.join(key):24}" + "".join(f"{row[k]:14}" for k in kinds) + f"{share:8.1f} %")


def shown(calls: list[Call], verdicts: dict[str, list[Difference]], most: int, kind: str) -> None:
    """Print up to `most` groups of differences, grouped by kind and name."""
    groups: dict[tuple[str, str], list[tuple[Call, Difference]]] = collections.defaultdict(list)
    for call in calls:
        for difference in verdicts.get(call["id"], [])[:1]:
            if difference.kind not in EXPECTED or kind == difference.kind:
                groups[difference.kind, call["path"]].append((call, difference))
    order = sorted(groups, key=lambda g: (g[0], -len(groups[g])))
    for key in [k for k in order if kind in k[0]][:most]:
        print(f"\n=== {key[0]}: {key[1]} ({len(groups[key])})")
        for call, difference in groups[key][:4]:
            print(f"  {call['id'].rpartition('#')[2]:>3} {call['what'][:60]:60} {difference.text}")


def main() -> None:
    """Run the actions that the command line selects."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mindspore", metavar="PYTHON", help="a Python that has MindSpore")
    parser.add_argument("--only", default="", metavar="PREFIX", help="paths that begin so")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--most", type=int, default=30, help="calls of a name in use")
    parser.add_argument("--rest", type=int, default=6, help="calls of any other name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="names with differences")
    parser.add_argument("--kind", default="", help="show differences of this kind alone")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    seeds = recorded(None if options.report else options.mindspore, options.jobs)
    calls = all_calls(seeds, options.most, options.rest)
    calls = [c for c in calls if c["path"].startswith(options.only)]
    theirs_file, ours_file = FOLDER / "calls_mindspore.jsonl", FOLDER / "calls_duograph.jsonl"
    worker = str(HERE / "call_worker.py")
    if not options.report:
        if options.mindspore:
            command = [options.mindspore, worker, "serve"]
            run_all(calls, command, theirs_file, options.jobs, 30, "id")
        forget(ours_file, {c["id"] for c in calls})
        command = [sys.executable, worker, "serve", "duograph"]
        run_all(calls, command, ours_file, options.jobs, 30, "id")
    theirs, ours = results(theirs_file), results(ours_file)
    verdicts, needed = judged(calls, ours, theirs)
    table(calls, verdicts)
    shown(calls, verdicts, options.show, options.kind)
    if not options.only:
        for row in unneeded(needed):
            print(f"listed, but no call needs it: {row.kind} of {row.paths}: {row.reason}")


if __name__ == "__main__":
    main()
