"""Kernels that plugins add to installed backends, one op at a time, by priority."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import registry
from duograph.backend.added_kernels import KernelSpec
from duograph.backend.prepared import PreparedCall
from duograph.backend.prepared_calls import prepared_call
from duograph.backend.protocol import BackendSpec
from duograph.errors import ArgumentError, BackendError
from duograph.op import OPS
from duograph.ops.extensions import add_kernels, remove_kernels
from duograph.types import TensorType
from duograph_reference.backend import Reference

MODES = (None, "O0", "O1", "O2")


class Counter:
    """A `prepare` function whose kernel is the op's NumPy rule, and which counts its calls."""

    def __init__(self, takes=lambda types: True):
        self.calls = 0
        self.takes = takes

    def __call__(self, backend, op, types, attributes, device_id):
        if not self.takes(types):
            return None
        results = op.infer_types(types, attributes)

        def run(*handles):
            self.calls += 1
            arrays = [
                None if t is None else backend.copy_out(h, t.shape, t.dtype.np, device_id)
                for h, t in zip(handles, types)
            ]
            with np.errstate(all="ignore"):
                found = op.reference_rule(*op.arguments(arrays), **attributes)
            parts = found if isinstance(found, tuple) else (found,)
            made = [
                backend.copy_in(np.array(a, t.dtype.np, order="C").reshape(t.shape), device_id)
                for a, t in zip(parts, results)
            ]
            return made[0] if len(results) == 1 else tuple(made)

        return run


@pytest.fixture
def added(restored):
    """Return a function that adds kernels and is undone after the test."""
    specs = []

    def add(backend, op, prepare, priority=10, owner="the plugin fast"):
        spec = KernelSpec(backend, op, prepare, priority)
        specs.append(spec)
        add_kernels(spec, owner=owner)
        return spec

    yield add
    remove_kernels(*specs)


def compiled(function, level):
    return function if level is None else ms.jit(function, jit_level=level)


def numbers(*shape):
    n = int(np.prod(shape))
    return ms.Tensor((np.sin(np.arange(n) * 1.7) + 1.5).reshape(shape).astype(np.float32))


X, W = numbers(4, 6), numbers(6, 4)

# Programs by the op whose kernel they must call: element-wise ops, reductions, matmul, views,
# indices, several results, absent operands.
PROGRAMS = {
    "exp": lambda x: ops.exp(x * 2) + 1,
    "add": lambda x: ops.relu(x + 1) * 2,
    "select": lambda x: ops.select(x > 1.5, x, x * 2),
    "cast": lambda x: (x * 3).astype(ms.int32) + 1,
    "reduce_sum": lambda x: (x * 2).sum(1) + 1,
    "reduce_max": lambda x: ops.amax(x * 2, 0) + 1,
    "cumsum": lambda x: ops.cumsum(x + 1, 1) * 2,
    "concat": lambda x: ops.concat((x, x * 2), 0) + 1,
    "fill": lambda x: ops.zeros((3,)) + x[0, :3],
    "broadcast_to": lambda x: ops.broadcast_to(x[:1], (4, 6)) * 2,
    "scatter_elements_add": lambda x: ops.zeros((4, 6)).scatter_add(1, (x * 0).astype(ms.int32), x),
    "conv_weight_grad": lambda x: ms.grad(lambda w: ops.conv2d(x.reshape(1, 1, 4, 6), w).sum())(
        ops.ones((1, 1, 3, 3))
    ),
    "matmul": lambda x: ops.relu(x @ ops.ones((6, 4)) + 1),
    "transpose": lambda x: (x + 1).T * 2,
    "gather": lambda x: ops.gather(x, (x[0, :3] * 2).astype(ms.int32), 1) + 1,
    "sort": lambda x: ops.sort(x * 2, 1)[0] + 1,
    "erf": lambda x: ops.erf(x) + 1,
    "conv": lambda x: ops.relu(ops.conv2d(x.reshape(1, 1, 4, 6), x[:3, :3].reshape(1, 1, 3, 3))),
}
PLACES = {
    "branch": lambda x: ops.exp(x) + 1 if x.sum() > 0 else x,
    "loop": lambda x: _loop(x),
    "body": lambda x: ops.logcumsumexp(x * 2, 1) + 1,
    "gradient": lambda x: ms.grad(lambda a: (ops.exp(a) * a).sum())(x),
    "vmap": lambda x: ms.vmap(lambda row: ops.exp(row) * 2)(x),
    "result": lambda x: ops.exp(x),
    "float16": lambda x: ops.exp(x.astype(ms.float16)).astype(ms.float32) * 2,
    "complex": lambda x: ops.real(ops.exp(x.astype(ms.complex64)) * 2),
    "twice": lambda x: ops.exp(x) * ops.exp(x),
    "nested": lambda x: ms.jit(lambda a: ops.exp(a) - 1)(x) * 2,
}


def _loop(x):
    i = ms.Tensor(0)
    while i < 3:
        x = ops.exp(-x) + x
        i = i + 1
    return x


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("device", ["CPU", "Reference"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernel_of_highest_priority_computes_the_op(added, name, device, level):
    program = PROGRAMS[name]
    ms.set_context(device_target=device)
    x = ms.Tensor(X.asnumpy())
    want = program(x).asnumpy()
    counter = Counter()
    added(device.lower(), name, counter)
    got = compiled(program, level)(x)
    assert counter.calls > 0
    np.testing.assert_allclose(got.asnumpy(), want, 1e-5, 1e-5)


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("place", PLACES)
def test_the_kernel_computes_the_op_everywhere(added, place, level):
    program = PLACES[place]
    want = program(X).asnumpy()
    counter = Counter()
    added("CPU", "exp", counter)
    got = compiled(program, level)(X)
    assert counter.calls > 0
    np.testing.assert_allclose(got.asnumpy(), want, 1e-5, 1e-5)


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("name", ["softmax", "gelu_erf", "silu", "dense", "layer_norm"])
def test_a_composite_is_not_decomposed(added, name, level):
    """Neither where the backend has a kernel of its own, nor where its body would fuse."""

    def prepare(backend, op, types, attributes, device_id):
        results = op.infer_types(types, attributes)

        def run(*handles):
            made = [backend.copy_in(np.full(t.shape, 3, t.dtype.np), device_id) for t in results]
            return made[0] if len(made) == 1 else tuple(made)

        return run

    program = {
        "softmax": lambda x: ops.softmax(x * 2) + 1,
        "gelu_erf": lambda x: ops.gelu(x * 2) + 1,
        "silu": lambda x: ops.silu(x * 2) + 1,
        "dense": lambda x: ops.dense(x, x[:2]) + 1,
        "layer_norm": lambda x: ops.layer_norm(x * 2, (6,), x[0], x[1]) + 1,
    }[name]
    added("CPU", name, prepare)
    assert (compiled(program, level)(X).asnumpy() == 4).all()


@pytest.mark.parametrize("level", MODES)
def test_a_training_step_calls_the_kernels_and_their_results_count(added, level):
    def losses():
        np.random.seed(1)
        ms.set_seed(1)
        net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 2))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Adam(net.trainable_params(), 0.05)
        step = ms.value_and_grad(lambda a, b: loss(net(a), b), None, optimizer.parameters)

        def train(a, b):
            value, gradients = step(a, b)
            optimizer(gradients)
            return value

        train = compiled(train, level)
        labels = ms.Tensor([0, 1, 1, 0])
        return [float(train(X, labels)) for _ in range(4)]

    want = losses()
    counters = {name: Counter() for name in ("matmul", "relu", "adam_step", "log_softmax")}
    for name, counter in counters.items():
        if name in OPS and OPS[name].reference_rule is not None:
            added("CPU", name, counter)
    np.testing.assert_allclose(losses(), want, 1e-4)
    assert counters["matmul"].calls >= 4 * 3


@pytest.mark.parametrize("level", MODES)
def test_priorities_decide_and_none_passes_on(added, level):
    first = Counter(lambda types: types[0].shape == (4, 6))
    second, last = Counter(), Counter()
    added("CPU", "exp", last, -1)
    added("CPU", "exp", second, 5)
    added("CPU", "exp", first, 20)
    function = compiled(lambda x: ops.exp(x) + 1, level)
    function(X)
    assert (first.calls, second.calls, last.calls) == (1, 0, 0)
    function(W)
    assert (first.calls, second.calls, last.calls) == (1, 1, 0)


def test_of_equal_priority_the_first_is_asked_first(added):
    one, two = Counter(), Counter()
    added("CPU", "exp", one, owner="the plugin a")
    added("CPU", "exp", two, owner="the plugin b")
    ops.exp(X)
    assert (one.calls, two.calls) == (1, 0)


@pytest.mark.parametrize("level", MODES)
def test_a_removed_kernel_is_no_longer_called(added, level):
    function = compiled(lambda x: ops.exp(x) + 1, level)
    want = function(X).asnumpy()
    counter = Counter()
    spec = added("CPU", "exp", counter)
    function(X)
    remove_kernels(spec)
    remove_kernels(spec)  # a second time does nothing
    np.testing.assert_array_equal(function(X).asnumpy(), want)
    assert counter.calls == 1


class Lacking(Reference):
    """The reference backend without two kernels: a composite op and a plain one."""

    name = "Lacking"
    host_fallback = "off"

    def prepare(self, op, types, attributes, device_id):
        if op.name in ("gelu_erf", "sort"):
            return None
        return super().prepare(op, types, attributes, device_id)


@pytest.fixture
def lacking(restored):
    registry.register(BackendSpec("Lacking", Lacking, priority=None))
    ms.set_context(device_target="Lacking")
    yield
    ms.set_context(device_target="CPU")
    registry.unregister("Lacking")


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("name", ["sort", "gelu_erf", "tanh"])
def test_a_kernel_of_low_priority_fills_gaps_alone(lacking, added, name, level):
    counter = Counter()
    made = []

    def gelu(backend, op, types, attributes, device_id):  # a composite has no NumPy rule
        made.append(op.name)
        return lambda x: np.full(types[0].shape, 3, np.float32)

    added("lacking", name, gelu if name == "gelu_erf" else counter, -10)
    programs = {
        "sort": lambda x: ops.sort(x)[0],
        "gelu_erf": lambda x: ops.gelu(x),
        "tanh": lambda x: ops.tanh(x),
    }
    got = compiled(programs[name], level)(ms.Tensor(X.asnumpy()))
    want = {
        "sort": np.sort(X.asnumpy()),
        "gelu_erf": np.full(X.shape, 3),
        "tanh": np.tanh(X.asnumpy()),
    }
    np.testing.assert_allclose(got.asnumpy(), want[name], 1e-5)
    assert (counter.calls > 0) == (name == "sort")
    assert bool(made) == (name == "gelu_erf")


def test_the_kernel_of_a_device_that_is_not_installed_waits(added):
    counter = Counter()
    added("Lacking", "tanh", counter)
    ops.tanh(X)
    assert counter.calls == 0
    registry.register(BackendSpec("Lacking", Lacking, priority=None))
    try:
        ops.tanh(ms.Tensor(X.asnumpy(), device="Lacking"))
        assert counter.calls == 1
    finally:
        registry.unregister("Lacking")


class Whole(Reference):
    """The reference backend with a compiler of whole graphs, which computes nothing right."""

    name = "Whole"

    def compiles(self, device_id):
        return None

    def compile(self, regions, device_id):
        return ["its ops run one by one"] * len(regions)

    def compile_graph(self, graph, device_id):
        shape = graph.types[graph.outputs[0]].shape
        return lambda handles, donated=(): np.full(shape, -1, np.float32)

    def links(self, device_id):
        return None

    link = compile_graph


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("place", ["result", "branch", "loop", "twice"])
def test_no_compiler_of_the_backend_passes_over_the_kernel(added, place, level):
    registry.register(BackendSpec("Whole", Whole, priority=None))
    try:
        ms.set_context(device_target="Whole")
        x = ms.Tensor(X.asnumpy())
        want = PLACES[place](x).asnumpy()
        counter = Counter()
        added("Whole", "exp", counter)
        function = ms.jit(PLACES[place], jit_level=level)
        np.testing.assert_allclose(function(x).asnumpy(), want, 1e-5)
        assert counter.calls > 0
    finally:
        ms.set_context(device_target="CPU")
        registry.unregister("Whole")


# ---- what plugins get wrong ----------------------------------------------------------------------

MALFORMED = {
    "no spec": (lambda: "exp", "returned 'exp'; wanted a KernelSpec"),
    "a list of names": (lambda: ["exp"], "returned 'exp'; wanted a KernelSpec"),
    "backend": (lambda: KernelSpec(3, "exp", Counter()), "got backend=3"),
    "no backend": (lambda: KernelSpec("", "exp", Counter()), "got backend=''"),
    "op": (lambda: KernelSpec("CPU", "expp", Counter()), "got op='expp'; wanted the name of an op"),
    "op object": (lambda: KernelSpec("CPU", ops.exp, Counter()), "wanted the name of an op"),
    "alias": (lambda: KernelSpec("CPU", "reshape", Counter()), "which no kernel computes"),
    "host": (lambda: KernelSpec("CPU", "nonzero", Counter()), "which no kernel computes"),
    "graph op": (lambda: KernelSpec("CPU", "switch", Counter()), "which no kernel computes"),
    "prepare": (lambda: KernelSpec("CPU", "exp", None), "got prepare=None; wanted a function"),
    "priority": (lambda: KernelSpec("CPU", "exp", Counter(), "high"), "got priority='high'"),
    "true": (lambda: KernelSpec("CPU", "exp", Counter(), True), "got priority=True"),
    "zero": (lambda: KernelSpec("CPU", "exp", Counter(), 0), "wanted an int above 0"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_spec_is_refused(what):
    make, said = MALFORMED[what]
    made = make()
    specs = made if isinstance(made, list) else [made]
    good = KernelSpec("CPU", "exp", Counter())
    with pytest.raises(ArgumentError) as error:
        add_kernels(good, *specs)
    assert said in str(error.value)
    ops.exp(X)
    assert good.prepare.calls == 0  # none is added


FAULTY = {
    "raises": (lambda *handles: 1 / 0, "raised ZeroDivisionError"),
    "none": (lambda *handles: None, "returned None"),
    "operand": (lambda *handles: handles[0], "returned its operand 0 as a result"),
}


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("what", FAULTY)
def test_debug_mode_names_the_plugin_of_a_faulty_kernel(added, what, level):
    run, said = FAULTY[what]
    added("CPU", "exp", lambda *_: run)
    ms.set_context(debug=True)
    with pytest.raises(BackendError) as error:
        compiled(lambda x: ops.exp(x) + 1, level)(X).asnumpy()
    text = str(error.value)
    assert said in text and "exp(float32[4, 6]" in text
    assert "the kernel of the plugin fast for the CPU backend" in text


FAULTY_PREPARE = {
    "raises": (lambda *_: {}["key"], "raised KeyError: 'key'"),
    "returns": (lambda *_: 3, "returned 3; wanted a function"),
    "malformed call": (lambda *_: PreparedCall(max, overwrites=1), "PreparedCall.overwrites=1"),
}


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("what", FAULTY_PREPARE)
def test_a_faulty_prepare_is_named_with_its_plugin(added, what, level):
    prepare, said = FAULTY_PREPARE[what]
    added("CPU", "exp", prepare)
    with pytest.raises(BackendError) as error:
        compiled(lambda x: ops.exp(x) + 1, level)(X)
    assert "prepare() of the plugin fast for the CPU backend" in str(error.value)
    assert said in str(error.value)


def test_a_prepared_call_keeps_its_other_facts(added):
    """The operand that a call may overwrite is kept when the core notes who provides the call."""
    made = PreparedCall(lambda x: x, overwrites=((0, 0),), infallible=True)
    added("CPU", "exp", lambda *_: made)
    cpu, type_ = registry.backend("CPU"), TensorType.of((2,), ms.float32)
    call = prepared_call(cpu, OPS["exp"], (type_,), {}, 0)
    assert (call.run, call.overwrites, call.infallible) == (made.run, ((0, 0),), True)
    assert call.precedes and call.owner == "the plugin fast for the CPU backend"


# ---- installed plugins ---------------------------------------------------------------------------

PLUGIN = """
import numpy as np
from duograph.backend.added_kernels import KernelSpec
from duograph.backend.hookspecs import hookimpl

def sevens(backend, op, types, attributes, device_id):
    def run(x):
        return backend.copy_in(np.full(types[0].shape, 7, types[0].dtype.np), device_id)
    return run

@hookimpl
def duograph_kernels():
    return {specs}
"""
USE = """
import duograph as ms
from duograph import ops
x = ms.Tensor([[1.0, 2.0]])
print(ops.softmax(x), ms.jit(lambda a: ops.softmax(a) + 1, jit_level="O2")(x))
"""


def test_an_installed_plugin_adds_a_kernel(site):
    site.install("fastmath", PLUGIN.format(specs='KernelSpec("CPU", "softmax", sevens)'))
    assert site.run(USE).strip() == "[[7. 7.]] [[8. 8.]]"
    done = site.run("from duograph.cli import main; main(['devices'])")
    assert "  kernels  softmax: the plugin fastmath, priority 10" in done


@pytest.mark.parametrize(
    "specs",
    [
        '[KernelSpec("CPU", "softmax", sevens), KernelSpec("CPU", "softmaxx", sevens)]',
        '[KernelSpec("CPU", "softmax", sevens), KernelSpec("CPU", "exp", sevens, 0)]',
        '"softmax"',
        "1 / 0",
    ],
)
def test_a_malformed_plugin_is_disabled_alone(site, specs):
    site.install("fastmath", PLUGIN.format(specs=specs))
    other = 'KernelSpec("cpu", "exp", sevens)'
    site.install("other", PLUGIN.format(specs=other))
    said = site.run(
        """
        import warnings
        import duograph as ms
        from duograph import ops
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            print(ops.softmax(ms.Tensor([1.0, 1.0])), ops.exp(ms.Tensor([0.0])))
        print([str(w.message)[:30] for w in found])
        """
    )
    assert said.splitlines()[0] == "[0.5 0.5] [7.]"
    assert "the plugin 'fastmath' of" in said
