"""Tests that calls of compiled functions notice changed captures (`compiler.guard_code`)."""

import types

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.compiler.guard_code import IdentityCheck, StateChanged
from duograph.errors import CaptureError

N, D = [1.0, 2.0], {"k": 3.0}
LONG = [0.5] * 70
MANY = [[float(k)] for k in range(30)]


class Owner:
    scale = 1.0


OWNER = Owner()


def none():
    return ms.ops.ones((2,)) * N[0] * D["k"] * OWNER.scale


def one(a):
    return a * N[0] * D["k"] * OWNER.scale


def two(a, b):
    return a * N[0] - b * D["k"] * OWNER.scale


def three(a, b, c):
    return a * N[0] - b * D["k"] + c * OWNER.scale


def long_list(a):
    return a * LONG[69] + LONG[0] * N[0] * D["k"] * OWNER.scale


def many_lists(a):
    for k in range(30):
        a = a + MANY[k][0] * N[0] * D["k"] * OWNER.scale
    return a


def _arguments(function):
    n = function.__code__.co_argcount
    return [Tensor(np.full(2, k + 1.5, np.float32)) for k in range(n)]


VALUES = (1.0, 1.0, float("1"), 5.0, True, 2, 2.0, -0.0, 0.0, float("nan"), 1.0)


@pytest.mark.parametrize("function", [none, one, two, three, long_list, many_lists])
@pytest.mark.parametrize("place", ["list", "dict", "attribute"])
def test_every_change_is_seen(function, place):
    ms.set_context(stale_captures="recompile")
    compiled, x = ms.jit(function), _arguments(function)
    for value in VALUES:
        for _ in range(3):
            if place == "list":
                N[0] = LONG[0] = LONG[69] = MANY[29][0] = value
            elif place == "dict":
                D["k"] = value
            else:
                OWNER.scale = value
            got, want = compiled(*x).asnumpy(), function(*x).asnumpy()
            np.testing.assert_array_equal(got, want)
            assert np.array_equal(np.signbit(got), np.signbit(want))
    N[:], D["k"], OWNER.scale, LONG[:], MANY[29][0] = [1.0, 2.0], 3.0, 1.0, [0.5] * 70, 29.0


def test_a_change_and_its_return_are_told_each_time():
    x, compiled = Tensor([1.0, 2.0]), ms.jit(one)
    try:
        for _ in range(3):
            compiled(x)
        for _ in range(2):
            N[0] = 7.0
            with pytest.warns(RuntimeWarning, match=r"N.*was 1\.0"):
                compiled(x)
            compiled(x)  # told once
            N[0] = 1.0
            compiled(x)
    finally:
        N[0] = 1.0


@pytest.mark.parametrize("policy", ["warn", "error"])
@pytest.mark.parametrize("place", ["list", "dict", "attribute"])
def test_a_change_is_reported_at_the_line_of_the_call(policy, place):
    ms.set_context(stale_captures=policy)
    x, compiled = Tensor([1.0, 2.0]), ms.jit(one)
    try:
        for _ in range(3):
            compiled(x)
        N[0] = 7.0 if place == "list" else 1.0
        D["k"] = 7.0 if place == "dict" else 3.0
        OWNER.scale = 7.0 if place == "attribute" else 1.0
        if policy == "warn":
            with pytest.warns(RuntimeWarning, match=r"7\.0 now") as found:
                compiled(x)
            assert [w.filename for w in found] == [__file__]
        else:
            with pytest.raises(CaptureError, match=r"7\.0 now") as error:
                compiled(x)
            assert error.value.__context__ is None
    finally:
        N[0], D["k"], OWNER.scale = 1.0, 3.0, 1.0


def test_a_question_that_raises_reaches_the_caller():
    """An error of a user's property is raised, also if it is one that the check catches."""
    ms.set_context(stale_captures="recompile")

    class Raising:
        error = None

        @property
        def scale(self):
            if self.error is not None:
                raise self.error
            return 2.0

    owner, x = Raising(), Tensor([1.0, 2.0])
    compiled = ms.jit(lambda a: a * owner.scale)
    for _ in range(3):
        compiled(x)
    for error in (KeyError("own"), ValueError("own"), RuntimeError("own")):
        Raising.error = error
        with pytest.raises(type(error), match="own"):
            compiled(x)
        Raising.error = None
        np.testing.assert_array_equal(compiled(x).asnumpy(), [2.0, 4.0])


@pytest.mark.parametrize("function", [one, none])
def test_items_that_are_gone(function):
    ms.set_context(stale_captures="recompile")
    x, compiled = _arguments(function), ms.jit(function)
    try:
        for _ in range(3):
            compiled(*x)
        N.append(3.0)
        np.testing.assert_array_equal(compiled(*x).asnumpy(), function(*x).asnumpy())
        del D["k"]
        with pytest.raises(KeyError):
            compiled(*x)
    finally:
        N[:], D["k"] = [1.0, 2.0], 3.0


def test_errors_of_a_kernel_are_not_taken_for_a_change():
    called = []

    def run(handle):
        called.append(handle)
        raise ValueError("of the kernel")

    held = [1.0]
    guarded = IdentityCheck([], [(held, (held[0],))]).call(run, 1, lambda: False, {})
    with pytest.raises(ValueError, match="of the kernel"):
        guarded(3)
    assert called == [3]
    held[0] = 2.0
    with pytest.raises(StateChanged):
        guarded(3)
    assert called == [3]


class _Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(Tensor([1.0, 2.0]), name="weight")
        self.factor = 2.0

    def construct(self, x):
        return x * self.weight * self.factor


@pytest.mark.parametrize("change", ["set", "assign", "structure", "class", "derivative", "mode"])
def test_the_fast_call_of_a_cell_sees_changes(change):
    ms.set_context(mode=ms.GRAPH_MODE, stale_captures="recompile")
    net, x = _Net(), Tensor([3.0, 4.0])
    for _ in range(4):
        np.testing.assert_array_equal(net(x).asnumpy(), [6.0, 16.0])
    if change == "set":
        net.factor = 3.0
        want = [9.0, 24.0]
    elif change == "assign":
        net.weight.set_data(Tensor([2.0, 2.0]))
        want = [12.0, 16.0]
    elif change == "structure":
        net.weight = ms.Parameter(Tensor([0.0, 1.0]), name="weight")
        want = [0.0, 8.0]
    elif change == "class":
        before = _Net.construct
        _Net.construct = lambda self, x: x + self.weight
        try:
            np.testing.assert_array_equal(net(x).asnumpy(), [4.0, 6.0])
        finally:
            _Net.construct = before
        want = [6.0, 16.0]
    elif change == "derivative":
        gradient = ms.grad(lambda v: net(v).sum(), None, net.trainable_params())(x)
        np.testing.assert_array_equal(gradient[0].asnumpy(), [6.0, 8.0])
        want = [6.0, 16.0]
    else:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net.construct = lambda v: v
        np.testing.assert_array_equal(net(x).asnumpy(), [3.0, 4.0])
        del net.__dict__["construct"]
        ms.set_context(mode=ms.GRAPH_MODE)
        want = [6.0, 16.0]
    for _ in range(4):
        np.testing.assert_array_equal(net(x).asnumpy(), want)


# Pairs of an object and one that is equal but another object, of every kind that guards compare.
EQUAL_PAIRS = {
    "float": (float("0.1"), float("0.1")),
    "zero": (0.0, -0.0),
    "nan": (float("nan"), float("nan")),
    "int": (int("1" * 30), int("1" * 30)),
    "int and float": (1, 1.0),
    "int and bool": (1, True),
    "complex": (complex("1j"), complex("1j")),
    "str": ("".join(["na", "me"]), "".join(["na", "me"])),
    "str like a placeholder": ("object 0", "".join(["object", " 0"])),
    "bytes": (bytes([1, 2]), bytes([1, 2])),
    "tuple": (tuple([1.5]), tuple([1.5])),
    "list": ([1.5], [1.5]),
    "NumPy number": (np.float32(1.5), np.float32(1.5)),
}


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("pair", EQUAL_PAIRS.values(), ids=EQUAL_PAIRS)
def test_guards_compare_identities(pair, n):
    first, second = pair
    assert first is not second
    items, entries = [first] * n, {first if isinstance(first, str) else "key": first}
    (key,) = entries
    check = IdentityCheck([(entries, key, first)], [(items, tuple(items))])
    guarded = check.call(lambda handle: handle, 1, lambda: False, {})
    for _ in range(3):
        assert check.test()()
        assert guarded(5) == 5
    for owner, where in ((items, n - 1), (entries, key)):
        owner[where] = second
        assert not check.test()()
        with pytest.raises(StateChanged):
            guarded(5)
        owner[where] = first
        assert guarded(5) == 5


def test_programs_with_equal_numbers_of_their_own_stay_apart():
    """Two guards share generated code, but neither reads the other's constants."""
    held = [[0.0], [-0.0], [float("0.0")]]
    checks = [IdentityCheck([], [(h, (h[0],))]).test() for h in held]
    for h, own in zip(held, checks):
        before, h[0] = h[0], float("0.0")
        assert [check() for check in checks] == [check is not own for check in checks]
        h[0] = before
        assert all(check() for check in checks)


@pytest.mark.parametrize("policy", ["warn", "ignore", "error", "recompile"])
@pytest.mark.parametrize("mode", ["plain", "recorded"])
def test_a_program_that_only_raised_is_no_old_value(policy, mode):
    """Nothing is worth keeping of a program whose calls have all raised."""
    ms.set_context(stale_captures=policy)
    holder = types.SimpleNamespace(limit=0)

    def function(a):
        if holder.limit < 1:
            print("checked")  # an effect: the error is raised by the program, not while compiling
            raise ValueError(f"limit {holder.limit}")
        return a * holder.limit

    compiled = ms.jit(function)
    run = compiled if mode == "plain" else ms.grad(lambda a: compiled(a).sum())
    x = Tensor([1.0, 2.0])
    for limit in (0, -1, -1, 0):
        holder.limit = limit
        with pytest.raises(ValueError, match=f"limit {limit}"):
            run(x)
    holder.limit = 3
    np.testing.assert_array_equal(run(x).asnumpy(), [3.0, 6.0] if mode == "plain" else [3.0, 3.0])
