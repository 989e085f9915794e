"""A backend is asked once for the kernel of an op with given types and attributes."""

from __future__ import annotations

import threading

import duograph as ms
import numpy as np
import pytest
from duograph.backend import prepared_calls, registry
from duograph.backend.prepared_calls import prepared_call
from duograph.backend.protocol import Backend, BackendSpec, DeviceInfo
from duograph.dtype import float32, float64
from duograph.ir.graph import FrozenArray
from duograph.op import OPS
from duograph.op_tables import drop_tables, rules_changed
from duograph.types import TensorType

NAN = float("nan")
X = TensorType.of((3,), float32)


class Counting(Backend):
    """A backend that notes what it is asked for and has no kernel unless told otherwise."""

    name = "Counting"

    def __init__(self, kernel=None):
        self.asked = []
        self.kernel = kernel

    def devices(self):
        return [DeviceInfo(0, "a"), DeviceInfo(1, "b")]

    def copy_in(self, array, device_id):
        return np.array(array)

    def copy_out(self, handle, shape, dtype, device_id):
        return handle.reshape(shape)

    def prepare(self, op, types, attributes, device_id):
        self.asked.append((op.name, types, device_id))
        reference = op.reference_rule
        if self.kernel is not None or reference is None:
            return self.kernel
        return lambda *handles: reference(*op.arguments(handles), **attributes)


@pytest.fixture(autouse=True)
def _without_answers():
    """Discard every answer before and after each test."""
    drop_tables()
    yield
    drop_tables()


def asked(*attributes, kernel=None):
    """Return how often a backend is asked for a kernel with each of several attributes in turn."""
    backend = Counting(kernel)
    for value in attributes:
        prepared_call(backend, OPS["exp"], (X,), {"value": value}, 0)
    return len(backend.asked)


EQUAL = [
    0,
    7,
    True,
    1.5,
    -0.0,
    1 + 2j,
    "same",
    None,
    float32,
    (),
    (1, 2),
    ((0, 1), (2, 3)),
    (0.5, None),
]
DIFFERENT = [
    (0, False), (1, True), (1, 1.0), (0.0, -0.0), (0j, complex(0.0, -0.0)), (1.0, 1 + 0j),
    (1, "1"), (None, "None"), ((1,), 1), ((0.0,), (-0.0,)), ((1,), (True,)), ((1, 2), ((1, 2),)),
    (((1,), 2), ((1, 2),)), ((), ((),)), (float32, float64), (float32, "float32"),
]  # fmt: skip
UNCACHED = [
    NAN, -NAN, complex(NAN, 0), (1.0, NAN), [1, 2], {"a": 1}, np.ones(2), np.float32(1), object(),
    FrozenArray(np.ones(2)), (FrozenArray(np.ones(2)),), tuple(range(1000)), lambda: 0,
]  # fmt: skip


@pytest.mark.parametrize("value", EQUAL, ids=repr)
@pytest.mark.parametrize("kernel", [None, max])
def test_equal_attributes_find_the_same_call(value, kernel):
    again = eval(repr(value), {"duograph": ms})  # an equal object, not the same one
    assert asked(value, value, again, kernel=kernel) == 1


@pytest.mark.parametrize("pair", DIFFERENT, ids=repr)
def test_attributes_that_only_look_equal_find_different_calls(pair):
    one, other = pair
    assert asked(one, other, one, other) == 2


@pytest.mark.parametrize("value", UNCACHED, ids=lambda v: type(v).__name__)
def test_attributes_without_an_exact_key_are_not_kept(value):
    assert asked(value, value) == 2
    assert not OPS["exp"].prepared


def test_everything_else_of_the_key():
    first, second = Counting(), Counting()
    y = TensorType.of((3,), float64)
    calls = [
        (first, "exp", (X,), {}, 0), (second, "exp", (X,), {}, 0), (first, "log", (X,), {}, 0),
        (first, "exp", (y,), {}, 0), (first, "exp", (X, None), {}, 0), (first, "exp", (X,), {}, 1),
        (first, "exp", (X,), {"a": 1}, 0), (first, "exp", (X,), {"b": 1}, 0),
        (first, "exp", (X,), {"a": 1, "b": 2}, 0), (first, "exp", (X,), {"b": 1, "a": 2}, 0),
    ]  # fmt: skip
    found = [prepared_call(b, OPS[name], *rest) for _ in range(3) for b, name, *rest in calls]
    assert len(first.asked) + len(second.asked) == len(calls)
    assert found[: len(calls)] == found[len(calls) : 2 * len(calls)] == found[2 * len(calls) :]


def debug_mode():
    ms.set_context(debug=True)
    ms.set_context(debug=False)


def new_backend():
    registry.register(BackendSpec("Counting", Counting, priority=None))
    registry.unregister("Counting")


@pytest.mark.parametrize("change", [rules_changed, debug_mode, new_backend, drop_tables])
def test_what_clears_eager_calls_clears_kernels(change):
    backend = Counting()
    prepared_call(backend, OPS["exp"], (X,), {}, 0)
    ms.ops.exp(ms.Tensor([1.0]))
    change()
    assert not OPS["exp"].prepared and not OPS["exp"].table
    prepared_call(backend, OPS["exp"], (X,), {}, 0)
    assert len(backend.asked) == 2


def test_an_answer_from_before_a_change_of_rules_is_not_kept():
    class Slow(Counting):
        def prepare(self, *args):
            rules_changed()  # as another thread might, meanwhile
            return super().prepare(*args)

    prepared_call(Slow(), OPS["exp"], (X,), {}, 0)
    assert not OPS["exp"].prepared


def test_a_failure_is_not_kept():
    class Failing(Counting):
        def prepare(self, *args):
            super().prepare(*args)
            raise MemoryError

    backend = Failing()
    for _ in range(2):
        with pytest.raises(MemoryError):
            prepared_call(backend, OPS["exp"], (X,), {}, 0)
    assert len(backend.asked) == 2


def test_the_number_of_answers_is_bounded(monkeypatch):
    monkeypatch.setattr(prepared_calls, "_LIMIT", 10)
    backend = Counting()
    for n in range(35):
        prepared_call(backend, OPS["exp"], (TensorType.of((n,), float32),), {}, 0)
        assert len(OPS["exp"].prepared) <= 10


def on_counting(function):
    """Call `function(x)` with a tensor on a registered counting backend; return what was asked."""
    backend = Counting()
    registry.register(BackendSpec("Counting", lambda: backend, priority=None))
    try:
        function(ms.Tensor(np.ones(3, np.float32), device="Counting"))
        return [name for name, *_ in backend.asked]
    finally:
        registry.unregister("Counting")


def test_eager_and_compiled_calls_share_kernels():
    def run(x):
        ms.ops.exp(x)
        for k in range(3):  # three programs
            for level in ("O0", "O1"):
                ms.jit(lambda a, k=k: ms.ops.exp(ms.ops.exp(a) + k), jit_level=level)(x)

    assert on_counting(run).count("exp") == 1


def test_threads_share_kernels():
    """Eight threads compile the same ops at once; each gets the results of its own numbers."""
    found = {}

    def compiled(n):
        x = ms.Tensor(np.full((5, 7), n, np.float32))
        for _ in range(5):
            program = ms.jit(lambda a: ms.ops.exp(a * 2 + 1).sum(1) - a[:, 0], jit_level="O1")
            found.setdefault(n, set()).add(program(x).asnumpy().tobytes())

    threads = [threading.Thread(target=compiled, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n in range(8):
        x = ms.Tensor(np.full((5, 7), n, np.float32))
        want = ms.jit(lambda a: ms.ops.exp(a * 2 + 1).sum(1) - a[:, 0], jit_level="O1")(x)
        assert found[n] == {want.asnumpy().tobytes()}
