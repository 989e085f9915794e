"""Tests of the suite's programs with known output and of its models: what they find and refuse."""

from __future__ import annotations

import dataclasses

import duograph as ms
import numpy as np
import pytest
from duograph.conformance import report, test_models, test_programs
from duograph.conformance.known_programs import KnownProgram
from duograph.conformance.models import MODELS

NET = """
    class Net(nn.Cell):
        def construct(self, x):
            {body}
            return x

    Net()(ms.Tensor([1.5, 2.0]))
"""
PRINTS = NET.format(body="print('x', x * 2)")
COMPILED = "x\nTensor(shape=[2], dtype=Float32, value=[ 3.00000000e+00  4.00000000e+00])"
# program, mode, and a pattern of the message with which the test fails; None: it passes
CHECKED = {
    "eager": (KnownProgram(PRINTS, "x [3. 4.]", COMPILED), "eager", None),
    "compiled": (KnownProgram(PRINTS, "x [3. 4.]", COMPILED), "O0", None),
    "eager text from compiled code": (KnownProgram(PRINTS, "x [3. 4.]"), "O0", "it printed"),
    "another number": (KnownProgram(PRINTS, "x [3. 5.]"), "eager", r"(?s)3. 4.*instead of.*3. 5"),
    "a rounded number": (KnownProgram("print(4.51)", "4.5099998", rounded=True), "eager", None),
    "an exact number": (KnownProgram("print(4.51)", "4.5099998"), "eager", "4.5099998"),
    "too large a difference": (KnownProgram("print(4.52)", "4.51", rounded=True), "O0", "4.52"),
    "one line too few": (KnownProgram("print(1)", "1\n1"), "eager", "instead of"),
    "one line too many": (KnownProgram("print(1, 2, sep='\\n')", "1"), "eager", "instead of"),
    "another order": (KnownProgram("print('b')\nprint('a')", "a\nb", rounded=True), "O2", "b\na"),
    "lines in place": (KnownProgram("print('a  b')", "a b"), "eager", "instead of"),
}


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_printed_is_compared(name, capsys):
    program, mode, pattern = CHECKED[name]
    if pattern is None:
        test_programs.check(name, program, mode, capsys)
    else:
        with pytest.raises(AssertionError, match=pattern):
            test_programs.check(name, program, mode, capsys)


@pytest.mark.parametrize("mode", test_programs.MODES)
def test_a_program_that_is_not_compiled_fails(mode, capsys):
    program = KnownProgram(NET.format(body="x = eval('x + 0')"), "")
    if mode == "eager":
        test_programs.check("eval", program, mode, capsys)
    else:
        with pytest.raises(RuntimeWarning, match="line by line"):
            test_programs.check("eval", program, mode, capsys)


def test_settings_are_restored(capsys):
    names = ("mode", "jit_level", "stale_captures")
    before = [ms.get_context(name) for name in names]
    source = "ms.set_context(mode=ms.GRAPH_MODE, jit_level='O1', stale_captures='error')"
    for mode in test_programs.MODES:
        test_programs.check("settings", KnownProgram(source, ""), mode, capsys)
        assert [ms.get_context(name) for name in names] == before


def test_levels_of_the_new_tests():
    """Training counts for gold, programs for silver."""
    for module, level in ((test_models, "gold: training"), (test_programs, "silver: gradients")):
        checks = [n.removeprefix("test_") for n in vars(module) if n.startswith("test_")]
        assert len(checks) == 3
        assert {report._level(check) for check in checks} == {level}


@pytest.mark.parametrize("name", MODELS)
def test_models_need_the_required_dtypes_alone(name):
    assert {str(a.dtype) for a in MODELS[name].data()} <= {"int32", "float32"}


def test_differences_of_training_are_found():
    right = test_models.Training([2.0, 1.0], {"w": np.ones(3)}, np.zeros((2, 2)), [0.5])
    test_models.check_near(right, dataclasses.replace(right, losses=[2.0, 1.00001]))
    test_models.check_falls(right, 0.5)
    for change in (
        {"losses": [2.0, 1.01]},
        {"losses": [2.0, np.nan]},
        {"state": {"w": np.array([1, 1, 1.01])}},
        {"logits": np.full((2, 2), 0.01)},
    ):
        with pytest.raises(AssertionError):
            test_models.check_near(dataclasses.replace(right, **change), right)
    with pytest.raises(AssertionError, match="did not fall"):
        test_models.check_falls(dataclasses.replace(right, later=[1.5]), 0.5)
    with pytest.raises(AssertionError, match="did not fall"):
        test_models.check_falls(dataclasses.replace(right, later=[np.nan]), 0.5)
