"""Print which of MindSpore's names duograph has, and what is missing, most used first.

    python tests/names/report.py                  # coverage of all namespaces, 40 missing names
    python tests/names/report.py mint.nn          # everything below one namespace
    python tests/names/report.py nn --signatures  # the parameters that differ
    python tests/names/report.py mint --write     # delete what works now from the ratchet files

`--write` never adds a line: a name that stopped to work is a fault, which the tests report.
`--write --all` does, for a new list of names.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from names import name_list as names


def coverage(chosen: list[names.Name], missing: set[str]) -> None:
    """Print names there are, all names, and their share, for each namespace."""
    groups: dict[str, list[names.Name]] = collections.defaultdict(list)
    for name in chosen:
        groups[name.parent].append(name)
    # a deep namespace with few names is counted with its parent
    table: collections.Counter[str] = collections.Counter()
    have: collections.Counter[str] = collections.Counter()
    for parent, members in groups.items():
        key = (
            parent
            if len(members) >= 5
            else names.TOP
            if "." not in parent
            else members[0].namespace
        )
        table[key] += len(members)
        have[key] += sum(name.path not in missing for name in members)
    for key in sorted(table, key=lambda k: have[k] - table[k]):
        print(f"{have[key]:6} of {table[key]:5}  {100 * have[key] / table[key]:5.1f} %  {key}")
    done, total = sum(have.values()), max(sum(table.values()), 1)
    uses = sum(n.uses for n in chosen)
    used = sum(n.uses for n in chosen if n.path not in missing)
    by_use = f"by use {100 * used / max(uses, 1):.2f} %"
    print(f"{done:6} of {total:5}  {100 * done / total:5.1f} %  in all; {by_use}")


def main() -> None:
    """Read the command line and print, or write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "namespace", nargs="?", default="", help="such as ops, mint.nn or dataset.vision"
    )
    parser.add_argument("--signatures", action="store_true", help="list parameters that differ")
    parser.add_argument("--write", action="store_true", help="update the ratchet files")
    parser.add_argument("--all", action="store_true", help="with --write: add lines as well")
    parser.add_argument("-n", type=int, default=0, help="how many names to print")
    options = parser.parse_args()
    prefix = options.namespace
    chosen = [n for n in names.listed() if not prefix or f"{n.parent}.".startswith(f"{prefix}.")]
    spaces = sorted({n.namespace for n in chosen})
    if options.write:
        for space in spaces:
            for ratchet, now in (
                ("missing", names.missing_in(space)),
                ("signatures", set(names.differing_in(space))),
            ):
                names.write(
                    ratchet, space, now if options.all else now & names.read(ratchet, space)
                )
        return
    if options.signatures:
        for space in spaces:
            for path, text in names.differing_in(space).items():
                if path in {n.path for n in chosen}:
                    print(f"{path}: {text}")
        return
    missing = {n.path for n in chosen if not names.exists(n.path)}
    refused = [n.path for n in chosen if n.path not in missing and names.refuses(n.path)]
    coverage(chosen, missing)
    share = 100 * len(refused) / max(len(chosen), 1)
    print(f"{len(refused)} of them refuse to be used ({share:.1f} %)")
    rest = sorted(
        (n for n in chosen if n.path in missing), key=lambda n: (-n.packages, -n.uses, n.path)
    )
    print("\nmissing, by use (packages, uses):")
    for name in rest[: options.n or (None if prefix else 40)]:
        print(f"{name.packages:4} {name.uses:6}  {name.path}{name.signature}")


if __name__ == "__main__":
    main()
