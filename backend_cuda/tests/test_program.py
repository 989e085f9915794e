"""Level O2: a compiled function as one captured graph."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph.errors import DeviceMemoryError
from duograph_cuda import captured_graph
from duograph_cuda._native import Pool
from duograph_cuda.emulation import driver as emulated
from duograph_cuda.graph_memory import Trace

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU
emulated_only = pytest.mark.skipif(DEVICE != "CUDA-emulated", reason="a driver that obeys the test")


@pytest.fixture
def device(monkeypatch):
    problem = registry.problem_of(registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)
    return registry.backend(DEVICE).device(0)


def _operands(seed):
    rng = np.random.default_rng(seed)
    shapes = ((5, 8), (8, 8))
    return [ms.Tensor(rng.normal(size=s).astype(np.float32), device=DEVICE) for s in shapes]


def _net(x, w):
    for _ in range(3):
        x = ops.tanh(ops.matmul(x, w)) + x
    return x, (x * x).sum()


def test_one_launch_per_call_with_the_same_bits(device):
    whole, stepwise = ms.jit(_net, jit_level="O2"), ms.jit(_net, jit_level="O0")
    kept = []
    for seed in range(4):
        x, w = _operands(seed)
        got, want = whole(x, w), stepwise(x, w)
        kept.append((got, [v.asnumpy() for v in want]))
        before = device.memory_stats()["launches"]
        whole(x, w)
        assert device.memory_stats()["launches"] == before + 1
    for got, want in kept:  # results outlive the calls after them
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5)


def test_gradients_and_updates(device):
    def run(level):
        w = ms.Parameter(ms.Tensor(np.full((8, 8), 0.1, np.float32), device=DEVICE), name="w")
        loss = ms.value_and_grad(
            lambda x: (ops.softmax(ops.matmul(x, w), axis=1) ** 2).sum(), None, [w]
        )

        def step(x):
            value, (grad,) = loss(x)
            ops.assign(w, w - 0.1 * grad)
            return value

        compiled = ms.jit(step, jit_level=level)
        return [float(compiled(_operands(k)[0])) for k in range(4)] + [w.asnumpy()]

    for a, b in zip(run("O2"), run("O0"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_memory_is_freed_with_the_function(device):
    gc.collect()
    before = device.memory_stats()["in_use"]
    whole = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
    float(whole(*_operands(0)))
    float(whole(*_operands(0)))
    assert device.memory_stats()["in_use"] > before
    del whole
    gc.collect()
    assert device.memory_stats()["in_use"] <= before


def test_concurrent_capture_and_launch(device):
    wanted = [float(ms.jit(_net, jit_level="O0")(*_operands(k))[1]) for k in range(4)]
    found = [[] for _ in range(4)]

    def work(k):
        mine = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
        for _ in range(5):
            found[k].append(float(mine(*_operands(k))))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], wanted[k], rtol=1e-6)
        assert len(found[k]) == 5


def test_graphs_can_be_disabled_and_need_level_o2(device, monkeypatch):
    """One launch a call at O2 only, and not where the switch says no."""

    def launches(level, switch):
        monkeypatch.setenv("DUOGRAPH_CUDA_GRAPHS", switch)
        run = ms.jit(lambda x, w: _net(x, w)[1], jit_level=level)
        operands = _operands(1)
        value = float(run(*operands))
        before = device.memory_stats()["launches"]
        assert float(run(*operands)) == pytest.approx(value)
        return device.memory_stats()["launches"] - before

    assert launches("O2", "1") == 1
    assert launches("O2", "0") > 3
    assert launches("O1", "1") > 3


def test_uncapturable_programs_run_step_by_step(device):
    """A loop whose end depends on data: the notes say why there is no graph."""

    @ms.jit(jit_level="O2")
    def halve(x):
        while x.sum() > 1.0:
            x = x / 2.0
        return x

    x = _operands(2)[0].abs()
    assert float(halve(x).sum()) <= 1.0
    assert float(halve(x * 3.0).sum()) <= 1.0
    assert "a CUDA graph" in str(halve.explain(x))


@emulated_only
@pytest.mark.parametrize(
    "fails", ["cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate"]
)
def test_failed_capture(device, fails, monkeypatch):
    """What a driver refuses to capture runs by its steps from then on, and that is said once."""
    whole = ms.jit(lambda x, w: _net(x, w)[1], jit_level="O2")
    x, w = _operands(3)
    wanted = float(ms.jit(_net, jit_level="O0")(x, w)[1])
    assert float(whole(x, w)) == pytest.approx(wanted, rel=1e-5)
    module = device.driver.module

    def refuse(*arguments):
        module.capture = None
        return emulated.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, None

    monkeypatch.setattr(module, fails, refuse)
    with pytest.warns(RuntimeWarning, match="CAPTURE_UNSUPPORTED.*runs step by step from now on"):
        assert float(whole(x, w)) == pytest.approx(wanted, rel=1e-5)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = device.memory_stats()["launches"]
        assert float(whole(x, w)) == pytest.approx(wanted, rel=1e-5)
        assert device.memory_stats()["launches"] > before + 3
    gc.collect()  # what earlier tests left
    in_use = device.memory_stats()["in_use"]
    del whole
    gc.collect()
    assert device.memory_stats()["in_use"] == in_use, "the memory of the capture was kept"


class Stepper:
    """A compiled step w <- w * 2 + x over a parameter, and the same in NumPy."""

    def __init__(self, level="O2"):
        self.w = ms.Parameter(ms.Tensor(np.ones(64, np.float32), device=DEVICE), name="w")
        self.want = np.ones(64, np.float32)

        def step(x):
            ops.assign(self.w, self.w * 2.0 + ops.tanh(x).sum())
            return (self.w * x).sum()

        self.step = ms.jit(step, jit_level=level)

    def __call__(self, k=1.0):
        x = np.full(4, k, np.float32)
        value = float(self.step(ms.Tensor(np.resize(x, 64), device=DEVICE)))
        self.want = self.want * 2 + np.tanh(np.resize(x, 64)).sum(dtype=np.float32)
        assert value == pytest.approx(float((self.want * k).sum()), rel=1e-5)
        np.testing.assert_allclose(self.w.asnumpy(), self.want, rtol=1e-5)
        return value


@pytest.fixture
def copies(device, monkeypatch):
    """Targets of the copies that calls of programs make, apart from their graphs."""
    found = []
    real = captured_graph._copy

    def counted(device, name, target, source):
        if device.driver.module.capture is None:
            found.append(target.pointer)
        real(device, name, target, source)

    monkeypatch.setattr(captured_graph, "_copy", counted)
    return found


@emulated_only
def test_updated_parameter_stays_in_place(device, copies):
    """From the third call on nothing is copied but the operand that is another one each time."""
    run = Stepper()
    kept = [ms.Tensor(np.ones(64, np.float32), device=DEVICE)]
    for _ in range(3):
        run()
    place = run.w._buf.pointer
    copies.clear()
    run.step(kept[0])
    assert len(copies) == 1 and place not in copies
    assert run.w._buf.pointer == place
    float(run.w[0])


@emulated_only
def test_what_stays_the_same_is_not_copied(device, copies):
    """Weights, and results of which nobody holds the last but one."""
    whole = ms.jit(_net, jit_level="O2")
    (x, w), (y, _) = _operands(0), _operands(1)
    stepwise = ms.jit(_net, jit_level="O0")
    wanted = {id(v): [t.asnumpy() for t in stepwise(v, w)] for v in (x, y)}
    whole(x, w), whole(y, w)
    got = whole(x, w)
    for v in (y, x, x, y, x):
        copies.clear()
        got = whole(v, w)
        assert len(copies) == 1, "x has a buffer since another one came"
        for a, b in zip(got, wanted[id(v)], strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5)
    same = ms.jit(_net, jit_level="O2")
    for _ in range(5):
        copies.clear()
        got = same(x, w)
        assert not copies
    np.testing.assert_allclose(got[0].asnumpy(), wanted[id(x)][0], rtol=1e-5)


def test_results_that_are_kept(device):
    """More of them than graphs, also those of which only some are kept."""
    whole, stepwise = ms.jit(_net, jit_level="O2"), ms.jit(_net, jit_level="O0")
    kept = []
    for seed in range(9):
        x, w = _operands(seed % 4)
        got, want = whole(x, w), stepwise(x, w)
        kept += [(a, b.asnumpy()) for a, b in list(zip(got, want, strict=True))[: seed % 3]]
    for a, b in kept:
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5)


def test_result_that_is_the_next_operand(device):
    whole = ms.jit(lambda x, w: ops.tanh(ops.matmul(x, w)) + x, jit_level="O2")
    stepwise = ms.jit(lambda x, w: ops.tanh(ops.matmul(x, w)) + x, jit_level="O0")
    a, w = _operands(0)
    b = a
    for _ in range(6):
        a, b = whole(a, w), stepwise(b, w)
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)


def test_operand_that_moves_later(device):
    """The graph has the address of the first one, until another one comes."""
    whole, stepwise = ms.jit(_net, jit_level="O2"), ms.jit(_net, jit_level="O0")
    for order in ((0, 0, 0, 1, 0, 2, 2), (0, 1, 1, 1)):
        tensors = {k: _operands(k) for k in order}
        for k in order:
            for swap in (False, True):
                x, w = tensors[k][0], tensors[0 if swap else k][1]
                np.testing.assert_allclose(
                    whole(x, w)[0].asnumpy(), stepwise(x, w)[0].asnumpy(), rtol=1e-5
                )


@emulated_only
def test_failed_second_graph(device, monkeypatch):
    """There is no memory for a second graph, so the values of the first one move."""
    whole, stepwise = ms.jit(_net, jit_level="O2"), ms.jit(_net, jit_level="O0")
    x, w = _operands(0)
    kept = [whole(x, w), whole(x, w)]
    none = emulated.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
    monkeypatch.setattr(device.driver.module, "cuGraphInstantiate", lambda *_: none)
    kept += [whole(x, w) for _ in range(3)]
    for got in kept:
        np.testing.assert_allclose(got[0].asnumpy(), stepwise(x, w)[0].asnumpy(), rtol=1e-5)


def _sgd(w, v, x):
    ops.assign(v, v * 0.9 + x * w)
    ops.assign(w, w - 0.1 * v)
    return x.sum()


def _old_value_is_read_later(w, v, x):
    old = w + 0.0
    ops.assign(w, w * 0.5 + x)
    ops.assign(v, ops.tanh(ops.matmul(old, v)))
    return (old * v).sum()


def _other_places_are_read(w, v, x):
    ops.assign(w, w.transpose() + x)
    ops.assign(v, v.sum(0, keepdims=True) + w)
    return v.sum()


def _both_become_one(w, v, x):
    ops.assign(w, v * x)
    ops.assign(v, w)
    return w.mean()


def _unread(w, v, x):
    ops.assign(w, ops.sin(x))
    return ops.matmul(v, x).sum()


UPDATES = (_sgd, _old_value_is_read_later, _other_places_are_read, _both_become_one, _unread)


@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
def test_updates_as_step_by_step(update, device):
    def run(level):
        rng = np.random.default_rng(5)
        arrays = [rng.normal(size=(6, 6)).astype(np.float32) * 0.5 for _ in range(7)]
        w, v = (ms.Parameter(ms.Tensor(a, device=DEVICE), name=n) for a, n in zip(arrays, "wv"))
        step = ms.jit(lambda x: update(w, v, x), jit_level=level)
        found = []
        for k, a in enumerate(arrays[2:]):
            found.append(step(ms.Tensor(a, device=DEVICE)).asnumpy())
            if k % 2:
                found += [w.asnumpy(), v.asnumpy()]
        return [*found, w.asnumpy(), v.asnumpy()]

    for a, b in zip(run("O2"), run("O0"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@emulated_only
def test_an_update_writes_over_the_old_value(device, monkeypatch):
    """So the graph has kernels alone, and copies nothing."""
    w, v = (ms.Parameter(ms.Tensor(np.ones(64, np.float32), device=DEVICE), name=n) for n in "wv")
    step = ms.jit(lambda x: _sgd(w, v, x), jit_level="O2")
    x = ms.Tensor(np.ones(64, np.float32), device=DEVICE)
    graphs = []
    module = device.driver.module
    real = module.cuGraphInstantiate
    monkeypatch.setattr(
        module,
        "cuGraphInstantiate",
        lambda graph, flags: graphs.append(graph) or real(graph, flags),
    )
    for _ in range(3):
        step(x)
    assert graphs
    for graph in graphs:
        assert {function.__name__ for function, *_ in graph} == {"cuLaunchKernel"}


def test_programs_share_an_arena(device):
    """What is in it is not needed after a launch, and launches follow each other."""
    gc.collect()
    functions = (
        lambda x, w: ops.matmul(ops.matmul(x, w), w),
        lambda x, w: ops.matmul(ops.tanh(ops.matmul(x, w)), w),
    )
    programs = [[ms.jit(f, jit_level=level) for level in ("O2", "O0")] for f in functions]
    x, w = _operands(0)
    found = [[run(x, w) for _ in range(3)] for run, _ in programs]
    arena = device.arena(1, "test")
    for (run, want), kept in zip(programs, found, strict=True):
        for got in (*kept, run(x, w)):
            np.testing.assert_allclose(got.asnumpy(), want(x, w).asnumpy(), rtol=1e-4)
    assert device.arena(1, "test").pointer == arena.pointer


def test_requests_are_placed_without_overlap():
    draw = np.random.default_rng(0)
    pool = Pool(lambda size, *_: (1 << 30, 1 << 40), True, 1 << 20)
    trace = Trace(pool)
    pool.lend(trace)
    live, most, spans = [], 0, {}
    for _ in range(800):
        if live and draw.random() < 0.48:
            live.pop(draw.integers(len(live)))
        else:
            live.append(pool.allocate(int(2 ** draw.uniform(0, 26)), "x"))
        most = max(most, sum(m.nbytes for m in live))
    pool.lend(None)
    offsets, nbytes = trace.arrange({3})
    assert set(offsets) == set(range(len(trace.sizes))) - {3}
    for event in trace.events:
        if event < 0:
            spans.pop(~event, None)
        elif event != 3:
            begin, end = offsets[event], offsets[event] + trace.sizes[event]
            assert all(end <= a or b <= begin for a, b in spans.values())
            assert begin % 512 == 0 and end <= nbytes
            spans[event] = begin, end
    assert nbytes < 1.3 * most


def test_other_holders_of_a_parameter_keep_its_value(device):
    run = Stepper()
    run()
    kept = [(run.w.value(), run.w.asnumpy())]
    for k in (0.5, 2.0, -1.0):
        run(k)
        kept.append((ms.Tensor(run.w), run.w.asnumpy()))
        run(k)
        kept.append((run.w.value(), run.w.asnumpy()))
    for tensor, values in kept:
        np.testing.assert_array_equal(tensor.asnumpy(), values)


def test_parameter_set_between_calls(device):
    run = Stepper()
    run()
    run.w.set_data(ms.Tensor(np.full(64, 3, np.float32), device=DEVICE))
    run.want = np.full(64, 3, np.float32)
    run()
    ops.assign(run.w, run.w - 1.0)
    run.want -= 1
    run()


def test_two_programs_alternate_on_a_parameter(device):
    run = Stepper()
    one = ms.Tensor(np.ones(64, np.float32), device=DEVICE)
    halve = ms.jit(lambda one: ops.assign(run.w, ops.tanh(run.w / 2.0) + one), jit_level="O2")
    for _ in range(3):
        run()
        halve(one)
        run.want = np.tanh(run.want / 2) + 1
    np.testing.assert_allclose(run.w.asnumpy(), run.want, rtol=1e-5)


def test_parameter_outlives_the_function(device):
    run = Stepper()
    run()
    run()
    del run.step
    gc.collect()
    others = [ms.Tensor(np.zeros(64, np.float32), device=DEVICE) for _ in range(8)]
    np.testing.assert_allclose(run.w.asnumpy(), run.want, rtol=1e-5)
    del others


def test_swapped_parameters(device):
    a, b = (
        ms.Parameter(ms.Tensor(np.full(4, v, np.float32), device=DEVICE), name=n)
        for n, v in (("a", 1), ("b", 2))
    )

    @ms.jit(jit_level="O2")
    def swap(x):
        old = a + x
        ops.assign(a, b)
        ops.assign(b, old)
        return ops.tanh(x).sum()

    for _ in range(4):
        swap(ms.Tensor(np.zeros(4, np.float32), device=DEVICE))
    assert (float(a[0]), float(b[0])) == (1.0, 2.0)
    swap(ms.Tensor(np.zeros(4, np.float32), device=DEVICE))
    assert (float(a[0]), float(b[0])) == (2.0, 1.0)


@emulated_only
def test_out_of_memory_in_a_step_changes_nothing(device, monkeypatch):
    """Somebody holds the parameter, and there is no memory to take the old value elsewhere."""
    run = Stepper()
    run()
    run()
    run()
    kept, before = run.w.value(), run.w.asnumpy()
    x = ms.Tensor(np.ones(64, np.float32), device=DEVICE)
    float(x[0])
    device.empty_cache()
    monkeypatch.setattr(device.driver.module, "limit", device.driver.module.in_use)
    with pytest.raises(DeviceMemoryError):
        run.step(x)
    monkeypatch.undo()
    np.testing.assert_array_equal(run.w.asnumpy(), before)
    np.testing.assert_array_equal(kept.asnumpy(), before)
    run()
    np.testing.assert_array_equal(kept.asnumpy(), before)


@emulated_only
@pytest.mark.parametrize(
    "function, shapes",
    [
        (lambda x: ops.tanh(x) * 2 + ops.exp(x), [(7, 64), (9, 64), (5, 48)]),
        (lambda x: ops.tanh(x) * 2 + ops.exp(x), [(63,), (97,)]),
        (lambda x: ops.relu(x + x[0]), [(7, 64), (9, 64)]),
        (lambda x: ops.softmax(ops.tanh(x), -1) * x, [(7, 64), (9, 64)]),
    ],
    ids=["elements", "odd elements", "broadcast", "rows"],
)
def test_one_kernel_for_every_number_of_elements(function, shapes, device, monkeypatch):
    """Their number is an argument, so that another batch size compiles nothing."""
    built = []
    real = type(device).build
    monkeypatch.setattr(
        type(device), "build", lambda self, source: built.append(source) or real(self, source)
    )
    for k, shape in enumerate(shapes):
        run, want = ms.jit(function, jit_level="O1"), ms.jit(function, jit_level="O0")
        x = ms.Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
        with monkeypatch.context() as m:
            m.setattr(type(device), "build", real)
            expected = want(x.move_to(DEVICE)).asnumpy()
        before = len(built)
        np.testing.assert_allclose(run(x.move_to(DEVICE)).asnumpy(), expected, rtol=1e-5)
        assert k == 0 or len(built) == before
