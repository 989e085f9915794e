"""Tests of the conformance suite on third-party plugins: correct ones pass, wrong ones fail, and
lists of gaps are strict.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import duograph
import pytest

SUITE = [
    sys.executable,
    "-m",
    "pytest",
    "-p",
    "no:cacheprovider",
    "-q",
    "--pyargs",
]
WHOLE, OPS = "duograph.conformance", "duograph.conformance.test_ops"


def suite(site, *options, of=OPS):
    """Run the conformance suite on the backend Toy; return the exit code and the output.

    By default only one module is run, since collecting all takes its time.
    """
    done = site.command([*SUITE, of, "--device", "Toy", *options])
    return done.returncode, done.stdout + done.stderr


def test_correct_plugin_passes(site, device):
    """I01, I02, I15: the shipped suite runs by one command on an outsider's device, without any
    hardware
    """
    site.install("toy", device("Toy").replace(" or op.name in self.lacks", "").replace(
        "if op.is_composite:", "if op.is_composite or len(op.infer_types(types, attributes)) > 1:"
    ))  # fmt: skip
    code, said = suite(site, "-k", "[add-float32] or [exp-float32] or [gather-float32]", of=WHOLE)
    assert code == 0, said
    assert "conformance of Toy" in said
    assert "■ passed" in said


def test_wrong_kernel_is_reported(site, device):
    site.install(
        "toy",
        device("Toy").replace(
            "found = op.reference_rule(*op.arguments(arrays), **attributes)",
            "found = op.reference_rule(*op.arguments(arrays), **attributes) + (op.name == 'exp') / "
            "1000",
        ),
    )
    code, said = suite(site, "-k", "test_forward and [exp-float32]")
    assert code == 1
    assert "exp(float32[3, 4])  [normal]" in said
    assert "first difference at [0, 0], and 11 more of 12 elements" in said
    assert "computed  " in said
    assert "expected  " in said
    assert "|computed - expected| <= 2e-06 + 1e-05 * |expected|" in said


def test_unknown_device_stops_before_collection(site, device):
    site.install("toy", device("Toy"))
    done = site.command([*SUITE, WHOLE, "--device", "Tpy"])
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    said = done.stdout + done.stderr
    assert "--device: device_target: got 'Tpy'" in said
    assert "Toy" in said


def test_report_formats(site, device):
    """I10: Human report (op by dtype matrix) and machine JSON, comparable between releases"""
    site.install("toy", device("Toy", lacks=("exp",), fallback="on"))
    code, said = suite(
        site, "-k", "forward and ([exp-float32] or [exp-int32] or [add-float32])",
        "--conformance-html=r.html", "--conformance-json=r.json",
    )  # fmt: skip
    assert code == 0, said
    page = (site.folder / "r.html").read_text()
    assert "duograph conformance" in page
    assert "/*DATA*/null" not in page
    assert "http://" not in page
    assert "https://" not in page
    found = json.loads((site.folder / "r.json").read_text())
    assert found["device"] == "Toy"
    assert found["results"]["forward/exp/float32"]["on_host"] > 0
    assert found["results"]["forward/add/float32"]["outcome"] == "passed"
    assert found["totals"]["on the host"] >= 2


# ---- the two lists
# ----------------------------------------------------------------------------------


def listed(source: str, **lists: dict[str, str]) -> str:
    lines = "".join(f"\n    conformance_{name} = {entries!r}" for name, entries in lists.items())
    return source.replace("    lacks =", lines.lstrip("\n") + "\n    lacks =", 1)


def test_unsupported_must_be_refused(site, device):
    """I08: Declared capabilities and xfail lists.

    Strict xfail so newly passing cases are noticed
    """
    gaps = {"forward/exp/*": "there is no exponential here", "forward/gather/int8": "not at all"}
    site.install("toy", listed(device("Toy", lacks=("exp",)), unsupported=gaps))
    code, said = suite(site, "-k", "forward and ([exp-float32] or [gather-int8])")
    assert code == 1
    assert "gather-int8" in said  # it passes, so it is not unsupported
    assert "[XPASS(strict)] not at all" in said
    assert "1 unsupported" in said
    assert "1 failed" in said


def test_a_wrong_result_is_never_unsupported(site, device):
    source = device("Toy").replace("np.array(found, ", "np.array(np.asarray(found) * 2, ")
    site.install("toy", listed(source, unsupported={"forward/exp/float32": "it is far off"}))
    code, said = suite(site, "-k", "test_forward and [exp-float32]")
    assert code == 1, said


REFUSALS = {
    "the op is not supported": ("UnsupportedOpError", 0),
    "the device lacks the dtype": ("DeviceDTypeError", 0),
    "the op does not take the dtype": ("DTypeError", 1),
    "an argument": ("ArgumentValueError", 1),
    "a fault of the backend": ("BackendError", 1),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_only_a_refusal_is_unsupported(site, device, what):
    """A DTypeError of an op inside a decomposition is a fault, which no list can excuse."""
    error, status = REFUSALS[what]
    source = device("Toy").replace(
        "found = op.reference_rule",
        f"if op.name == 'exp':\n                import duograph\n                raise "
        f"duograph.errors.{error}('exp: no')\n            found = op.reference_rule",
    )
    assert "'exp: no'" in source
    site.install("toy", listed(source, unsupported={"forward/exp/float32": "it is not there"}))
    code, said = suite(site, "-k", "test_forward and [exp-float32]")
    assert code == status, said


def test_expected_failures_are_strict(site, device):
    """I08: Declared capabilities and xfail lists.

    Strict xfail so newly passing cases are noticed
    """
    gaps = {"forward/exp/*": "exp is on its way"}
    site.install("toy", listed(device("Toy", lacks=("exp",)), expected_failures=gaps))
    code, said = suite(site, "-k", "test_forward and [exp-float32]")
    assert code == 0, said
    assert "1 expected failure" in said
    (site.folder / "toy.py").write_text(listed(device("Toy"), expected_failures=gaps))
    code, said = suite(site, "-k", "test_forward and [exp-float32]")
    assert code == 1, "exp passes now and is still on the list"
    assert "[XPASS(strict)] exp is on its way" in said


def test_unmatched_gap_entry_warns(site, device):
    source = listed(device("Toy"), expected_failures={"forward/exq/*": "no such op"})
    site.install("toy", source)
    code, said = suite(site, "--collect-only", of=WHOLE)
    assert code == 0, said
    assert "'forward/exq/*' in its list of gaps matches no test" in said


def test_the_plugin_leaves_other_projects_alone(site):
    """Loaded in every pytest run of the environment, it takes no option name and imports no
    backend.
    """
    site.install("loud", "open('loaded', 'w').close()")
    (site.folder / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--device', default='theirs')\n"
        "    parser.addoption('--quick', action='store_true')\n"
    )
    (site.folder / "test_theirs.py").write_text(
        "def test_theirs(request):\n    assert request.config.getoption('--device') == 'mine'\n"
    )
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--device", "mine"]
    done = site.command(line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conformance" not in done.stdout
    assert not (site.folder / "loaded").exists()


def test_a_required_device_that_is_absent_stops_the_run(site, device):
    site.install("toy", device("Toy"))
    done = site.command([*SUITE, WHOLE, "--device", "Toy"], DUOGRAPH_REQUIRE="Toy,Abacus")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "got 'Abacus'" in done.stdout + done.stderr


def test_other_runs_of_pytest_do_not_import_duograph(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test(): assert 'duograph' not in sys.modules\n"
    )
    core = pathlib.Path(duograph.__file__).parents[1]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:duograph_conformance",
            "-p",
            "duograph_pytest",
            str(tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(core)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_chosen_dtypes(site, device):
    site.install("toy", device("Toy"))
    code, said = suite(
        site, "--quick", "--dtypes", "float16,complex64", "-k", "test_forward and [exp-"
    )
    assert code == 0, said
    assert "2 passed" in said
    code, said = suite(site, "--dtypes", "float17")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "--dtypes: " in said and "float17" in said


def test_a_share_of_the_cases(site, device):
    site.install("toy", device("Toy"))
    code, said = suite(site, "--quick", "--share", "2/700", "-k", "test_forward")
    assert code == 0, said
    assert re.search(r"\b[1-9] passed", said), said
    for wrong in ("3/2", "0/2", "half"):
        code, said = suite(site, "--share", wrong)
        assert code == pytest.ExitCode.USAGE_ERROR
        assert f"--share: got '{wrong}'; wanted K/N" in said
