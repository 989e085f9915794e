"""The process of one framework, which prepares and times cases on request.

Usage: worker.py SIDE THREADS, with SIDE a module of `sides`, or `workloads.` and one of its
    modules.

It reads one JSON request per line and answers with one JSON line. Separate processes keep the
thread pools of the frameworks apart.
"""

import contextlib
import importlib
import json
import os
import re
import sys
import time
import traceback


def main() -> None:
    side, threads = sys.argv[1], int(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    # Redirect the output of the framework to stderr; stdout is for answers.
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


memory: dict[str, int] = {}


def resident(what: str) -> int:
    """Return a memory figure of this process in bytes, such as VmRSS, on Linux; 0 elsewhere."""
    try:
        with open("/proc/self/status") as status:
            return int(re.search(what + r":\s+(\d+) kB", status.read())[1]) * 1024
    except OSError:
        return 0


def forget_peak() -> None:
    """Reset the peak memory of this process to its present memory."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")


def handle(side, cases, what, case=None, n=0, path=None):
    if what == "prepare":
        cases.clear()  # one case at a time: the large ones hold 200 MB
        table = importlib.import_module(side if "." in side else f"sides.{side}").CASES
        import numpy as np

        memory["import"] = resident("VmRSS")
        forget_peak()
        begin = time.perf_counter()
        cases[case] = table[case]()
        np.savez(path, *cases[case].values())
        memory["first"] = resident("VmHWM")
        forget_peak()
        return {"seconds": time.perf_counter() - begin, **cases[case].notes}
    if what == "memory":  # the highest level above that after the import: of all, and once it ran
        steps = resident("VmHWM") - memory["import"]
        return {"all": max(steps, memory["first"] - memory["import"]), "steps": steps}
    if what == "run":
        return {"seconds": cases[case].run(n)}
    raise ValueError(what)


if __name__ == "__main__":
    main()
