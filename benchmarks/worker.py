"""One framework in a process of its own, which prepares and times cases when it is asked to.

Usage: worker.py SIDE THREADS, with SIDE a module of `sides`. Reads one JSON request a line and
answers each with one JSON line. One process a framework keeps their thread pools apart.
"""

import importlib
import json
import os
import sys
import traceback


def main() -> None:
    side, threads = sys.argv[1], int(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    # What a framework prints goes to stderr: the answers own stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    cases: dict[str, object] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handle(side, cases, **request)
        except Exception as error:  # noqa: BLE001 - a case that fails is a row of the table
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def handle(side, cases, what, case=None, n=0, path=None):
    if what == "prepare":
        cases.clear()  # one case at a time: the large ones hold 200 MB
        cases[case] = importlib.import_module(f"sides.{side}").CASES[case]()
        import numpy as np

        np.savez(path, *cases[case].values())
        return {}
    if what == "run":
        return {"seconds": cases[case].run(n)}
    raise ValueError(what)


if __name__ == "__main__":
    main()
