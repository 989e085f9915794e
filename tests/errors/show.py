"""Prints error messages of the corpus of wrong programs: `python tests/errors/show.py [WORD]`.

With `--check` it prints only programs whose message has problems; `--judge SEED` prints only the
messages, in random order.
"""

from __future__ import annotations

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from errors.checks import problems
from errors.corpus import programs, run_all


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="part of the names of programs")
    parser.add_argument("--mode", choices=("eager", "graph"))
    parser.add_argument("--check", action="store_true", help="only programs with problems")
    parser.add_argument("--judge", type=int, metavar="SEED", help="messages alone, shuffled")
    options = parser.parse_args()
    chosen = programs(options.only)
    if options.judge is not None:
        random.Random(options.judge).shuffle(chosen)
    count = failed = 0
    for program, mode, outcome in run_all(chosen, options.mode):
        count += 1
        wrong = problems(program, outcome)
        failed += bool(wrong)
        if options.judge is not None:
            print(f"---- {count}\n{outcome.printed}")
        elif wrong or not options.check:
            print(f"==== {program.name} ({mode}): {program.fault}")
            print("".join(f"  ** {w}\n" for w in wrong) + outcome.printed)
    print(f"{count} messages, {failed} with problems")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
