"""A user's `bprop` runs in compiled code when, and only when, it runs line by line.

Where a value has no gradient in some run (a branch that is not taken, an iteration whose result is
overwritten), nothing calls its `bprop`, not even with zeros: it may print, count its calls, or
return something that is not 0 for a `dout` of 0. Each program is differentiated once, where the
bits agree, and twice, where a loop may sum in another order.
"""

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, grad, jit, nn, ops

CALLS = []


class Affine(nn.Cell):
    """Doubles its input; its gradient is not 0 where `dout` is 0."""

    def construct(self, x):
        return x * 2.0

    def bprop(self, x, out, dout):
        return (dout * 3 + x * 0.125,)


class Counted(nn.Cell):
    """Doubles its input; every call of its `bprop` is recorded, so that it is not compiled."""

    def construct(self, x):
        return x * 2.0

    def bprop(self, x, out, dout):
        CALLS.append(float(dout.sum().asnumpy()))
        return (dout * 3 + x * 0.125,)


def branch(layer, a):
    y = layer(a)
    if a.sum() > 0:
        z = y * a
    else:
        z = a * a
    return z.sum()


def both_branches(layer, a):
    y, z = layer(a), layer(a * a)
    if a.sum() > 0:
        return (y * y).sum()
    return (z * y).sum()


def overwritten(layer, a):
    v, k = a, Tensor(0)
    while k < 2:
        k = k + 1
        v = ops.tanh(layer(a))
    return v.sum()


def carried(layer, a):
    v, k = a, Tensor(0)
    while k < 3:
        k = k + 1
        v = ops.tanh(layer(v))
    return v.sum()


def swapped(layer, a):
    u, v, k = a, a * a, Tensor(0)
    while k < 3:
        k = k + 1
        u, v = layer(v), ops.sin(a * u)
    return u.sum()


def no_iteration(layer, a):
    v, k = layer(a), Tensor(5)
    while k < 3:
        k = k + 1
        v = layer(v)
    return (v * v).sum()


def branch_in_loop(layer, a):
    v, k = a, Tensor(0)
    while k < 3:
        k = k + 1
        y = layer(v)
        if k == 2:
            v = ops.tanh(y)
        else:
            v = ops.sin(v)
    return (v * a).sum()


def loop_in_loop(layer, a):
    v, k = a, Tensor(0)
    while k < 2:
        k = k + 1
        w, j = a, Tensor(0)
        while j < 2:
            j = j + 1
            w = ops.tanh(layer(v))
        v = ops.sin(w)
    return v.sum()


def loop_in_branch(layer, a):
    v = layer(a)
    if a.sum() > 0:
        k = Tensor(0)
        while k < 2:
            k = k + 1
            v = ops.tanh(layer(a))
    return (v * v).sum()


def descend(layer, n, a):
    if n < 1:
        return a * a
    return ops.tanh(layer(descend(layer, n - 1, a)))


def recursion(layer, a):
    return descend(layer, Tensor(2), a).sum()


def forget(layer, n, a):
    if n < 1:
        return a * a
    forgotten = layer(forget(layer, n - 1, a))
    if n == 2:
        return ops.sin(layer(a))
    return forgotten * a


def recursion_that_forgets(layer, a):
    return forget(layer, Tensor(3), a).sum()


def constant_in_branch(layer, a):
    v = a * a
    if a.sum() > 0:
        v = Tensor([0.5, 0.25])
    return (layer(v) * a).sum()


def cut_in_branch(layer, a):
    v = a * a
    if a.sum() > 0:
        v = ops.stop_gradient(v)
    return (ops.tanh(layer(ops.sin(v))) * a).sum()


def written_in_branch(layer, a):
    v = a * a
    if a.sum() > 0:
        v[...] = 0.125
    return (layer(v) * a).sum()


def constant_beside_active(layer, a):
    v = a * a
    if a.sum() > 0:
        v = Tensor([0.5, 0.25])
    return layer(v + a).sum()


def constant_at_first(layer, a):
    v, k = Tensor([0.5, 0.25]), Tensor(0)
    while k < 3:
        k = k + 1
        v = ops.tanh(layer(v) * a)
    return v.sum()


def constant_without_iteration(layer, a):
    v, k = Tensor([0.5, 0.25]), Tensor(0)
    while k < a.sum():
        k = k + 1
        v = v * a
    return (layer(v) * a).sum()


def choose(n, a):
    if n < 1:
        return Tensor([0.5, 0.25])
    if a.sum() > 0:
        return choose(n - 1, a) * 2.0
    return choose(n - 1, a) * a


def constant_by_recursion(layer, a):
    return (layer(choose(Tensor(2), a)) * a).sum()


def constant_in_nested_branch(layer, a):
    v = a * a
    if a.sum() > 0:
        if a.sum() > 0.5:
            v = Tensor([0.5, 0.25])
        v = layer(v)
    return (v * a).sum()


# Programs that make the layer's input a constant in some of the runs.
CONSTANT = [
    constant_in_branch, cut_in_branch, written_in_branch, constant_beside_active,
    constant_at_first, constant_without_iteration, constant_by_recursion,
    constant_in_nested_branch,
]  # fmt: skip
PROGRAMS = [
    branch, both_branches, overwritten, carried, swapped, no_iteration, branch_in_loop,
    loop_in_loop, loop_in_branch, recursion, recursion_that_forgets, *CONSTANT,
]  # fmt: skip
INPUTS = ([0.3, 0.7], [-0.3, -0.75])


def derivative(program, layer, order):
    def first(a):
        return grad(lambda t: program(layer, t))(a)

    if order == 1:
        return first
    return lambda a: grad(lambda t: first(t).sum())(a)


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_eager_execution(program, order):
    function = derivative(program, Affine(), order)
    compiled = jit(function, jit_level="O0")
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        got, want = compiled(x).asnumpy(), function(x).asnumpy()
        np.testing.assert_allclose(got, want, rtol=1e-6 * (order - 1), err_msg=str(numbers))


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_bprop_with_an_effect_runs_as_often_as_in_eager_execution(program):
    function = derivative(program, Counted(), 1)
    compiled = jit(function, jit_level="O0")
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        CALLS.clear()
        want = function(x).asnumpy()
        eager = list(CALLS)
        for _ in range(3):
            CALLS.clear()
            np.testing.assert_array_equal(compiled(x).asnumpy(), want)
            assert CALLS == eager, numbers


class Printing(Affine):
    """Prints whenever its `bprop` runs."""

    def bprop(self, x, out, dout):
        print("called")
        return (dout * 3 + x * 0.125,)


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("where", ["compiled", "compiled function, derivative outside"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_bprop_that_prints_does_so_as_often_as_in_eager_execution(program, where, order, capfd):
    layer = Printing()
    function = derivative(program, layer, order)
    if where == "compiled":
        compiled = jit(function, jit_level="O0")
    else:
        inner = jit(lambda t: program(layer, t), jit_level="O0")
        compiled = derivative(lambda _, t: inner(t), None, order)
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        want = function(x).asnumpy()
        eager = capfd.readouterr().out.count("called")
        for _ in range(2):
            np.testing.assert_allclose(compiled(x).asnumpy(), want, rtol=1e-6)
            assert capfd.readouterr().out.count("called") == eager, numbers


def test_strict_mode_names_the_bprop_whose_run_depends_on_a_branch():
    function = derivative(constant_in_branch, Printing(), 1)
    compiled = jit(function, jit_syntax_level=ms.STRICT)
    with pytest.raises(ms.errors.UnsupportedSyntaxError, match="bprop of Printing that prints"):
        compiled(Tensor([0.3, 0.7]))


WRITES = {
    "assign": lambda cell: ops.assign(cell.count, cell.count + 1),
    "augmented": lambda cell: setattr(cell, "count", cell.count.add_(1)),
    "set_data": lambda cell: cell.count.set_data(cell.count + 1),
    "item": lambda cell: cell.count.__setitem__(..., cell.count + 1),
    "AssignAdd": lambda cell: ops.AssignAdd()(cell.count, Tensor(1.0)),
    "attribute": lambda cell: setattr(cell, "number", cell.number + 1),
    "list": lambda cell: cell.seen.append(1),
    "dict": lambda cell: cell.table.update(n=cell.table["n"] + 1),
    "global list": lambda cell: CALLS.append(1),
}


def writing_cell(write):
    class Writing(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(0.0), name="count", requires_grad=False)
            self.number, self.seen, self.table = 0, [], {"n": 0}

        def construct(self, x):
            return x * 2.0

        def bprop(self, x, out, dout):
            write(self)
            return (dout * 3,)

    return Writing()


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("where", ["compiled", "compiled function, derivative outside"])
def test_what_a_bprop_writes_is_written(write, where):
    CALLS.clear()
    cell, x = writing_cell(write), Tensor([1.0, 2.0])
    if where == "compiled":
        function = jit(grad(lambda a: cell(a).sum()))
    else:
        compiled = jit(lambda a: cell(a).sum())
        function = grad(compiled)
    for n in range(1, 4):
        np.testing.assert_array_equal(function(x).asnumpy(), [3.0, 3.0])
        counts = [cell.count.item(), cell.number, len(cell.seen), cell.table["n"], len(CALLS)]
        assert sorted(counts) == [0, 0, 0, 0, n]


def test_a_bprop_that_writes_is_refused_in_strict_mode_with_its_name():
    cell = writing_cell(WRITES["assign"])
    with pytest.raises(ms.errors.UnsupportedSyntaxError, match="its bprop writes to a Tensor"):
        jit(grad(lambda a: cell(a).sum()), jit_syntax_level=ms.STRICT)(Tensor([1.0]))


def test_a_replaced_bprop_is_noticed():
    class Scaled(nn.Cell):
        def construct(self, x):
            return x * 2.0

    def scaled(k):
        return lambda self, x, out, dout: (dout * k,)

    ms.set_context(stale_captures="recompile")
    cell, x = Scaled(), Tensor([1.0])
    gradient = jit(grad(lambda a: cell(a).sum()))
    for change, want in [(None, 2.0), (3.0, 3.0), (5.0, 5.0), (None, 2.0), (3.0, 3.0)]:
        if change is not None:
            Scaled.bprop = scaled(change)
        elif "bprop" in vars(Scaled):
            del Scaled.bprop
        for _ in range(3):
            assert gradient(x).item() == want
    factors = [4.0]
    Scaled.bprop = lambda self, x, out, dout: (dout * factors[0],)
    assert gradient(x).item() == 4.0
    factors[0] = 6.0
    assert gradient(x).item() == 6.0
    ms.set_context(stale_captures="warn")


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_derivative_inside_another_calls_only_what_leads_to_its_inputs(mode):
    """The inner derivative is with respect to `a`, on which the layer's input does not depend."""
    layer = Counted()

    def inner(a, b):
        return (layer(b) * a).sum()

    def outer(x):
        return (grad(inner)(x, x) * x).sum()

    CALLS.clear()
    function = grad(outer) if mode == "eager" else jit(grad(outer), jit_level="O0")
    got = function(Tensor([0.5, 2.0]))
    assert CALLS == [2.5]  # once, for the outer derivative: dout is x
    np.testing.assert_array_equal(got.asnumpy(), [0.5 * 5 + 0.0625, 2.0 * 5 + 0.25])


def test_a_hook_runs_only_in_derivatives_that_reach_its_tensor():
    seen = []

    def inner(a, b):
        c = b * 2.0
        c.register_hook(lambda g: seen.append(g.asnumpy().tolist()))
        return (c * a).sum()

    def outer(x):
        return (grad(inner)(x, x) * x).sum()

    grad(outer)(Tensor([0.5, 2.0]))
    assert seen == [[0.5, 2.0]]


@pytest.mark.filterwarnings("ignore:.*runs line by line")
@pytest.mark.parametrize(
    "write, read",
    [
        (WRITES["assign"], lambda cell: cell.count),
        (WRITES["attribute"], lambda cell: cell.number),
        (WRITES["list"], lambda cell: len(cell.seen)),
        (WRITES["dict"], lambda cell: cell.table["n"]),
        (WRITES["global list"], lambda cell: len(CALLS)),
    ],
    ids=["Parameter", "attribute", "list", "dict", "global list"],
)
def test_code_after_a_derivative_sees_what_the_bprop_wrote(write, read):
    CALLS.clear()
    cell, x = writing_cell(write), Tensor([1.0, 2.0])

    @jit
    def step(a):
        return grad(lambda t: cell(t).sum())(a) * read(cell)

    for n in range(1, 4):
        np.testing.assert_array_equal(step(x).asnumpy(), [3.0 * n, 3.0 * n])


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("inner", [0, 1, 2])
def test_a_carry_that_is_read_before_its_loop_and_overwritten_in_it(inner, where, capfd):
    class Printing(Affine):
        def bprop(self, x, out, dout):
            print("called")
            return (dout * 0.5 + 0.25,)

    layer = Printing()

    def program(a):
        c, k = ops.sin(a), Tensor(0)
        b = a * c
        while k < 2:
            k = k + 1
            if a.sum() > 1:
                b = b + c
            j = Tensor(0)
            while j < inner:
                j = j + 1
                c = layer(a)
        return (b + a * c).sum()

    function = derivative(lambda _, a: program(a), layer, 2)
    if where == "inside":
        compiled = jit(function, jit_level="O0")
    else:
        whole = jit(program, jit_level="O0")
        compiled = derivative(lambda _, a: whole(a), layer, 2)
    for numbers in ([0.3, 0.7], [0.5, 0.75], [-0.3, -0.75]):
        x = Tensor(np.array(numbers, np.float32))
        want = function(x).asnumpy()
        eager = capfd.readouterr().out.count("called")
        np.testing.assert_allclose(compiled(x).asnumpy(), want, rtol=1e-6, err_msg=str(numbers))
        assert capfd.readouterr().out.count("called") == eager, numbers
