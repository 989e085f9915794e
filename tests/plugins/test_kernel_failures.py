"""Kernels that raise an unexpected error outside debug mode: a note says which op on which device.

The error keeps its class and its text. Compiled code also gives the user's source line. Errors that
kernels raise on purpose have no note.
"""

from __future__ import annotations

import sys
import traceback

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph.backend.prepared import PreparedCall
from duograph.backend.protocol import BackendSpec
from duograph.error_notes import add_note
from duograph.errors import BackendError, DeviceError, DuographError

Reference = pytest.importorskip("duograph_reference.backend").Reference

pytestmark = pytest.mark.usefixtures("restored")

MODES = ("eager", "O0", "O1", "O2")
KERNEL = "exp(float32[2, 3])"


class Failing:
    """A backend whose kernel of one op raises an error while there is one.

    Attributes:
        op: name of the op.
        error: function that makes the error; None while the kernel works.
        late: whether `copy_out` and `synchronize` raise the error instead of the kernel, as on a
            device that runs kernels after the call.
    """

    def __init__(self):
        self.op, self.error, self.late, self.found = "exp", None, False, None

    def prepare(self, backend, op, types, attributes, device_id):
        if op.name in ("sigmoid", "sigmoid_grad"):
            return None  # the body calls exp
        sound = Reference.prepare(backend, op, types, attributes, device_id)
        if op.name != self.op:
            return sound
        run = sound.run if isinstance(sound, PreparedCall) else sound

        def kernel(*handles):
            if self.error is not None and not self.late:
                raise self.error()
            self.found = self.error() if self.error is not None else None
            return run(*handles)

        return kernel

    def wait(self):
        found, self.found = self.found, None
        if found is not None:
            raise found


@pytest.fixture
def failing():
    """Fixture: the `Failing` behind the registered device "Toy"."""
    made = Failing()

    class Toy(Reference):
        name = "Toy"

        def prepare(self, op, types, attributes, device_id):
            return made.prepare(self, op, types, attributes, device_id)

        def copy_out(self, handle, shape, dtype, device_id):
            made.wait()
            return super().copy_out(handle, shape, dtype, device_id)

        def synchronize(self, device_id):
            made.wait()

        def nbytes(self, handle, device_id):
            return np.asarray(handle).nbytes  # so that debug mode reads nothing back

    registry.register(BackendSpec("Toy", Toy, priority=None))
    ms.set_context(device_target="Toy")
    yield made
    ms.set_context(device_target="CPU", debug=False)
    registry.unregister("Toy")


def alone(a):
    return ops.exp(a)  # line of alone


def among(a):
    b = a + 1
    return ops.exp(b) * 2  # line of among


def several(a):
    return ops.sort(ops.exp(a))[0]  # line of several


def branch(a):
    if a.sum() > 0:
        a = ops.exp(a)  # line of branch
    return a


def loop(a):
    n = a.sum()
    while n < 100:
        a = ops.exp(a)  # line of loop
        n = n + 50
    return a


def composite(a):
    return ops.sigmoid(a)  # line of composite


FUNCTIONS = (alone, among, several, branch, loop, composite)


def called(function, mode, use):
    """Return a function of a Tensor: `function`, or its gradient, run line by line or compiled."""
    made = function if mode == "eager" else ms.jit(function, jit_level=mode)
    if use == "forward":
        return made
    if use == "gradient":
        return ms.grad(made)
    return ms.jit(ms.grad(function), jit_level="O0" if mode == "eager" else mode)


def text_of(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def raised(function, x, kind):
    with pytest.raises(kind) as caught:
        function(x)
    return caught.value


@pytest.mark.parametrize("again", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("use", ["forward", "gradient", "compiled gradient"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_unexpected_error_is_named(function, mode, use, again, failing):
    x = ms.Tensor(np.full((2, 3), 0.5, np.float32))
    run = called(function, mode, use)
    if again:
        for _ in range(3):
            run(x)
    failing.error = lambda: KeyError("bus")
    error = raised(run, x, KeyError)
    assert type(error) is KeyError and error.args == ("bus",)
    found = text_of(error)
    assert found.count("while Toy:0 computed") == 1, found
    assert f"while Toy:0 computed {KERNEL}" in found or "while Toy:0 computed exp and" in found
    assert f"# line of {function.__name__}" in found or mode == "eager", found
    failing.error = None
    assert isinstance(run(x), ms.Tensor)


@pytest.mark.parametrize("mode", MODES)
def test_an_error_in_a_kernel_of_the_gradient_alone_is_named(mode, failing):
    failing.op = "cos"  # the gradient of sin
    x = ms.Tensor(np.full((2, 3), 0.5, np.float32))
    run = called(lambda a: ops.sin(a), mode, "gradient")
    failing.error = lambda: OSError("bus")
    found = text_of(raised(run, x, OSError))
    assert "while Toy:0 computed cos(float32[2, 3])" in found, found


CLASSES = {
    "ZeroDivisionError": (ZeroDivisionError("bus"), True),
    "TypeError": (TypeError("bus"), True),
    "AttributeError": (AttributeError("bus"), True),
    "RuntimeError": (RuntimeError("bus"), True),
    "a class of the plugin": (type("Lost", (Exception,), {})("bus"), True),
    "IndexError": (IndexError("index 7 is out of range"), False),
    "MemoryError": (MemoryError("bus"), False),
    "an error of duograph": (DeviceError("bus"), False),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CLASSES)
def test_the_class_and_the_text_stay(name, mode, failing):
    made, named = CLASSES[name]
    x = ms.Tensor(np.full((2, 3), 0.5, np.float32))
    run = called(alone, mode, "forward")
    failing.error = lambda: made
    error = raised(run, x, type(made))
    assert error is made
    assert ("while Toy:0 computed" in text_of(error)) == named


@pytest.mark.parametrize("mode", MODES)
def test_the_error_of_a_function_inside_a_graph_stays_the_users(mode, failing):
    def function(a):
        n = int(a.sum())
        return ops.exp(a) * (7 // n)

    x = ms.Tensor(np.zeros((2, 3), np.float32))
    error = raised(called(function, mode, "forward"), x, ZeroDivisionError)
    assert "while Toy:0 computed" not in text_of(error)


@pytest.mark.parametrize("mode", MODES)
def test_debug_mode_names_the_kernel_of_a_late_error(mode, failing):
    """A device that runs kernels later raises their errors in calls that wait for them."""
    failing.late = True
    x = ms.Tensor(np.full((2, 3), 0.5, np.float32))
    failing.error = lambda: OSError("bus")
    with pytest.raises(BackendError, match=r"Toy: copy_out\(\) .* set_context\(debug=True\) says"):
        called(among, mode, "forward")(x).asnumpy()
    ms.set_context(debug=True)
    with pytest.raises(BackendError, match=r"the kernel of the Toy backend raised OSError: bus"):
        called(among, mode, "forward")(x)


def test_a_note_is_added_once():
    error = ValueError("text")
    for text in ("one", "two", "one"):
        add_note(error, text)
    assert error.__notes__ == ["one", "two"] and error.args == ("text",)


def test_notes_are_shown_by_python_3_10(monkeypatch):
    """Python 3.10 prints no notes: there they are the cause, unless there is another."""
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    error, other = ValueError("text"), ValueError("other")
    other.__cause__ = cause = KeyError("cause")
    for text in ("one", "two"):
        add_note(error, text)
        add_note(other, text)
    assert isinstance(error.__cause__, DuographError)
    assert str(error.__cause__) == "where the error was raised\none\ntwo"
    assert other.__cause__ is cause
