"""The command that runs random programs: its numbering, its shrinking, and its processes."""

from __future__ import annotations

import re

import pytest
from conformance.stand_in import works
from duograph.conformance import fuzz
from duograph.conformance.program_templates import HEAD
from duograph.conformance.random_programs import program


def _numbers(seed, number):
    choices = fuzz.Choices.of(seed, number)
    return str(program(choices)), choices.made


def test_a_number_is_always_the_same_program():
    first = _numbers(1, 7)
    assert _numbers(1, 7) == first
    assert len({_numbers(s, n)[0] for s in (1, 2) for n in range(5)}) == 10


def test_recorded_choices_repeat_a_program():
    text, made = _numbers(1, 7)
    assert str(program(fuzz.Choices(made))) == text
    assert program(fuzz.Choices([])).source  # without choices, all are 0


@pytest.mark.parametrize("feature", ["while", "lambda", "ms.grad", "print", "Tensor(0)"])
def test_a_failure_is_made_small(feature):
    def fails(found):
        return feature in found.source.removeprefix(HEAD)

    made = next(
        choices for choices in (_numbers(5, i)[1] for i in range(200))
        if fails(program(fuzz.Choices(choices))) and len(choices) > 100
    )  # fmt: skip
    small = fuzz.shrunk(made, fails)
    assert fails(small)
    assert len(small.source) < len(program(fuzz.Choices(made)).source)
    assert fuzz.shrunk(made, fails, replays=0).source == program(fuzz.Choices(made)).source


@pytest.mark.parametrize(
    ("text", "failure"),
    [("agrees", False), ("refused", False), ("left out", False), ("call 1: the result", True)],
)
def test_verdicts(text, failure):
    assert fuzz.is_failure(text) is failure


def test_a_process_that_ends_is_replaced(monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "_work", works)
    monkeypatch.setattr(fuzz, "CHUNK", 4)
    assert fuzz.main(["-n", "8", "--first", "1", "--jobs", "2", "--seed", "9"]) == 1
    shown = capsys.readouterr().out
    assert "program 9/3: the process ended with code 7" in shown
    assert "program 9/5: call 1: differs" in shown
    assert re.search(r"done: 8 programs of seed 9 on CPU at O0: 6 agrees, 2 fail", shown)


def test_dtypes_that_a_device_lacks():
    assert fuzz.absent_dtypes("CPU") == []
    text = program(fuzz.Choices.of(1, 7))
    assert fuzz.verdict(text, "O0", ["Tensor"]) == "left out"
