"""Compiled functions and devices: one device per program, and the errors of eager mode.

H25: `move_to` and `to(device)` in compiled code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.errors import DeviceError, UnsupportedSyntaxError

VALUES = np.array([1.0, 2.0, 3.0], np.float32)
OTHER = "Reference"
HELD = Tensor(VALUES, device=OTHER)


def on(device: str) -> Tensor:
    return Tensor(VALUES, device=device)


def once_by_line(call: Callable[[], Any], place: str = "") -> Any:
    """Call a function that must warn once that it runs line by line."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    (said,) = [str(w.message) for w in found]
    assert "runs line by line" in said
    assert "move_to(" in said
    assert place in said
    return result


MIXED: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    "arguments": (lambda x, y: x + y, ("CPU", OTHER), "add: got operands on CPU:0 and Reference:0"),
    "in the other order": (
        lambda x, y: x + y, (OTHER, "CPU"), "add: got operands on Reference:0 and CPU:0"
    ),
    "a captured Tensor": (lambda x: x * HELD, ("CPU",), "mul: got operands on CPU:0 and Refer"),
    "a moved value": (
        lambda x: x + x.move_to(OTHER), ("CPU",), "add: got operands on CPU:0 and Reference:0"
    ),
    "to(device)": (
        lambda x: ops.matmul(x, x.to(OTHER)), ("CPU",), "got operands on CPU:0 and Reference:0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("derived", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", MIXED)
def test_operands_on_two_devices_raise_the_eager_error(name: str, derived: bool) -> None:
    function, devices, message = MIXED[name]
    if derived:
        function = ms.grad(lambda *xs: MIXED[name][0](*xs).sum())
    compiled = ms.jit(function)
    for run in (function, compiled, compiled):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*runs line by line")
            with pytest.raises(DeviceError, match=f"{message}.*move one with move_to"):
                run(*map(on, devices))
    with pytest.raises(DeviceError, match="move_to"):
        ms.jit(function, fullgraph=True)(*map(on, devices))


MOVED: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    "an argument": (lambda x, y: x * y.move_to("CPU"), ("CPU", OTHER), "an argument on Reference"),
    "a captured Tensor": (lambda x: x * HELD.move_to("CPU"), ("CPU",), "a Tensor on Reference:0"),
    "a value, away": (lambda x: (x * x).move_to(OTHER), ("CPU",), "a move of a Tensor to Ref"),
    "there and back": (
        lambda x: (x.move_to(OTHER) * 2).move_to("CPU") * x * 0.5, ("CPU",), "a move of a Tensor"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_functions_of_two_devices_run_line_by_line(name: str) -> None:
    function, devices, reason = MOVED[name]
    compiled = ms.jit(function)
    want = function(*map(on, devices))
    got = once_by_line(lambda: compiled(*map(on, devices)), reason)
    assert got.device == want.device
    np.testing.assert_array_equal(got.asnumpy(), VALUES * VALUES)
    np.testing.assert_array_equal(compiled(*map(on, devices)).asnumpy(), VALUES * VALUES)
    with pytest.raises(UnsupportedSyntaxError, match=reason):
        ms.jit(function, fullgraph=True)(*map(on, devices))


def test_moves_to_the_program_s_own_device_compile() -> None:
    compiled = ms.jit(lambda x: (x * x).move_to("CPU").to("CPU:0") + x, fullgraph=True)
    np.testing.assert_array_equal(compiled(on("CPU")).asnumpy(), VALUES * VALUES + VALUES)
    assert ms.jit(lambda x: x.device, fullgraph=True)(on(OTHER)) == "Reference:0"
    assert ms.jit(lambda x: x.device, fullgraph=True)(on("CPU")) == "CPU:0"


def test_parameters_may_change_their_device_between_calls() -> None:
    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor(VALUES), name="w")

        def construct(self, x: Tensor) -> Tensor:
            return x * self.w.move_to(x.device)

    cell = Scale()
    run = ms.jit(cell.construct)
    np.testing.assert_array_equal(run(on("CPU")).asnumpy(), VALUES * VALUES)
    cell.w._rebind(on(OTHER))
    got = once_by_line(lambda: run(on("CPU")), "a Parameter on Reference:0")
    np.testing.assert_array_equal(got.asnumpy(), VALUES * VALUES)


def test_attributes_that_a_function_rebinds_may_change_their_device() -> None:
    class Box:
        value = Tensor(VALUES)

    box = Box()

    @ms.jit
    def run(x: Tensor) -> Tensor:
        before = box.value
        box.value = before + x
        return before * x

    run(on("CPU"))
    box.value = on(OTHER)
    with pytest.raises(DeviceError, match=r"'value' on Reference:0.*move_to|got operands on"):
        once_by_line(lambda: run(on("CPU")))


# ---- backend= ----


def test_backend_chooses_the_device() -> None:
    def function(x: Tensor) -> Tensor:
        return x + ops.ones(3)

    compiled = ms.jit(function, backend=OTHER)
    got = compiled(Tensor(VALUES))
    assert got.device == "Reference:0"
    np.testing.assert_array_equal(got.asnumpy(), VALUES + 1)
    assert compiled(on(OTHER)).device == "Reference:0"
    with pytest.raises(DeviceError, match=r"argument on CPU:0.*backend=\'Reference:0\'.*move_to"):
        compiled(on("CPU"))
    made = ms.jit(lambda: ops.zeros(2), backend=OTHER)()
    assert made.device == "Reference:0"
    got = ms.grad(lambda x: compiled(x * x).sum())(on(OTHER))
    assert got.device == "Reference:0"
    np.testing.assert_array_equal(got.asnumpy(), 2 * VALUES)


@pytest.mark.parametrize("backend", ["", "ms_backend", "GE"])
def test_backend_without_a_device_leaves_it_to_the_arguments(backend: str) -> None:
    compiled = ms.jit(lambda x: x + 1, backend=backend)
    assert compiled(on(OTHER)).device == "Reference:0"
    assert compiled(on("CPU")).device == "CPU:0"


def test_backend_holds_for_code_that_runs_line_by_line() -> None:
    def function(x: Tensor) -> Tensor:
        exec("pass")  # nothing that compiles
        return x + ops.ones(3) + ops.arange(3)

    compiled = ms.jit(function, backend=OTHER)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*runs line by line")
        for _ in range(2):
            got = compiled(Tensor(VALUES))
            assert got.device == "Reference:0"
            np.testing.assert_array_equal(got.asnumpy(), VALUES + 1 + np.arange(3))
    assert ops.ones(3).device == "CPU:0"  # the current device is what it was


def test_backend_of_methods_cells_and_inner_functions() -> None:
    class Net(nn.Cell):
        @ms.jit(backend=OTHER)
        def double(self, x: Tensor) -> Tensor:
            return x * 2

        def construct(self, x: Tensor) -> Tensor:
            return x * 3

    assert Net().double(Tensor(VALUES)).device == "Reference:0"
    assert ms.jit(Net(), backend=OTHER)(Tensor(VALUES)).device == "Reference:0"
    inner = ms.jit(lambda x: x * 2, backend=OTHER)
    outer = ms.jit(lambda x: inner(x) + 1)
    assert outer(on(OTHER)).device == "Reference:0"
    with pytest.raises(DeviceError, match="backend='Reference:0'"):
        once_by_line(lambda: outer(on("CPU")), "a call of")
    moved = ms.jit(lambda x: inner(x.move_to(OTHER)))
    assert once_by_line(lambda: moved(on("CPU"))).device == "Reference:0"
    assert ms.jit(inner, backend="CPU")(Tensor(VALUES)).device == "CPU:0"


def test_the_current_device_may_change_inside_a_function() -> None:
    def function(x: Tensor) -> Tensor:
        ms.set_context(device_target=OTHER)
        made = ops.ones(3)
        ms.set_context(device_target="CPU")
        return made

    compiled = ms.jit(function)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        devices = [compiled(on("CPU")).device for _ in range(2)]
    assert devices == ["Reference:0"] * 2
    (said,) = {str(w.message) for w in found}
    assert "runs line by line, not compiled: set_context:" in said
    with pytest.raises(UnsupportedSyntaxError, match="Call it outside"):
        ms.jit(function, fullgraph=True)(on("CPU"))


def test_the_current_device_may_change_inside_a_derivative() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * x
        ms.set_device(OTHER)
        try:
            return (y.move_to(OTHER) * ops.ones(3)).sum()
        finally:
            ms.set_device("CPU")

    got = ms.grad(function)(on("CPU"))
    assert got.device == "CPU:0"
    np.testing.assert_array_equal(got.asnumpy(), 2 * VALUES)
