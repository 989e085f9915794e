"""Every name of MindSpore can be imported with its parameters, or stands in a file that may shrink.

`missing/NAMESPACE.txt` lists what is not there yet, `signatures/NAMESPACE.txt` callables whose
parameters differ. A name that works must be deleted from them:
`python tests/names/report.py NAMESPACE --write` does that.
"""

from __future__ import annotations

import pytest
from names import name_list as names

LISTED = {n.path: n for n in names.listed()}
REMEDY = "run `python tests/names/report.py {} --write`"


@pytest.mark.parametrize("namespace", names.namespaces())
def test_names_can_be_imported(namespace: str) -> None:
    listed, missing = names.read("missing", namespace), names.missing_in(namespace)
    assert not missing - listed, "these names worked, and cannot be imported any more"
    assert not listed - missing, f"these names work now: {REMEDY.format(namespace)}"


@pytest.mark.parametrize("namespace", names.namespaces())
def test_parameters_are_the_same(namespace: str) -> None:
    listed, found = names.read("signatures", namespace), names.differing_in(namespace)
    worse = {path: text for path, text in found.items() if path not in listed}
    assert not worse, "the parameters of these differ from MindSpore's"
    assert not listed - set(found), f"these agree now: {REMEDY.format(namespace)}"


@pytest.mark.parametrize("ratchet", ["missing", "signatures"])
def test_files_belong_to_listed_namespaces(ratchet: str) -> None:
    files = {file.stem for file in (names.HERE / ratchet).glob("*.txt")}
    assert files <= set(names.namespaces())


@pytest.mark.parametrize(
    ("theirs", "ours", "same"),
    [
        ("(x, axis=0)", lambda x, axis=0: 0, True),
        ("(x, axis=0)", lambda x, axis=0, more=None: 0, True),
        ("(x, axis=0)", lambda x, axis=0, *, more: 0, False),
        ("(x, axis=0)", lambda x, axis=1: 0, False),
        ("(x, axis=0)", lambda x, dim=0: 0, False),
        ("(x, axis=0)", lambda axis, x=0: 0, False),
        ("(x, *, axis=0)", lambda x, axis=0: 0, False),
        ("(x, *, axis=0)", lambda x, *, axis=0: 0, True),
        ("(*args)", lambda x: 0, True),
        ("()", lambda x: 0, False),
        ("(x, **options)", lambda x: 0, False),
        ("(x, eps=1e-05)", lambda x, eps=0.00001: 0, True),
    ],
)
def test_comparison_of_parameters(
    theirs: str, ours: object, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "find", lambda path: ours)
    assert (names.difference(names.Name("space.name", 0, 0, theirs)) is None) == same
