"""Command line: run a part of the outside matrix and print its counts and failing programs.

python tests/outside/report.py --kind list,dict --where outside --programs 3
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from outside.kinds import KINDS
from outside.matrix import all_cells, cells_of
from outside.parts import Cell, Config
from outside.places import source
from outside.worlds import Verdict, program, run


def main() -> None:
    """Run the cells that the arguments select."""
    arguments = _parser().parse_args()
    cells = [c for c in _table(arguments) if _selected(c, arguments)]
    if 0 < arguments.number < len(cells):
        cells = random.Random(arguments.seed).sample(cells, arguments.number)
    started = time.perf_counter()
    found = [(c, run(c)) for c in cells]
    seconds = time.perf_counter() - started
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for c, v in found:
        counts[c.kind.name, c.question.split(":")[0]][v.outcome] += 1
    if arguments.table:
        for (kind, question), n in counts.items():
            print(f"{kind:32} {question:14} {sum(n.values()):5}  {dict(n)}")
    bad = [(c, v) for c, v in found if not v.good]
    _clusters(bad)
    bad.sort(key=lambda pair: len(source(pair[0])))
    for c, v in bad[: arguments.programs]:
        print("=" * 90, f"{v.outcome} | {c}", program(c), f"-> {v.text}", sep="\n")
    total = collections.Counter(v.outcome for _, v in found)
    print(
        f"{len(cells)} cells, {len(bad)} fail: {dict(total)}, "
        f"{sum(v.fallback for _, v in found)} ran line by line, {seconds:.0f} s"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kind", "question", "change", "where", "location", "config", "outcome"):
        parser.add_argument(f"--{name}", default="", help="comma-separated; parts of names")
    parser.add_argument(
        "--plain", action="store_true", help="recompile O0 LAX, no gradient, global"
    )
    parser.add_argument("--number", type=int, default=0, help="a random choice of so many cells")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--programs", type=int, default=0, help="how many failing programs to print"
    )
    parser.add_argument("--table", action="store_true", help="counts per kind and question")
    return parser


def _table(arguments: argparse.Namespace) -> list[Cell]:
    if arguments.plain:
        config = Config("recompile", "O0", "LAX", "none")
        return [c for k in KINDS for c in all_cells(k, arguments.location or "global", config)]
    return [c for k in KINDS for c in cells_of(k)]


def _selected(cell: Cell, arguments: argparse.Namespace) -> bool:
    kinds = arguments.kind.split(",")
    if arguments.kind and cell.kind.name not in kinds:
        return False
    parts = {
        "question": cell.question, "change": cell.change.name, "where": cell.where,
        "location": cell.location, "config": str(cell.config),
    }  # fmt: skip
    return all(
        any(word in text for word in getattr(arguments, name).split(","))
        for name, text in parts.items()
    )


def _clusters(bad: list[tuple[Cell, Verdict]]) -> None:
    """Print the failing cells by outcome, kind and the beginning of the message."""
    clusters: collections.Counter[tuple[str, ...]] = collections.Counter()
    for c, v in bad:
        text = v.text.splitlines()[-1 if v.text.startswith("wanted") else 0] if v.text else ""
        message = re.sub(r"\d+(\.\d+)?", "N", text)[:90] if v.outcome == "crash" else ""
        clusters[v.outcome, c.kind.name, c.question.split(":")[0], message] += 1
    for key, n in clusters.most_common(60):
        print(f"{n:5}  {' | '.join(key)}")


if __name__ == "__main__":
    main()
