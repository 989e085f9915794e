"""Errors of compiled code: each wrong program must raise a message that names construct and line.

The corpus is in the modules `wrong_*`; valid neighbours of wrong programs must compile.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import pickle
import re
import textwrap
import time
import unicodedata
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.errors import CaptureError, DuographError, JoinError, UnsupportedSyntaxError
from duograph.frontend.diagnostics import Span, add_lines, join_error, located, unsupported
from duograph.frontend.evaluation import loop_statements
from duograph.types import TensorType
from frontend.wrong_programs import RIGHT, WRONG, Right, Wrong, load

load()

PACKAGE = os.path.dirname(ms.__file__)
CASES = [(w, level) for w in WRONG for level in w.levels]
IDS = [f"{w.group}-{w.id}-{level}" for w, level in CASES]
CHAIN = re.compile(r"^  \S.*?:(\d+)( in \S+)?$")


def text_of(error: BaseException) -> str:
    """Return the message of an exception and its notes, as a user sees them."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def compiled(program: Wrong | Right, level: str) -> Any:
    return ms.jit(program.make(), fullgraph=level == "STRICT")


def settle(value: Any) -> Any:
    """Return a result after all its tensors were computed."""
    if isinstance(value, ms.Tensor):
        return value.asnumpy()
    if isinstance(value, (tuple, list)) or inspect.isgenerator(value):
        return [settle(v) for v in value]
    return value


def provoke(program: Wrong, run: Any) -> Exception:
    """Return the exception that a wrong program raises."""
    try:
        result = settle(run())
    except Exception as error:  # noqa: BLE001  (the test checks which)
        return error
    pytest.fail(f"{program.id}: gave {result!r}; wanted {program.error}")


# ---- the corpus ---------------------------------------------------------------------------------


def test_size() -> None:
    assert len(WRONG) >= 120
    assert len({w.id for w in WRONG}) == len(WRONG)
    assert len(RIGHT) >= 30


@pytest.mark.parametrize(
    "program", [w for w in WRONG if w.eager], ids=lambda w: f"{w.group}-{w.id}"
)
def test_line_by_line(program: Wrong) -> None:
    """Python raises the error that the program states."""
    error = provoke(program, lambda: program.make()(*program.arguments()))
    assert isinstance(error, program.error), repr(error)
    if program.group not in ("options",):  # compiled, the message says more
        assert re.search(program.match, text_of(error)), text_of(error)


@pytest.mark.parametrize(("program", "level"), CASES, ids=IDS)
def test_wrong(program: Wrong, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if program.id in ("endless_loop", "endless_iterator") and level == "LAX":
        monkeypatch.setattr(loop_statements, "UNROLL_LIMIT", 1000)  # the real limit takes longer
    began = time.process_time()  # also right on a busy machine
    run: list[Any] = []

    def once() -> Any:
        if not run:
            run.append(compiled(program, level))
        return run[0](*program.arguments())

    error = provoke(program, once)
    spent = time.process_time() - began
    text = text_of(error)
    assert isinstance(error, program.error), f"{type(error).__mro__}\n{text}"
    assert re.search(program.match, text), f"wanted {program.match!r}; got\n{text}"
    check_location(program, text)
    if isinstance(error, UnsupportedSyntaxError):
        assert error.construct, f"names no construct:\n{text}"
        assert error.remedy, f"names no remedy:\n{text}"
        assert error.remedy.rstrip(".") in text
    if isinstance(error, JoinError) and program.id.startswith(("returned_", "variable_of_two_")):
        assert "(line " in text, f"does not say where both come from:\n{text}"
    if program.eager:
        other = provoke(program, lambda: program.make()(*program.arguments()))
        assert type(error) is type(other), f"line by line: {other!r}; compiled: {error!r}"
        if program.id.startswith(("raise_", "assert_")):
            assert (str(error), len(error.args)) == (
                str(other),
                len(other.args),
            )  # the location as it was raised
    assert spent < program.seconds, f"took {spent:.1f} s"
    # no state is left: the next op is eager, and the next call raises the same message
    assert float(ms.Tensor(1.0) + 1) == 2.0
    assert text_of(provoke(program, once)) == text


FALLING_BACK = [w for w in WRONG if w.falls_back]


@pytest.mark.parametrize("program", FALLING_BACK, ids=lambda w: w.id)
def test_line_by_line_at_lax(program: Wrong) -> None:
    """Syntax that STRICT refuses runs in Python at LAX, with one warning that names it."""
    want = settle(program.make()(*program.arguments()))
    fn = compiled(program, "LAX")
    with pytest.warns(RuntimeWarning, match="line by line") as caught:
        same(settle(fn(*program.arguments())), want)
    text = str(caught[0].message)
    assert re.search(program.match, text)
    check_location(program, text)
    same(settle(fn(*program.arguments())), want)  # only one warning


def check_location(program: Wrong, text: str) -> None:
    """Check that a message points at the line and column that the program states."""
    lines = text.splitlines()
    assert len(lines) <= 15, f"{len(lines)} lines:\n{text}"
    assert PACKAGE not in text, f"shows duograph's own files:\n{text}"
    assert "duograph/frontend" not in text
    assert "Traceback" not in text
    if program.line is None:
        return
    name = os.path.basename(program.file)
    chain = [i for i, line in enumerate(lines) if CHAIN.match(line)]
    assert chain, f"no call chain; wanted {name}:{program.line} in\n{text}"
    numbers = [int(CHAIN.match(lines[i])[1]) for i in chain]  # type: ignore[index]
    last = chain[-1]
    assert f"{name}:{program.line} in " in lines[last] + " ", f"wanted line {program.line}:\n{text}"
    outer = iter(numbers[:-1])
    assert all(n in outer for n in program.calls), f"wanted {program.calls} before:\n{text}"
    source = linecache.getline(program.file, program.line)
    shown, caret = lines[last + 1], lines[last + 2]
    assert shown.strip() == source.strip()[: len(shown.strip())], f"not the source line:\n{text}"
    assert re.fullmatch(r" *\^+", caret), f"no caret:\n{text}"
    start, end = caret.index("^"), len(caret)
    code_end = wide(shown.split("  #")[0])
    assert shown.index(shown.strip()) <= start and end <= code_end, f"caret off the code:\n{text}"
    if program.under:
        marked = unpadded(shown, start, end)
        assert marked == program.under, f"marks {marked!r}; wanted {program.under!r}:\n{text}"


def wide(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def unpadded(line: str, start: int, end: int) -> str:
    """Return the part of a line between two terminal columns."""
    column, part = 0, ""
    for c in line:
        if start <= column < end:
            part += c
        column += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return part


RIGHT_CASES = [(r, level) for r in RIGHT for level in r.levels]


@pytest.mark.parametrize(
    ("program", "level"), RIGHT_CASES, ids=[f"{r.group}-{r.id}-{v}" for r, v in RIGHT_CASES]
)
def test_right(program: Right, level: str) -> None:
    """A valid neighbour of a wrong program compiles, with the same result as in Python."""
    want = settle(program.make()(*program.arguments()))
    fn = compiled(program, level)
    for _ in range(2):
        same(settle(fn(*program.arguments())), want)


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif isinstance(want, np.ndarray):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        assert type(got) is type(want) and got == want


CELLS = [w for w in WRONG if w.id in (
    "in_construct", "in_a_child_cell", "layer_for_another_width", "returned_dtypes_in_construct",
    "missing_attribute_of_a_cell", "raise_in_a_child_cell", "loss_layer_of_no_probability",
)]  # fmt: skip


@pytest.mark.parametrize("program", CELLS, ids=lambda w: w.id)
def test_graph_mode(program: Wrong) -> None:
    """A Cell compiled by GRAPH_MODE raises the same message as one compiled by jit."""
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = program.make()
        error = provoke(program, lambda: net(*program.arguments()))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert isinstance(error, program.error)
    assert re.search(program.match, text_of(error))
    check_location(program, text_of(error))


def test_traceback_shows_the_location(capsys: pytest.CaptureFixture[str]) -> None:
    import traceback

    def wrong(x: Any) -> Any:
        return x @ x

    try:
        ms.jit(wrong)(ms.Tensor(np.ones((2, 3), np.float32)))
    except ValueError as error:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert len(text.splitlines()) < 40, text  # no frames of the evaluation
    tail = text.splitlines()[-4:]
    assert "matmul" in tail[0]
    assert "test_errors.py" in tail[1] and "in wrong" in tail[1]
    assert tail[2].strip() == "return x @ x"
    assert tail[3] == "           ^^^^^"


SCALE = 2


def test_stale_capture_as_an_error() -> None:
    """With stale_captures="error" a changed global raises an error with both values."""
    global SCALE
    fn = ms.jit(lambda x: x * SCALE)
    x = ms.Tensor([1.0])
    before = ms.get_context("stale_captures")
    ms.set_context(stale_captures="error")
    try:
        assert fn(x).item() == 2.0
        SCALE = 3
        with pytest.raises(CaptureError, match=r"SCALE.*2.*3"):
            fn(x)
        SCALE = 2
        assert fn(x).item() == 2.0
    finally:
        SCALE = 2
        ms.set_context(stale_captures=before)


# ---- source that is hard to find ----------------------------------------------------------------


def test_source_from_exec_without_linecache() -> None:
    """Without source STRICT raises an error; LAX warns and runs Python."""
    space: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 1\n", "<made up>", "exec"), space)
    with pytest.raises(UnsupportedSyntaxError) as caught:
        ms.jit(space["f"], fullgraph=True)(ms.Tensor(1.0))
    text = str(caught.value)
    assert "source" in text and "<made up>" in text and "Put the function into a file" in text
    with pytest.warns(RuntimeWarning, match="source cannot be found"):
        assert float(ms.jit(space["f"])(ms.Tensor(1.0))) == 2.0


def test_source_from_exec_with_linecache() -> None:
    """Source registered in `linecache` is found, as in notebooks and shells."""
    source = "def f(x, y):\n    z = x + 1\n    return z @ y\n"
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    fn = ms.jit(space["f"])
    x = ms.Tensor(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(fn(x, x.T).asnumpy(), np.full((2, 2), 6, np.float32))
    with pytest.raises(ValueError, match="matmul") as caught:
        fn(x, x)
    lines = text_of(caught.value).splitlines()
    assert f"{name}:3 in f" in lines[-3]
    assert lines[-2].strip() == "return z @ y"
    assert lines[-1].strip() == "^^^^^"


def test_source_that_changed_on_disk(tmp_path: Any) -> None:
    """A message shows the line as it was compiled."""
    path = tmp_path / "user_model.py"
    path.write_text(
        textwrap.dedent("""
        def f(x, y):
            return x @ y
    """)
    )
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    x = ms.Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"user_model\.py:3 in f"):
        ms.jit(space["f"])(x, x)


# ---- the attached place itself ------------------------------------------------------------------

SPANS = [
    Span("/home/me/train.py", 31, 4, 20, "    loss = net(x, y)", "train_step"),
    Span("/home/me/model.py", 12, 11, 21, "    return x @ weight", "forward"),
]


class OddError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code)
        self.text = text

    def __str__(self) -> str:
        return "odd"


def test_framework_message_is_rewritten() -> None:
    error = ms.errors.ShapeError("matmul: got this; wanted that")
    assert located(error, SPANS) is error
    assert str(error).splitlines() == [
        "matmul: got this; wanted that",
        "  /home/me/train.py:31 in train_step",
        "  /home/me/model.py:12 in forward",
        "    return x @ weight",
        "           ^^^^^^^^^^",
    ]
    once = str(error)
    assert str(located(error, SPANS[:1])) == once
    assert text_of(pickle.loads(pickle.dumps(error))) == once


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a", 1),
        KeyError("k"),
        ZeroDivisionError("division by zero"),
        StopIteration(),
        OddError(3, "x"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_user_exception_keeps_its_arguments(error: Exception) -> None:
    args, message = error.args, str(error)
    assert located(error, SPANS) is error
    assert (error.args, str(error)) == (args, message)
    notes = list(error.__notes__)
    assert "model.py:12 in forward" in notes[0]
    located(error, SPANS)
    assert error.__notes__ == notes
    if not isinstance(error, OddError):
        assert pickle.loads(pickle.dumps(error)).__notes__ == notes


def test_long_chain_and_long_message_are_cut() -> None:
    spans = [SPANS[0]] * 500 + [SPANS[1]]
    error = located(DuographError("\n".join(f"line {i}" for i in range(40))), spans)
    lines = str(error).splitlines()
    assert len(lines) == 15
    assert lines[0] == "line 0"
    assert any("more calls" in line for line in lines)
    assert lines[-1].strip() == "^^^^^^^^^^"


def test_framework_files_are_omitted() -> None:
    inner = Span(os.path.join(PACKAGE, "nn", "layer", "basic.py"), 10, 0, 4, "x @ w", "construct")
    error = located(DuographError("dense: no"), [*SPANS, inner])
    assert "basic.py" not in str(error)
    assert str(error).endswith("^^^^^^^^^^")


def test_caret_under_wide_characters_and_tabs() -> None:
    line = "\tz = ('尺寸', x @ y)"
    start = len(line[: line.index("x @")].encode())
    error = located(DuographError("no"), [Span("/m.py", 1, start, start + 5, line)])
    shown, caret = str(error).splitlines()[-2:]
    assert unpadded(shown, caret.index("^"), len(caret)) == "x @ y"


def test_long_line_is_cut_around_the_caret() -> None:
    line = "y = " + "x + " * 200 + "(x @ w)" + " + x" * 200
    start = line.index("x @ w")
    error = located(DuographError("no"), [Span("/m.py", 1, start, start + 5, line)])
    shown, caret = str(error).splitlines()[-2:]
    assert len(shown) <= 120
    assert shown[caret.index("^") : len(caret)] == "x @ w"


def test_unsupported() -> None:
    node = ast.parse("yield x").body[0].value  # type: ignore[attr-defined]
    error = unsupported(node, "Return a list instead.", SPANS[1])
    assert isinstance(error, RuntimeError)
    assert (error.construct, error.remedy) == ("Yield", "Return a list instead.")
    assert str(error).startswith("Unsupported expression 'Yield'")
    assert str(error).endswith("  Return a list instead.")
    assert "model.py:12" in str(error)
    other = pickle.loads(pickle.dumps(error))
    assert (other.construct, str(other)) == ("Yield", str(error))
    bare = unsupported("Try", "Catch it outside.")
    assert (
        str(bare)
        == "Unsupported statement 'Try': it is not supported inside jit\n  Catch it outside."
    )
    assert str(located(bare, SPANS)).splitlines()[-1] == "  Catch it outside."


def test_join_error() -> None:
    a, b = TensorType.of((2, 3), ms.float32), TensorType.of((2, 3), ms.float16)
    c = TensorType.of((3, 2), ms.float32)
    error = join_error("y", a, b)
    add_lines(error, [(7, "    y = x  # as it is"), None])
    text = str(located(error, SPANS))
    assert text.startswith("Cannot join variable 'y' after the branches: it is a Tensor")
    assert "Join Failed" not in text
    assert "in the 'if' branch (line 7: y = x) and" in text and "`y.astype(ms.float32)`" in text
    assert "model.py:12" in text
    text = str(join_error("the result", a, c))
    assert text.startswith("Cannot join the return values of different branches: the result is")
    assert "Shape Join Failed: shape1 = (2, 3), shape2 = (3, 2)" in text
    assert "`.reshape((2, 3))`" in text
    error = join_error("y", a, "None")
    assert isinstance(error, JoinError) and isinstance(error, TypeError)
    assert "a Tensor of shape (2, 3) and dtype Float32" in str(error) and "None" in str(error)
