"""Tests of the conformance suite itself: comparison, finite differences, cases, reports."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest
from duograph import ops
from duograph.conformance import report
from duograph.conformance.case import Make, OpCase, Sample, unary
from duograph.conformance.cases import all_cases, families
from duograph.conformance.check import call_text, difference
from duograph.conformance.compare import difference_of
from duograph.conformance.gradient import Problem, against_differences
from duograph.conformance.oracle import on_oracle
from duograph.conformance.session import Session
from duograph.conformance.tolerance import EXACT, FORWARD, Tolerance, forward_tolerance
from duograph.dtype import ALL, STORAGE, bfloat16, float16, float32, float64
from duograph.op import OPS
from duograph.op_tables import rules_changed
from duograph.version import OWN

NEAR = Tolerance(1e-3, 1e-3)


@pytest.mark.parametrize(
    "got,want,words",
    [
        (np.float32([1, 2]), np.float32([1, 2.5]), r"first difference at \[1\] of \(2,\)"),
        (np.float32([1, 2]), np.float32([1, np.nan]), "computed  2.0\nexpected  nan"),
        (np.float32([1, np.inf]), np.float32([1, -np.inf]), "expected  -inf"),
        (np.float32([1, 1e38]), np.float32([1, np.inf]), "expected  inf"),
        (np.float32([1]), np.float64([1]), "dtypes differ"),
        (np.float32([1]), np.float32([[1]]), "shapes differ"),
        (np.int64([2**62]), np.int64([2**62 + 1]), "first difference"),
        (np.bool_([True]), np.bool_([False]), "first difference"),
    ],
)
def test_differences_are_found(got, want, words):
    text = difference(got, want, NEAR)
    assert text is not None
    assert re.search(words, text), text


@pytest.mark.parametrize(
    "got,want",
    [
        (np.float32([1, np.nan, np.inf]), np.float32([1.0005, np.nan, np.inf])),
        (np.float32([]), np.float32([])),
        (
            np.complex64([1 + 1j, complex(np.nan, 1)]),
            np.complex64([1 + 1.0001j, complex(1, np.nan)]),
        ),
        (np.float32(0.0), np.float32(-0.0)),
    ],
)
def test_equal_within_tolerance(got, want):
    assert difference(got, want, NEAR) is None


def test_integers_are_exact_whatever_the_tolerance():
    assert difference(np.int32([1000]), np.int32([1001]), Tolerance(1.0, 1.0)) is not None


def test_every_dtype_has_a_tolerance():
    """I09: Tolerance policy per dtype and op, published"""
    for dtype in ALL:
        found = forward_tolerance(dtype)
        assert (found is EXACT) == (dtype.kind in "biu"), dtype
    assert all(FORWARD[d].relative > np.finfo(d.np).eps for d in (float32, float64))


def test_a_wrong_rule_is_found_by_differences():
    """C38: Built-in finite-difference check usable on any rule"""
    case = next(c for c in all_cases() if c.name == "tanh")
    sample = case.made(float64)[0]
    op = OPS["tanh"]
    rule = op.bprop_rule
    with on_oracle():
        problem = Problem(case, sample)
        assert against_differences(problem, problem.gradients()) is None
        try:
            op.bprop_rule = lambda attributes: lambda x, out, dout: (dout * (1 - out),)
            rules_changed()
            problem = Problem(case, sample)
            text = against_differences(problem, problem.gradients())
        finally:
            op.bprop_rule = rule
            rules_changed()
    assert text is not None
    assert "first difference at [0, 0]" in text
    assert "by differences" in text


def test_a_wrong_second_derivative_is_found():
    case = OpCase(ops.exp, unary(-1, 1))
    with on_oracle():
        problem = Problem(case, case.made(float64)[0], order=2)
        found = problem.gradients()
        assert against_differences(problem, found) is None
        assert against_differences(problem, [found[0] * 1.01]) is not None


def test_samples_are_the_same_every_time():
    for case in all_cases()[::10]:
        for a, b in zip(case.made(float32), case.made(float32), strict=True):
            assert call_text(case, a) == call_text(case, b)


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_make(dtype):
    make = Make(dtype, "x")
    assert make(3, 4).dtype == dtype.np
    assert make(3, 4).shape == (3, 4)
    assert make().shape == ()
    assert make(0, 2).shape == (0, 2)
    strided = make.strided(4, 5)
    assert strided.shape == (4, 5)
    assert not strided.flags.c_contiguous
    if dtype.kind in "f":
        values = make(1000, low=-1, high=3).astype(np.float64)
        assert -1 <= values.min() < -0.8
        assert 2.8 < values.max() <= 3
        assert np.isnan(make.special(9).astype(np.float64)).any()


def test_a_sample_of_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="wanted one of normal, broadcast"):
        Sample((1,), kind="usual")
    with pytest.raises(ValueError, match="needs a reason"):
        OpCase(ops.exp, unary(), tol={float32: 1.0})


def test_cases_have_one_name_each():
    names = [n for family in families().values() for n in family]
    assert len(names) == len(set(names)) == len(all_cases())


# ---- reports
# ----------------------------------------------------------------------------------------


def record(check, case, dtype, outcome="passed", **more):
    base = {"check": check, "case": case, "dtype": dtype, "outcome": outcome, "seconds": 0.001}
    return {**base, "kinds": ["normal"], "on_host": 0, "message": "", **more}


class Run:
    name, title, plugin, dtypes = "Toy", "Toy, 1.0", "toy 1.0 (toy)", ALL
    figures = {"per call": "1.0 us"}
    finished = frozenset({"forward/exp/float32"})

    def __init__(self, *records):
        self.results = {
            "/".join(filter(None, (r["check"], r["case"], r["dtype"]))): r for r in records
        }

    def partial(self):
        return []


@pytest.fixture
def summary():
    return report.summarise(
        Run(
            record("forward", "exp", "float32"),
            record("gradient", "exp", "float32", "failed", message="exp: </script><b>wrong"),
            record("forward", "exp", "float16", on_host=3),
            record("forward", "exp", "int8", "unsupported"),
            record("errors", "exp", None),
            record("forward", "add", "bool", "expected failure"),
            record("forward", "add", "int8", "skipped"),
            record("every_op_has_a_case", None, None, "failed", message="none"),
            record("storage_casts_agree", None, "int4", "failed", message="int4: 7"),
            record("storage_shapes", None, "float8_e4m3fn"),
        )
    )


def test_the_worst_state_is_shown(summary):
    text = "\n".join(report.terminal(summary, colour=False))
    (row,) = re.findall(r"\bexp +(\S+)", text)
    cells = dict(zip(report.COLUMNS, row, strict=True))
    assert (cells["float32"], cells["float16"], cells["int8"], cells["bool"]) == (
        "✗",
        "h",
        "-",
        "·",
    )
    assert cells["errors"] == "■"
    assert "✗ every_op_has_a_case: failed" in text
    assert "3 failed  1 expected failure  1 unsupported  1 on the host  3 passed  1 skipped" in text
    assert "bronze: kernels 3 of 5 (declared gaps: 1; expected failures, which count as" in text
    assert max(map(len, text.splitlines())) <= 108


def test_levels(summary):
    assert summary.levels["bronze: kernels"] == (3, 1, 5)
    assert summary.levels["gold: training"] == (0, 0, 0)


def test_json_is_sorted_and_complete(summary, tmp_path):
    report.write_json(summary, str(tmp_path / "r.json"))
    found = json.loads((tmp_path / "r.json").read_text())
    assert list(found["results"]) == sorted(found["results"])
    assert found["format"] == report.FORMAT
    assert found["duograph"] == OWN
    assert found["totals"]["skipped"] == 1
    assert found["run"]["resumed"] == "1 of 10 results are from an earlier run"
    assert set(found["run"]) == {"finished", "system", "resumed"}


def test_the_page_is_safe_and_self_contained(summary, tmp_path):
    report.write_html(summary, str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert page.count("</script>") == 1
    assert "src=" not in page
    assert "@import" not in page


def test_the_page_has_a_matrix_of_storage_dtypes(summary, tmp_path):
    report.write_html(summary, str(tmp_path / "r.html"))
    data = json.loads(re.search(r"const data = (.*);\n", (tmp_path / "r.html").read_text())[1])
    group = data["groups"][-1]
    assert group["name"] == "storage dtypes"
    assert group["columns"] == [d.name for d in STORAGE]
    cells = {row["name"]: dict(zip(group["columns"], row["cells"], strict=True))
             for row in group["rows"]}  # fmt: skip
    ((name, found),) = cells["storage casts agree"]["int4"].items()
    assert (name, found[0], found[2]) == ("storage_casts_agree/int4", "failed", "int4: 7")
    assert cells["storage casts agree"]["float8_e4m3fn"] is None
    assert cells["storage shapes"]["float8_e4m3fn"] is not None
    assert [other["name"] for other in data["others"]] == ["every_op_has_a_case"]


# ---- which tests a run has -----------------------------------------------------------------------


def _pairs(session, which):
    return [(case.name, dtype) for case, dtype in which(session)[1]]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_shares_hold_every_case_once(parts):
    shares = [Session("CPU", True, share=(k, parts)).cases() for k in range(1, parts + 1)]
    found = [id(case) for share in shares for case in share]
    assert sorted(found) == sorted(map(id, all_cases()))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_shares_of_make_test_hold_every_case():
    """On a device whose ops are NumPy, and on one with the kernels of grids."""
    text = (pathlib.Path(__file__).parents[2] / "Makefile").read_text()
    shares = dict(re.findall(r"^SHARE_([\w-]+) \?= (\d+/\d+)$", text, re.M))
    assert [shares[d] for d in ("InnerRing", "Reference", "Template")] == ["1/3", "2/3", "3/3"]
    assert [shares[d] for d in ("OpenCL", "CUDA-emulated")] == ["1/2", "2/2"]


def test_a_sampled_run_has_every_check_of_every_case_and_every_dtype():
    full, sampled = Session("CPU", False), Session("CPU", False, sampled=True)
    assert _pairs(sampled, Session.forward) == _pairs(full, Session.forward)
    assert sampled.errors() == full.errors()
    for which in (Session.compiled, Session.gradient, Session.compiled_gradient):
        all_, some = set(_pairs(full, which)), set(_pairs(sampled, which))
        assert some < all_
        assert {name for name, _ in some} == {name for name, _ in all_}
        assert {dtype for _, dtype in some} == {dtype for _, dtype in all_}
    widest = {pair for pair in _pairs(full, Session.gradient) if pair[1] is float64}
    assert widest <= set(_pairs(sampled, Session.gradient)), "finite differences"


def test_a_sampled_quick_run_has_every_case_in_one_dtype():
    quick, sampled = Session("CPU", True), Session("CPU", True, sampled=True)
    all_, some = _pairs(quick, Session.forward), _pairs(sampled, Session.forward)
    assert [case for case, _ in sampled.forward()[1]] == list(all_cases())
    assert set(some) < set(all_)
    assert {dtype for _, dtype in some} == {dtype for _, dtype in all_}
    for which in (Session.gradient, Session.compiled_gradient, Session.errors):
        assert which(sampled) == which(quick)
    assert len(sampled.regions()[1]) * 2 == pytest.approx(len(quick.regions()[1]), abs=1)


# What two results of one element have, and the tolerance with which they are equal.
NEARLY = [
    ((1.0, 1.0), None, True),
    ((1.0, 1.0078125), None, False),  # neighbours in bfloat16
    ((1.0, 1.0078125), 2e-2, True),
    ((1.0, 1.5), 2e-2, False),
    ((np.nan, np.nan), None, True),
    ((np.nan, 1.0), 2e-2, False),
    ((np.inf, np.inf), 2e-2, True),
    ((0.0, -0.0), None, False),
    ((0.0, -0.0), 0, True),
]


@pytest.mark.parametrize("dtype", [bfloat16, float16, float32, float64], ids=str)
@pytest.mark.parametrize(("values", "near", "equal"), NEARLY, ids=str)
def test_results_are_compared_in_every_floating_dtype(values, near, equal, dtype):
    a, b = (np.array([v, 2.0]).astype(dtype.np) for v in values)
    assert (difference_of(a, b, "a and b", near) is None) == equal
