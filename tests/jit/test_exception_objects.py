"""Exception objects of the user in compiled code: questions to them, and what is left on them."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest

SOURCE = """
class Failure(Exception):
    def __init__(self, text, number):
        super().__init__(text)
        self.number = number

    def double(self):
        return self.number * 2

    def count(self):
        self.number += 1
        return self.number

ERROR = ValueError("one")
FAILURE = Failure("two", 2.0)
FAILURE.numbers = [1.0]

def f(x):
    {body}
"""
# body of f
QUESTIONS = {
    "text": "return x, str(ERROR)",
    "repr": "return x, repr(ERROR), repr(FAILURE)",
    "formatted": "return x, f'{ERROR} {FAILURE!r}'",
    "arguments": "return x * len(ERROR.args), ERROR.args",
    "attribute": "return x * FAILURE.number",
    "list": "return x * FAILURE.numbers[0], len(FAILURE.numbers)",
    "method": "return x * FAILURE.double()",
    "method that changes it": "return x * FAILURE.count()",
    "absent attribute": "return x * getattr(ERROR, 'extra', 1.0)",
    "changed here": "FAILURE.number = FAILURE.number + 1; return x * FAILURE.number",
    "cause": "return x, ERROR.__cause__ is None",
    "caught": """
    try:
        raise FAILURE
    except Failure as e:
        return x * e.number, str(e), e.args
    """,
    "caught from a library": """
    try:
        int("q")
    except ValueError as e:
        return x, str(e), len(e.args)
    """,
}
CHANGES = (
    "pass",
    "ERROR.args = ('uno', 'dos')",
    "FAILURE.number = 5.0; FAILURE.args = ('three',)",
    "FAILURE.numbers.append(2.0); FAILURE.numbers[0] = 7.0",
    "ERROR.extra = 3.0",
    "ERROR.__cause__ = FAILURE",
    "pass",
)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_to_an_exception_is_asked_again(name, load):
    import duograph as ms

    ms.set_context(stale_captures="recompile")
    text = SOURCE.replace("    {body}", "    " + QUESTIONS[name].strip())
    line_by_line, compiled = load(text), load(text)
    run = ms.jit(compiled["f"])
    x = ms.Tensor([1.0, -2.0])
    for change in CHANGES:
        exec(change, line_by_line)
        exec(change, compiled)
        want, got = line_by_line["f"](x), run(x)
        assert str(got) == str(want), change
        for one in ("ERROR", "FAILURE"):
            assert vars(compiled[one]).keys() == vars(line_by_line[one]).keys()
            assert repr(compiled[one]) == repr(line_by_line[one])
    assert run.cache_info().fallbacks == 0


RAISING = {
    "always": "y = x + 1; raise ERROR",
    "under a condition": """
    if x.sum() < 0:
        raise ERROR
    return x
    """,
    "after an effect": "print('before', x.sum()); raise ERROR",
    "in a loop": """
    while x.sum() < 5:
        x = x + 1
        if x.sum() > 0:
            raise ERROR
    return x
    """,
    "from Python code": "return x * float(NUMBERS.read(x))",
}


@pytest.mark.parametrize("name", RAISING)
@pytest.mark.parametrize("recorded", [False, True])
def test_nothing_of_ours_is_left_on_an_exception(name, recorded, load, warned):
    import duograph as ms

    reader = """
class Numbers:
    def read(self, x):
        if x.asnumpy().sum() < 5:
            raise ERROR
        return 1.0

NUMBERS = Numbers()
"""
    space = load(SOURCE.replace("    {body}", "    " + RAISING[name].strip()) + reader)
    run = ms.jit(space["f"])
    if recorded:
        run = ms.value_and_grad(lambda x, f=run: f(x).sum())
    error = space["ERROR"]
    for _ in range(3):
        with pytest.raises(ValueError, match="one") as raised:
            run(ms.Tensor([1.0, -2.0]))
        assert raised.value is error
        assert not [k for k in vars(error) if k.startswith("_duograph")]
    notes = getattr(error, "__notes__", [])
    assert len(notes) == len(set(notes)) <= 1


def test_one_exception_raised_in_two_places_names_both(load):
    import duograph as ms

    space = load(SOURCE.replace("    {body}", "    raise ERROR") + "\ndef g(x):\n    raise ERROR\n")
    f, g = ms.jit(space["f"]), ms.jit(space["g"])
    for run in (f, g, f):
        with pytest.raises(ValueError):
            run(ms.Tensor(1.0))
    assert ["in f" in n or "in g" in n for n in space["ERROR"].__notes__] == [True, True]


def test_a_trail_of_an_earlier_condition_is_forgotten(load):
    """An exception raised under a condition, then certain: the second is raised while compiling."""
    import duograph as ms

    space = load(
        SOURCE.replace("    {body}", "    if x.sum() > 0:\n        raise ERROR\n    return x")
        + "\ndef g(x):\n    try:\n        raise ERROR\n    except ValueError:\n"
        + "        return x * 2\n"
    )
    with pytest.raises(ValueError):
        ms.jit(space["f"])(ms.Tensor(1.0))
    assert float(ms.jit(space["g"], fullgraph=True)(ms.Tensor(1.0))) == 2.0


class _Recorder(ms.nn.Cell):
    """A Cell with a Parameter whose `construct` has an effect before an index."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = ms.Parameter(ms.Tensor(np.float32(2.0)))
        self.seen: list[int] = []

    def construct(self, x: ms.Tensor, i: ms.Tensor) -> ms.Tensor:
        self.seen.append(1)
        return (x * self.scale)[i]


_seen: list[int] = []


def _prints(x: ms.Tensor, i: ms.Tensor) -> ms.Tensor:
    print("effect")
    return x[i]


def _appends(x: ms.Tensor, i: ms.Tensor) -> ms.Tensor:
    _seen.append(1)
    return x[i]


@pytest.mark.parametrize("kind", ["prints", "appends", "cell"])
def test_an_effect_before_an_error_happens_once(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The shortcut of repeated calls does not run a program again that has had an effect"""
    cell = _Recorder()
    function = {"prints": _prints, "appends": _appends, "cell": cell.construct}[kind]
    compiled = ms.jit(function)
    _seen.clear()
    x, good, bad = (
        ms.Tensor(np.ones(3, np.float32)),
        ms.Tensor(np.array([1])),
        ms.Tensor(np.array([9])),
    )
    for _ in range(4):
        compiled(x, good)
    with pytest.raises(IndexError):
        compiled(x, bad)
    printed = capfd.readouterr().out.count("effect")
    assert {"prints": printed, "appends": len(_seen), "cell": len(cell.seen)}[kind] == 5
