"""A backend that compiles whole programs from their typed steps alone: op, types and attributes."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import registry
from duograph.backend.prepared import LinkedProgram
from duograph.backend.program import Alias, Choice, Copy, Loop, Step, steps_in
from duograph.backend.protocol import BackendSpec
from duograph.types import TensorType
from duograph_reference.backend import Reference
from plugins.numpy_programs import compute, run_graph

NAME = "Typed"


def _region(graph):
    """Return the call of a region, for programs of one step: duograph does not link those."""

    def call(*handles):
        types = graph.types[: graph.n_params]
        made = run_graph(graph, [h.reshape(t.shape) for h, t in zip(handles, types)])
        return made[0] if graph.single else tuple(made)

    return call


def _run(instructions, slots):
    for each in instructions:
        if isinstance(each, Step):
            assert each.op is not None and each.op.name == each.name
            assert len(each.types) == len(each.operands) + len(each.results)
            given = [None if s < 0 else slots[s] for s in each.operands]
            made = compute(each.op, each.types, each.attributes, given)
            slots.update(zip(each.results, made, strict=True))
        elif isinstance(each, Copy):
            slots[each.target] = slots[each.source].copy()
        elif isinstance(each, Alias):
            slots[each.target] = slots[each.source]
        elif isinstance(each, Choice):
            index = int(slots[each.index])
            _run(each.branches[min(max(index, 0), len(each.branches) - 1)], slots)
        else:
            assert isinstance(each, Loop)
            while slots[each.predicate].any():
                _run(each.body, slots)
                for carry, following, _ in each.carries:
                    slots[carry] = slots[following]


class Typed(Reference):
    """The reference backend with a compiler of whole programs, which calls no kernel."""

    name = NAME

    def __init__(self):
        self.linked = []

    def compiles(self, device_id):
        return None

    def compile(self, regions, device_id):
        return [_region(graph) for graph in regions]

    def links(self, device_id):
        return None

    def link(self, program, device_id):
        if program.hosts or any(s.op.host for s in steps_in(program.instructions)):
            return "it has numbers of Python"
        self.linked.append(program)

        def run(handles, donated=()):
            slots = dict(program.constants)
            slots.update(zip(program.params, handles, strict=True))
            _run(program.instructions, slots)
            made = [slots[s].copy() for s in program.outputs]
            return made[0] if program.single else tuple(made)

        return LinkedProgram(run)


@pytest.fixture
def backend(restored):
    made = Typed()
    registry.register(BackendSpec(NAME, lambda: made, priority=None))
    ms.set_context(device_target=NAME)
    yield made
    ms.set_context(device_target="CPU")
    registry.unregister(NAME)


def _while(x, y):
    while x.sum() < 100:
        x = x * 2 + y
    return x


def _branch(x, y):
    if x.sum() > y.sum():
        return ops.exp(x) + y
    return x - ops.tanh(y) * 2


def _several(x, y):
    values, indices = ops.topk(x, 2)
    return values * 2, indices, ops.softmax(x @ y.T, -1)


PROGRAMS = {
    "a chain, fused": lambda x, y: (ops.relu(x * y + x) - y) @ y.T,
    "a reshape between": lambda x, y: (ops.exp(x).reshape((4, 3)) @ y).reshape((2, 8)).sum(0),
    "several results": _several,
    "an absent operand": lambda x, y: ops.clip_by_value(x, None, 0.5) + ops.layer_norm(y, (4,)),
    "a branch": _branch,
    "a loop": _while,
    "a gradient": ms.grad(lambda x, y: (ops.tanh(x @ y.T) ** 2).sum(), (0, 1)),
}


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_computed_from_their_steps_alone(name, level, backend):
    rng = np.random.default_rng(0)
    x, y = (rng.random(s, np.float32) for s in ((3, 4), (3, 4)))
    given = [ms.Tensor(a) for a in (x, y)]
    function = PROGRAMS[name]
    want = function(*[ms.Tensor(a, device="CPU") for a in (x, y)])
    compiled = ms.jit(function, jit_level=level)
    for _ in range(2):
        got = compiled(*given)
        for a, b in zip(_flat(got), _flat(want), strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    if level == "O2" or name not in ("a loop", "a branch"):
        assert backend.linked, "the whole program was to be linked"


def _flat(value):
    return list(value) if isinstance(value, tuple) else [value]


def test_a_step_of_training_has_types_for_every_slot(backend):
    net = nn.Dense(4, 2)
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    loss = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)

    @ms.jit(jit_level="O2")
    def step(x):
        value, grads = loss(x)
        optimizer(grads)
        return value

    x = ms.Tensor(np.ones((3, 4), np.float32))
    losses = [float(step(x)) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]
    (program,) = backend.linked
    for each in steps_in(program.instructions):
        for slot, type_ in zip((*each.operands, *each.results), each.types, strict=True):
            if slot >= 0:
                assert isinstance(type_, TensorType)
                assert program.types[slot].size == type_.size  # a reshape is no instruction
                assert program.types[slot].dtype is type_.dtype
