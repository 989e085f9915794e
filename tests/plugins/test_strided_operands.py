"""Kernels that take operands in other layouts than dense C order, so that nothing is copied."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph.backend.prepared import PreparedCall
from duograph.backend.protocol import BackendSpec
from duograph.backend.views import CHANNELS_LAST, STRIDED, View
from duograph.errors import BackendError
from plugins.strided_device import Strided

NAME = "Strided"


@pytest.fixture
def make(restored):
    """Fixture: a function that registers a `Strided` device and makes it the current one."""

    def register(takes=None):
        made = Strided(takes)
        registry.register(BackendSpec(NAME, lambda: made, priority=None))
        ms.set_context(device_target=NAME)
        return made

    yield register
    ms.set_context(device_target="CPU")
    registry.unregister(NAME)


def _in_a_loop(x, y):
    while x.sum() < 100:
        x = x * 2 + y.T.reshape((3, 4)).abs()
    return x


# name -> (function of x (3, 4) and y (4, 3), copies that must remain at O1)
PROGRAMS = {
    "a transpose": (lambda x, y: x + y.T, 0),
    "both operands": (lambda x, y: ops.exp(x.T) * y[::-1], 0),
    "one movement, two operands": (lambda x, y: (lambda t: t * t)(x.T) + y, 0),
    "one movement, two readers": (lambda x, y: (lambda t: ops.exp(t) + ops.sin(t))(x.T), 0),
    "a slice": (lambda x, y: ops.exp(x[1:, ::2]), 0),
    "a flip": (lambda x, y: ops.exp(ops.flip(x, (0, 1))), 0),
    "a broadcast": (lambda x, y: ops.cumsum(ops.broadcast_to(x[:1], (5, 4)), 0), 0),
    "a slice of a transpose": (lambda x, y: ops.exp(x.T[1:, :2]), 0),
    "a transpose of a slice of a flip": (lambda x, y: ops.exp(x[::-1][1:, 1:3].T), 0),
    "a reshape that keeps strides": (lambda x, y: ops.exp(x[:, 1:3].reshape((3, 1, 2, 1))), 0),
    "a matmul": (lambda x, y: ops.matmul(x[:, ::2], y[::2]), 0),
    "several results": (lambda x, y: ops.topk(x.T, 2), 0),
    "an output": (lambda x, y: (x.T, ops.exp(x.T)), 1),
    "a reshape that needs a copy": (lambda x, y: ops.exp(x.T.reshape((2, 6))), 1),
    "empty": (lambda x, y: ops.exp(x[:0].T), 2),
    "0-d": (lambda x, y: ops.exp(x[1, 2]), 0),
    "a movement alone": (lambda x, y: x.T, 1),
}


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, level, make):
    backend = make()
    function, copies = PROGRAMS[name]
    rng = np.random.default_rng(0)
    given = [ms.Tensor(rng.random(s, np.float32)) for s in ((3, 4), (4, 3))]
    want = _flat(function(*given))
    backend.copies.clear()
    backend.views.clear()
    got = _flat(ms.jit(function, jit_level=level)(*given))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    if level == "O0":
        assert not backend.views  # the kernels of eager mode, as they are
    else:
        assert sum(backend.copies.values()) == copies


def test_explain_says_it(make):
    make()
    run = ms.jit(lambda x, y: ops.exp(x.T) + y[::-1], jit_level="O1")
    x, y = (ms.Tensor(np.ones(s, np.float32)) for s in ((3, 4), (4, 3)))
    run(x, y)
    assert "2 copies left out: kernels read operands in place" in str(run.explain(x, y))


def _flat(value):
    return list(value) if isinstance(value, tuple) else [value]


def test_in_a_loop(make):
    make()
    x, y = (ms.Tensor(np.ones(s, np.float32)) for s in ((3, 4), (4, 3)))
    want = _in_a_loop(x, y).asnumpy()
    for level in ("O1", "O2"):
        np.testing.assert_array_equal(ms.jit(_in_a_loop, jit_level=level)(x, y).asnumpy(), want)


# layouts that kernels take -> copies of x.T + exp(x), of x[:, 1:] + 1 and of an NHWC operand
TAKES = {
    "none": ({}, (1, 1, 1)),
    "strided": ({"": (STRIDED,)}, (0, 0, 0)),
    "channels-last alone": ({"": (CHANNELS_LAST,)}, (1, 1, 0)),
    "another op": ({"exp": (STRIDED,), "": ()}, (1, 1, 1)),
}


@pytest.mark.parametrize("name", TAKES)
def test_the_core_copies_only_what_a_kernel_cannot_take(name, make):
    takes, wanted = TAKES[name]
    backend = make(takes)
    x = ms.Tensor(np.arange(16, dtype=np.float32).reshape(4, 4))
    nhwc = ms.Tensor(np.arange(48, dtype=np.float32).reshape(2, 4, 3, 2))
    programs = (
        (lambda x: x.T + x, x),
        (lambda x: x[:, 1:] + 1, x),
        (lambda x: x.transpose((0, 3, 1, 2)) * 2, nhwc),
    )
    found = []
    for function, value in programs:
        backend.copies.clear()
        got = ms.jit(function, jit_level="O1")(value)
        found.append(sum(backend.copies.values()))
        np.testing.assert_array_equal(got.asnumpy(), function(value).asnumpy())
    assert tuple(found) == wanted


def test_one_reader_that_needs_it_dense_keeps_the_copy(make):
    backend = make({"exp": (STRIDED,), "": ()})
    x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    got = ms.jit(lambda x: (lambda t: ops.exp(t) + ops.sin(t))(x.T), jit_level="O1")(x)
    np.testing.assert_allclose(got.asnumpy(), np.exp(x.asnumpy().T) + np.sin(x.asnumpy().T))
    assert sum(backend.copies.values()) == 1
    assert not backend.views


def _viewing(layouts, with_views):
    return PreparedCall(lambda *handles: handles[0] * 2, layouts=layouts, with_views=with_views)


WRONG = {
    "a name": (_viewing({0: ("tiled",)}, lambda v: None), r"layouts=.*'strided', 'channels_last'"),
    "an operand": (_viewing({3: (STRIDED,)}, lambda v: None), "of 1 operands"),
    "a text": (_viewing({0: STRIDED}, lambda v: None), "wanted tuples"),
    "no function": (_viewing({0: (STRIDED,)}, None), "with_views=None beside layouts"),
    "a number": (_viewing({0: (STRIDED,)}, lambda v: 3), r"with_views\(\).*returned 3"),
    "it raises": (_viewing({0: (STRIDED,)}, lambda v: 1 // 0), r"with_views\(\).*ZeroDivision"),
    "it overwrites the operand": (
        _viewing({0: (STRIDED,)}, lambda v: PreparedCall(lambda h: h, overwrites=((0, 0),))),
        "overwrites or packs one of the operands \\[0\\]",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_plugin_declares_is_checked(name, make, monkeypatch):
    call, text = WRONG[name]
    backend = make({})
    own = backend.prepare

    def prepare(op, types, attributes, device_id):
        return call if op.name == "exp" else own(op, types, attributes, device_id)

    monkeypatch.setattr(backend, "prepare", prepare)
    x = ms.Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(BackendError, match=f"exp.*{text}"):
        ms.jit(lambda x: ops.exp(x.T), jit_level="O1")(x)


def test_a_view_that_a_kernel_refuses_is_copied(make, monkeypatch):
    backend = make({})
    own = backend.prepare

    def prepare(op, types, attributes, device_id):
        run = own(op, types, attributes, device_id)
        if op.name != "exp":
            return run
        return PreparedCall(run.run, layouts={0: (STRIDED,)}, with_views=lambda views: None)

    monkeypatch.setattr(backend, "prepare", prepare)
    x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    got = ms.jit(lambda x: ops.exp(x.T), jit_level="O1")(x)
    np.testing.assert_allclose(got.asnumpy(), np.exp(x.asnumpy().T))
    assert sum(backend.copies.values()) == 1


NHWC = View((2, 3, 4, 5), (60, 1, 15, 3), 0, 120)
LAYOUTS = {
    "NHWC": (NHWC, {STRIDED, CHANNELS_LAST}),
    "dense": (View((2, 3, 4), (12, 4, 1), 0, 24), {STRIDED}),
    "a part of NHWC": (NHWC._replace(shape=(1, 3, 4, 5)), {STRIDED}),
    "one channel": (View((2, 1, 4, 5), (20, 7, 5, 1), 0, 40), {STRIDED, CHANNELS_LAST}),
    "NLC": (View((2, 3, 4), (12, 1, 3), 0, 24), {STRIDED, CHANNELS_LAST}),
    "a matrix": (View((3, 4), (1, 3), 0, 12), {STRIDED}),
    "0-d": (View((), (), 5, 12), {STRIDED}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_views(name):
    view, want = LAYOUTS[name]
    assert view.layouts == want


def _random_view(shape, rng):
    """Return a random view of a dense array, and the number of the element at each position."""
    size = int(np.prod(shape))
    numbers = np.arange(size).reshape(shape)
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(4)
        if kind == 0:
            numbers = numbers.transpose(rng.permutation(numbers.ndim))
        elif kind == 1:
            numbers = numbers[
                tuple(slice(rng.integers(n), None, rng.integers(1, 3)) for n in numbers.shape)
            ]
        elif kind == 2:
            numbers = numbers[tuple(slice(None, None, rng.choice([1, -1])) for _ in numbers.shape)]
        else:
            numbers = np.broadcast_to(numbers, (2, *numbers.shape))
    strides = tuple(s // numbers.itemsize for s in numbers.strides)
    return View(numbers.shape, strides, int(numbers.reshape(-1)[0]), size), numbers


@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 2), (5,), (1, 3, 1, 4), (2, 2, 2, 2)], ids=str)
def test_a_view_of_a_view_is_one_view(shape):
    rng = np.random.default_rng(0)
    for _ in range(400):
        inner, numbers = _random_view(shape, rng)
        outer, at = _random_view(inner.shape, rng)
        found = outer.within(inner)
        assert found is not None
        assert (found.shape, found.size) == (outer.shape, inner.size)
        got = np.full(found.shape, found.offset)
        for axis, (n, step) in enumerate(zip(found.shape, found.strides, strict=True)):
            lead = [-1 if k == axis else 1 for k in range(len(found.shape))]
            got = got + step * np.arange(n).reshape(lead)
        np.testing.assert_array_equal(got, numbers.reshape(-1)[at])


def test_a_view_across_rows_is_none():
    transposed = View((3, 2), (1, 3), 0, 6)
    assert View((4,), (1,), 0, 6).within(transposed) is None  # the first four, row by row
    assert View((3,), (2,), 1, 6).within(transposed) == View((3,), (1,), 3, 6)
