"""One program for many sizes: symbolic programs against programs of one shape, bit by bit."""

from __future__ import annotations

import gc
import warnings
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops

from .symbolic_programs import GUARDED, ONE, SINGLE, Encoder

ALL = {**ONE, **GUARDED, **SINGLE}
# The third is the first that is served by a symbolic program; 1 and 0 never are.
SIZES = (3, 5, 6, 7, 4, 2, 11, 1, 0, 16)


def flat(value):
    """Return a result as a list of its parts, with the bits of arrays."""
    if isinstance(value, Tensor):
        return [("tensor", value.shape, str(value.dtype), value.asnumpy().tobytes())]
    if isinstance(value, np.ndarray):
        return [("array", value.shape, str(value.dtype), value.tobytes())]
    if isinstance(value, dict):
        return [("dict", *value), *[p for v in value.values() for p in flat(v)]]
    if isinstance(value, (list, tuple)):
        return [(type(value).__name__, len(value)), *[p for v in value for p in flat(v)]]
    return [(type(value).__name__, repr(value))]


def outcome(function, arguments):
    """Return the parts of a result, or the class and text of the error."""
    try:
        return flat(function(*arguments))
    except Exception as error:  # noqa: BLE001  (compared)
        return type(error).__name__, str(error)


def arguments(shapes, n, seed=0):
    rng = np.random.default_rng(seed + n)
    shapes = [tuple(n if k == 0 else k for k in shape) for shape in shapes]
    return [Tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def families(function):
    """Return what a compiled function knows of its symbolic programs."""
    return [f for cache in function._caches for f in cache.symbolic.families.values()]


def run_both(function, shapes, level, sizes=SIZES, **options):
    """Run a function for many sizes, symbolic and concrete; return the symbolic function."""
    symbolic = ms.jit(function, jit_level=level, **options)
    concrete = ms.jit(function, jit_level=level, dynamic=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the concrete one is compiled for each shape
        for n in sizes:
            found = outcome(symbolic, arguments(shapes, n))
            assert found == outcome(concrete, arguments(shapes, n)), n
    assert not any(family.programs for family in families(concrete))
    return symbolic


@pytest.mark.parametrize("name", ALL)
def test_symbolic_programs_have_the_bits_of_concrete_ones(name: str) -> None:
    function, shapes, reason = ALL[name]
    f = run_both(function, shapes, "O0")
    (family,) = families(f)
    if name in SINGLE:
        assert not family.programs
        assert reason in family.reason
        assert family.reason
    else:
        assert 1 <= len(family.programs) <= (1 if name in ONE else 3)
        # all but the two first shapes, sizes 0 and 1, and at most one that a guard excludes
        assert sum(p.specialised for p in family.programs) >= len(SIZES) - 5


@pytest.mark.parametrize("name", ["attention", "gradients", "statistics", "even", "created"])
def test_fused_programs_agree(name: str) -> None:
    function, shapes, _ = ALL[name]
    fused = ms.jit(function, jit_level="O1", dynamic=1)
    plain = ms.jit(function, jit_level="O0", dynamic=0)
    for n in (3, 5, 6, 9, 16, 33):
        found, want = (f(*arguments(shapes, n)) for f in (fused, plain))
        for x, y in zip(leaves(found), leaves(want), strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)
    assert sum(p.specialised for family in families(fused) for p in family.programs) >= 4


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    return [value.asnumpy() if isinstance(value, Tensor) else value]


# ---- when sizes become symbolic ------------------------------------------------------------------

# jit(dynamic=), and the compilations for six sizes
MODES = [(None, 3), (1, 2), (True, 2), (0, 6), (False, 6)]


@pytest.mark.parametrize(("dynamic", "programs"), MODES)
def test_dynamic_says_when_a_size_becomes_symbolic(dynamic, programs: int) -> None:
    f = ms.jit(lambda x: x.sum(0) * 2, dynamic=dynamic)
    for n in (3, 4, 5, 6, 7, 8):
        assert f(ops.ones((n, 2))).asnumpy().tolist() == [2 * n, 2 * n]
    assert f.cache_info().misses == programs
    for n in (3, 4, 5, 6, 7, 8):  # all are in the cache
        f(ops.ones((n, 2)))
    assert f.cache_info().misses == programs


def test_axes_that_vary_later_become_symbolic_too() -> None:
    f = ms.jit(lambda x: (x * 2).sum())
    for shape in ((3, 4), (5, 4), (6, 4), (7, 4), (8, 5), (9, 6), (10, 7), (2, 9)):
        assert float(f(ops.ones(shape))) == 2 * shape[0] * shape[1]
    assert f.cache_info().misses == 4
    (family,) = families(f)
    assert [len(p.scope.symbols) for p in family.programs] == [1, 2]


def test_equal_sizes_share_a_symbol_until_they_differ() -> None:
    f = ms.jit(lambda x, y: x.sum() + y.sum())
    for n in (3, 4, 5, 6):
        f(ops.ones(n), ops.ones(n))
    assert f.cache_info().misses == 3
    for n, m in ((5, 6), (9, 4), (7, 7)):
        assert float(f(ops.ones(n), ops.ones(m))) == n + m
    assert f.cache_info().misses == 4


def test_other_dtypes_and_ranks_are_programs_of_their_own() -> None:
    f = ms.jit(lambda x: x + x)
    for n in (3, 4, 5, 6, 7):
        for x in (ops.ones(n), ops.ones(n, ms.int32), ops.ones((n, 2))):
            assert flat(f(x)) == flat(x + x)
    assert f.cache_info().misses == 9
    assert len(families(f)) == 3


def test_two_functions_share_one_that_they_call() -> None:
    inner = ms.jit(lambda x: x * x.shape[0])
    one, two = ms.jit(lambda x: inner(x) + 1), ms.jit(lambda x: inner(x[1:]) - 1)
    for n in (3, 4, 5, 6, 7):
        assert one(ops.ones(n)).asnumpy().tolist() == [n + 1] * n
        assert two(ops.ones(n)).asnumpy().tolist() == [n - 2] * (n - 1)
    assert (one.cache_info().misses, two.cache_info().misses) == (3, 3)
    assert inner.cache_info().misses == 0


def test_numbers_that_vary_are_constants_of_programs_of_their_own() -> None:
    f = ms.jit(lambda x, k: x * k)
    for n in (3, 4, 5, 6):
        for k in (2, 3):
            assert f(ops.ones(n), k).asnumpy().tolist() == [k] * n
    assert f.cache_info().misses == 6


def test_a_user_error_of_one_call_is_raised_and_changes_nothing() -> None:
    f = ms.jit(lambda x, y: ops.matmul(x, y))
    for n in (3, 4):
        f(ops.ones((n, 2)), ops.ones((2, 3)))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"(?s)matmul: .*\(5, 2\).*test_symbolic_sizes"):
            f(ops.ones((5, 2)), ops.ones((4, 3)))
    for n in (6, 7, 8):
        assert f(ops.ones((n, 2)), ops.ones((2, 3))).shape == (n, 3)
    assert f.cache_info().misses == 3


# ---- captured values and state -------------------------------------------------------------------

SCALE = 2.0


@pytest.mark.parametrize("policy", ["warn", "recompile"])
def test_captured_values_are_compared_as_before(policy: str, restored) -> None:
    global SCALE
    ms.set_context(stale_captures=policy)
    SCALE = 2.0
    f = ms.jit(lambda x: x * SCALE)
    for n in (3, 4, 5, 6):
        assert f(ops.ones(n)).asnumpy().tolist() == [2.0] * n
    SCALE = 3.0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        old = f(ops.ones(6)).asnumpy().tolist()
    assert old == [2.0 if policy == "warn" else 3.0] * 6
    assert bool(said) is (policy == "warn")
    for n in (7, 8, 9):  # new shapes see the new value, as programs of one shape do
        assert f(ops.ones(n)).asnumpy().tolist() == [3.0] * n
    SCALE = 2.0


def test_a_cell_of_another_width_has_other_programs() -> None:
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ops.ones((2, 3)), name="w")

        @ms.jit
        def construct(self, x):
            return ops.matmul(x, self.w)

    net = Net()
    for n in (3, 4, 5):
        assert net(ops.ones((n, 2))).shape == (n, 3)
    net.w.set_data(ops.ones((2, 5)), slice_shape=True)
    for n in (6, 7, 8):
        assert net(ops.ones((n, 2))).shape == (n, 5)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("written", [False, True])
def test_state_without_a_device_moves_before_a_new_shape(level: str, written: bool) -> None:
    w = ms.Parameter(ops.ones((2, 3)), name="w")

    @ms.jit(jit_level=level, dynamic=1)
    def f(x):
        if written:
            ops.assign_add(w, ops.zeros((2, 3)) + x.sum(0))
        return ops.matmul(x, w.T)

    for n in (3, 4, 5, 6, 4, 7):
        host = np.full((2, 3), n, np.float32)
        w.set_data(Tensor.from_numpy(host))
        for _ in range(2):
            f(ops.ones((n, 3)))
        assert (host == n).all()
        assert w.asnumpy().tolist() == [[n + 2 * n * written] * 3] * 2
    assert f.cache_info().misses == 2


def test_a_flag_that_is_set_back_finds_its_program(restored) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dropout(p=0.5)
    for k, n in enumerate(range(3, 20)):
        net.set_train(k % 2 == 0)
        found = net(ops.ones((n, 64))).asnumpy()
        assert set(found.flat) == ({0.0, 2.0} if k % 2 == 0 else {1.0})
    assert net._graph.cache_info().misses == 4  # two of one shape, and one for each flag


def test_sizes_that_are_served_do_not_count_as_too_many_programs() -> None:
    f = ms.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (*range(3, 20), 1, 0):
            f(ops.ones(n))


# ---- networks ------------------------------------------------------------------------------------


def test_an_encoder_of_varying_length_in_graph_mode(restored) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, jit_level="O0")
    net = Encoder()
    rng = np.random.default_rng(0)
    for n in (5, 6, 7, 9, 4, 17, 33):
        ids = Tensor(rng.integers(0, 50, (3, n)).astype(np.int32))
        found = net(ids).asnumpy()
        ms.set_context(mode=ms.PYNATIVE_MODE)
        assert found.tobytes() == net(ids).asnumpy().tobytes()
        ms.set_context(mode=ms.GRAPH_MODE)
    assert net._graph.cache_info().misses == 3


def test_a_training_step_of_varying_length(restored) -> None:
    """Parameters are the same to the bit after steps that one program served."""

    def trained(dynamic):
        ms.set_seed(1)
        net = Encoder().set_train()
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        criterion = nn.CrossEntropyLoss()
        gradient = ms.value_and_grad(
            lambda ids, y: criterion(net(ids), y), None, optimizer.parameters
        )

        @ms.jit(jit_level="O0", dynamic=dynamic)
        def step(ids, labels):
            value, grads = gradient(ids, labels)
            optimizer(grads)
            return value

        rng = np.random.default_rng(0)
        losses = []
        for n in (5, 6, 7, 9, 12):
            ids = Tensor(rng.integers(0, 50, (n % 3 + 2, n)).astype(np.int32))
            losses.append(float(step(ids, Tensor(np.arange(n % 3 + 2, dtype=np.int32)))))
        values = [p.asnumpy().tobytes() for p in net.get_parameters()]
        return losses, values, step.cache_info().misses

    *found, programs = trained(None)
    *want, single = trained(0)
    assert found == want
    assert (programs, single) == (3, 5)


def test_a_derivative_outside_of_the_function() -> None:
    f = ms.jit(lambda x: (x * x).sum() / x.shape[0])
    gradient = ms.grad(f)
    for n in (3, 4, 5, 6, 7):
        x = Tensor(np.arange(n, dtype=np.float32))
        np.testing.assert_allclose(gradient(x).asnumpy(), np.arange(n) * 2 / n, rtol=1e-6)


# ---- what users are told -------------------------------------------------------------------------


def test_explain_says_sizes_guards_and_reasons() -> None:
    before = ms.jit_stats()["specialised"]

    @ms.jit
    def f(x):
        return x * 2 if x.shape[0] > 4 else x

    for n in (5, 6, 7, 8):
        f(ops.ones((n, 3)))
    (line,) = f.explain(ops.ones((8, 3))).sizes
    assert "shapes (s0, 3) with s0 >= 2" in line
    assert "guards: s0 > 4 (test_symbolic_sizes.py:" in line
    assert "used for 2 shapes" in line
    assert "one program for shapes" in str(f.explain(ops.ones((8, 3))))
    assert ms.jit_stats()["specialised"] - before == 2

    @ms.jit
    def g(x):
        return [row for row in x]

    for n in (3, 4, 5):
        g(ops.ones((n, 3)))
    (line,) = g.explain(ops.ones((5, 3))).sizes
    assert "compiled on their own: its sizes are used as numbers: s0 (" in line


def test_no_warning_about_programs_for_sizes_that_one_serves() -> None:
    f = ms.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(3, 40):
            f(ops.ones(n))
    assert f.cache_info().misses == 3


def test_a_function_with_symbolic_programs_is_collected() -> None:
    f = ms.jit(lambda x: ops.gelu(x).sum(0) / x.shape[0])
    for n in (3, 4, 5, 6):
        f(ops.ones((n, 2)))
    found = weakref.ref(f)
    del f
    gc.collect()
    assert found() is None
