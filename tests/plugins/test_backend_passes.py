"""Graph passes of one backend run on compiled code for it alone; a failing one is left out."""

from __future__ import annotations

import dataclasses

import duograph as ms
import numpy as np
import pytest
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.errors import BackendUnavailable, GraphError
from duograph.op import OPS
from duograph_reference.backend import Reference

NAME = "Passing"


class Compiling(Reference):
    """The reference backend, as one that compiles: regions for which it has no kernel."""

    name = NAME

    def compiles(self, device_id):
        return None

    def compile(self, regions, device_id):
        return ["its ops run one by one"] * len(regions)


def swap(old, new):
    """Return a pass that puts one op in place of another."""

    def step(graph):
        nodes = [
            dataclasses.replace(n, op=OPS[new]) if n.op.name == old else n for n in graph.nodes
        ]
        return dataclasses.replace(graph, nodes=nodes)

    return step


def broken(graph):
    raise KeyError("nothing there")


def short(graph):
    return dataclasses.replace(graph, outputs=())


@pytest.fixture
def with_passes(restored):
    def make(passes):
        made = type("Passing", (Compiling,), {"passes": passes})
        registry.register(BackendSpec(NAME, made, priority=None))

    yield make
    ms.set_context(device_target="CPU", debug=False)
    registry.unregister(NAME)


def _run(level, device):
    function = lambda x, y: ms.ops.exp(x * y) - x  # noqa: E731
    compiled = function if level is None else ms.jit(function, jit_level=level)
    x, y = (ms.Tensor(np.full(3, v, np.float32), device=device) for v in (2.0, 3.0))
    return compiled(x, y).asnumpy()


def test_they_run_in_order_on_compiled_code_of_their_backend(with_passes):
    with_passes((swap("mul", "add"), swap("add", "sub")))
    times, minus = np.exp(np.float32(6)) - 2, np.exp(np.float32(-1)) - 2
    for level, want in ((None, times), ("O0", times), ("O1", minus), ("O2", minus)):
        np.testing.assert_allclose(_run(level, NAME), want, rtol=1e-6, err_msg=str(level))
        np.testing.assert_allclose(_run(level, "CPU"), times, rtol=1e-6)


@pytest.mark.parametrize("step", [broken, short], ids=["raises", "another signature"])
def test_a_failing_one_is_named_once_and_left_out(step, with_passes):
    step = (lambda inner: lambda graph: inner(graph))(step)  # of this test alone
    step.__name__ = "faulty"
    with_passes([step, swap("mul", "add")])
    with pytest.warns(RuntimeWarning, match=f"the pass 'faulty' of the plugin '{NAME}' failed"):
        first = _run("O1", NAME)
    np.testing.assert_allclose(first, np.exp(np.float32(5)) - 2, rtol=1e-6)
    np.testing.assert_array_equal(_run("O2", NAME), first)  # without another warning


def test_a_failing_one_raises_in_debug_mode(with_passes):
    with_passes((lambda graph: broken(graph),))
    ms.set_context(debug=True)
    with pytest.raises(GraphError, match="nothing there"):
        _run("O1", NAME)


@pytest.mark.parametrize("passes", [3, "add", [3], None], ids=repr)
def test_what_is_no_tuple_of_functions_is_refused(passes, with_passes):
    with_passes(passes)
    with pytest.raises(BackendUnavailable, match=r"passes is .* wanted a tuple of functions"):
        ms.Tensor([1.0], device=NAME)
