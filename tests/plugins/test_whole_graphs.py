"""A backend that compiles whole typed graphs, before anything is decomposed or fused."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import observers, registry
from duograph.backend.protocol import BackendSpec
from duograph_reference.backend import Reference
from plugins.numpy_programs import run_graph

NAME = "Whole"
LOOPS = {"while_loop", "switch", "call"}


class Whole(Reference):
    """The reference backend with a compiler of whole graphs without loops and branches."""

    name = NAME

    def __init__(self):
        self.compiled = []

    def compile_graph(self, graph, device_id):
        if any(node.op.name in LOOPS for node in graph.nodes):
            return "it has loops or branches"
        self.compiled.append([node.op.name for node in graph.nodes])

        def run(handles, donated=()):
            types = graph.types[: graph.n_params]
            given = [h.reshape(t.shape) for h, t in zip(handles, types, strict=True)]
            made = [np.array(a) for a in run_graph(graph, given)]
            return made[0] if graph.single else tuple(made)

        return run


@pytest.fixture
def backend(restored):
    yield from _registered(Whole())


def _registered(made):
    registry.register(BackendSpec(NAME, lambda: made, priority=None))
    ms.set_context(device_target=NAME)
    yield made
    ms.set_context(device_target="CPU", debug=False)
    registry.unregister(NAME)


def _operands(device=NAME):
    rng = np.random.default_rng(0)
    return [ms.Tensor(rng.random(s, np.float32), device=device) for s in ((3, 4), (4, 3))]


def _while(x, y):
    while x.sum() < 100:
        x = x * 2 + 1
    return x @ y


def _random_branch(x, y):
    return ops.dropout(x, 0.5) if x.sum() > 0 else x


def _prints(x, y):
    print(x)
    return x @ y


def _noisy(x, y):
    return ops.dropout(x, 0.5) @ y, ops.randn_like(x), ops.dropout(y, 0.25), ops.rand_like(x)


# name -> (function, ops that must still be there, whether the backend compiles it)
PROGRAMS = {
    "softmax stays": (lambda x, y: ops.softmax(x @ y, -1), {"softmax", "matmul"}, True),
    "layer_norm stays": (lambda x, y: ops.layer_norm(x, (4,)) @ y, {"layer_norm"}, True),
    "several results": (lambda x, y: (x @ y, x.reshape((4, 3)) + y), {"matmul"}, True),
    "a result that is an operand": (lambda x, y: (x, x @ y), {"matmul"}, True),
    "a gradient": (ms.grad(lambda x, y: (ops.tanh(x @ y) ** 2).sum(), (0, 1)), {"matmul"}, True),
    "a loop": (_while, set(), False),
    "dropout": (lambda x, y: ops.dropout(x, 0.5) @ y, {"matmul"}, True),
    "several draws": (_noisy, {"matmul"}, True),
    "gradient of dropout": (
        ms.grad(lambda x, y: (ops.dropout(x, 0.5) @ y).sum(), (0, 1)),
        {"matmul"},
        True,
    ),
    "a draw that nobody reads": (
        lambda x, y: ops.dropout(x, 0.5).shape[0] * (x @ y),
        {"matmul"},
        True,
    ),
    "random numbers in a branch": (_random_branch, set(), False),
}


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_whole_graphs(name, level, debug, backend):
    function, kept, whole = PROGRAMS[name]
    ms.set_seed(3)
    wanted = [function(*_operands("CPU")) for _ in range(2)]
    ms.set_context(debug=debug)
    compiled = ms.jit(function, jit_level=level)
    ms.set_seed(3)
    for want in wanted:
        got = compiled(*_operands())
        for a, b in zip(_flat(got), _flat(want), strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    if whole:
        assert any(kept <= set(names) for names in backend.compiled), backend.compiled
        assert not any("random_state" in names for names in backend.compiled)
        assert "compiled as a whole" in str(compiled.explain(*_operands()))


def _flat(value):
    return list(value) if isinstance(value, tuple) else [value]


REASONS = {
    "the backend's": (_while, "it has loops or branches"),
    "a side effect": (_prints, "host_call has side effects or runs in Python"),
    "an effect in a branch": (_random_branch, "random_state has side effects or runs in Python"),
    "a Python value": (
        lambda x, y, n=None: (x @ y, float(x.sum())),
        "it takes or returns a Python value",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_why_not_is_explained(name, backend):
    function, reason = REASONS[name]
    compiled = ms.jit(function, jit_level="O2")
    compiled(*_operands())
    assert f"not compiled as a whole: {reason}" in str(compiled.explain(*_operands()))


def test_observers_see_the_draws_of_a_whole_graph(backend):
    seen = []

    class Watcher(observers.Observer):
        def finished(self, event):
            seen.append((event.work.kind, event.work.name))

    compiled = ms.jit(PROGRAMS["dropout"][0], jit_level="O1")
    compiled(*_operands())
    watcher = Watcher()
    observers.add(watcher)
    compiled(*_operands())
    observers.remove(watcher)
    assert seen[-2:] == [("copy", "to device"), ("kernel", "graph")]


def test_line_by_line_and_o0_do_without(backend):
    for level in (None, "O0"):
        function = PROGRAMS["softmax stays"][0]
        (function if level is None else ms.jit(function, jit_level=level))(*_operands())
    assert not backend.compiled


def test_training_updates_its_parameters(backend):
    losses = {}
    for device in ("CPU", NAME):
        ms.set_context(device_target=device)
        net = nn.Dense(4, 2, weight_init="ones", bias_init="zeros")
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        loss = ms.value_and_grad(lambda x, n=net: (n(x) ** 2).sum(), None, optimizer.parameters)

        def step(x, loss=loss, optimizer=optimizer):
            value, grads = loss(x)
            optimizer(grads)
            return value

        compiled = ms.jit(step, jit_level="O2")
        x = _operands(device)[0]
        losses[device] = [float(compiled(x)) for _ in range(4)]
    np.testing.assert_allclose(losses[NAME], losses["CPU"], rtol=1e-5)
    assert losses[NAME][3] < losses[NAME][0] and backend.compiled


FAULTS = {
    "raises": lambda *_: 1 / 0,
    "a number": lambda *_: 3,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_compiler_is_named_and_done_without(fault, restored):
    made = type("Faulty", (Reference,), {"name": NAME, "compile_graph": FAULTS[fault]})()
    for _ in _registered(made):
        function = PROGRAMS["softmax stays"][0]
        with pytest.warns(RuntimeWarning, match=rf"compile_graph\(\) of the {NAME} backend"):
            got = ms.jit(function, jit_level="O1")(*_operands())
        np.testing.assert_allclose(got.asnumpy(), function(*_operands("CPU")).asnumpy(), rtol=1e-5)


def test_too_few_results_are_named_in_debug_mode(restored):
    made = type("Short", (Reference,), {"name": NAME, "compile_graph": lambda *_: lambda *_: ()})()
    for _ in _registered(made):
        ms.set_context(debug=True)
        with pytest.raises(ms.errors.BackendError, match=NAME):
            ms.jit(lambda x, y: (x @ y, x + 1), jit_level="O1")(*_operands())
