import sys, importlib, warnings, time, traceback, faulthandler
faulthandler.enable()
import harness, duograph as ms
ms.set_context(stale_captures='recompile')
import concurrent.futures
names = sys.argv[1:]
modes = list(harness.MODES)
n=bad=0
for m in ("functions","contexts","world","errors"):
    P = importlib.import_module("programs_"+m).PROGRAMS
    for k, src in P.items():
        if names and not any(x in f"{m}.{k}" for x in names): continue
        for mode in modes:
            n+=1
            try: d = harness.check(src, mode)
            except AssertionError as e: d = f"ASSERT {e}" if len(names)==0 else traceback.format_exc()
            except BaseException as e: d = f"HARNESS {type(e).__name__}: {e}" if not names else traceback.format_exc()
            if d:
                bad+=1
                print(f"### {m}.{k} [{mode}]\n   " + d[:900 if not names else 5000].replace("\n","\n   "), flush=True)
print(n, "cells", bad, "bad")
