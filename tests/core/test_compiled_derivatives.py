"""What derivatives do in compiled code is what they do line by line: values and effects.

Each program is a source text that defines `f`. It is called and differentiated once and twice, line
by line and compiled, with the derivative inside of the compiled function and around it. The tests
compare results, printed output, errors, what the variables in `WATCH` hold afterwards, and whether
the program ran line by line although it need not. Bits agree up to the first derivative.
"""

import contextlib
import io
import itertools
import linecache
import textwrap
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, grad, jit, nn, ops
from duograph.conformance.compare import difference_of, same_words, snapshot, without_location
from duograph.conformance.program_runs import total

LINE_BY_LINE = "runs line by line"
NUMBERS = itertools.count()
INPUTS = ([0.3, 0.7], [-0.4, -0.75], [0.3, 0.7])


def cell(construct, bprop, use="c(x)"):
    """Return the source of a program with a Cell that has the given methods."""
    return f"""
class Holder:
    def __init__(self):
        self.n = 2.0

class C(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1.5, 2.5]), name="w")
        self.n, self.table, self.keep = 3, {{"n": 1.0}}, None

    def construct{construct}

    def bprop{bprop}

c = C()
WATCH = ("c.w", "c.n", "c.table")

def f(x):
    return {use}
"""


def double(bprop, use="c(x)"):
    return cell("(self, x): return x * 2.0", f"(self, x, out, dout): {bprop}", use)


def multiply(construct, bprop, use):
    return cell(f"(self, x): {construct}", f"(self, x, out, dout): {bprop}", use)


# An invalid `bprop` is no error until a derivative calls it.
INVALID = {
    "an array": double("return (np.array([2.5, 1.0], np.float32),)"),
    "nothing": double("return ()"),
    "too many": double("return dout, dout"),
    "a wrong shape": double("return (dout.sum(),)"),
    "a complex number": double("return (2j,)"),
    "a string": double("return ('a',)"),
    "a dict": double("return {'a': dout}"),
    "nested": double("return ((dout,),)"),
    "an error": double("raise NotImplementedError('no gradient')"),
    "an error in one branch": double("return (dout,) if x.sum() > 0 else (dout * self.missing,)"),
    "an error after a print": double("print('bprop'); raise ValueError('no gradient')"),
    "unused": double("raise ValueError('no gradient')", "(c(x), x * x)[1]"),
    "stopped": double("raise ValueError('no gradient')", "ops.stop_gradient(c(x)) * x"),
    "without inputs in keywords": cell(
        "(self, x, k=2.0): return x * k", "(self, x, out, dout): return (dout * 3,)", "c(x, k=4.0)"
    ),
}

RESULTS = {
    "numbers beside tensors": multiply(
        "return x * 2, 3, None",
        "print(len(out), out[1], out[2], len(dout)); return (dout[0] * out[1],)",
        "c(x)[0] * x",
    ),
    "numbers of the data beside tensors": multiply(
        "return x * 2, float(x.sum())",
        "print(len(out), len(dout)); return (dout[0] * out[1],)",
        "c(x)[0] * x",
    ),
    "a list": multiply(
        "return [x * 2, x * 3]",
        "print(type(out).__name__, len(dout)); return (dout[0] * out[1],)",
        "c(x)[0] * x",
    ),
    "nested": multiply(
        "return x * 2, (x * 3, [x * 4])",
        "print(len(out), type(out[1]).__name__, len(dout)); return (dout[2],)",
        "c(x)[1][1][0] * x",
    ),
    "a number alone": multiply("return 3.0", "print('bprop'); return (dout,)", "c(x) * x"),
    "None": multiply("return None", "print('bprop'); return (dout,)", "(c(x), x * 2)[1]"),
    "a number and a write": multiply(
        "ops.assign(self.w, self.w + 1); return 3.0",
        "print('bprop'); return (dout,)",
        "c(x) * x * c.w",
    ),
    "from an integer": cell(
        "(self, i): return i * 2.0",
        "(self, i, out, dout): print('bprop'); return (dout,)",
        "c((x * 10).astype(ms.int32)) * x",
    ),
    "from a bool": cell(
        "(self, i): return i * 2.0",
        "(self, i, out, dout): print('bprop'); return (dout,)",
        "c(x.astype(ms.bool_)) * x",
    ),
}

# A bprop reads what it reads when the derivative is computed, and writes to inputs are writes.
LATE = {
    "Parameter written by construct": multiply(
        "ops.assign(self.w, self.w + 1); return x * self.w",
        "return (dout * self.w,)",
        "grad(c)(x) * c.w",
    ),
    "Parameter written after the call": multiply(
        "return x * self.w",
        "return (dout * self.w,)",
        "grad(lambda a: (c(a), ops.assign(c.w, c.w * 2))[0])(x)",
    ),
    "Parameter written after the call, derivative outside": multiply(
        "return x * 2", "return (dout * self.w,)", "(c(x), ops.assign(c.w, c.w * 2))[0]"
    ),
    "attribute written by construct": multiply(
        "self.n = self.n + 1; return x * 2", "return (dout * self.n,)", "grad(lambda a: c(c(a)))(x)"
    ),
    "dict written by construct": multiply(
        "self.table['n'] += 1.0; return x * 2",
        "return (dout * self.table['n'],)",
        "grad(lambda a: c(c(a)))(x)",
    ),
    "attribute written after the call": multiply(
        "return x * 2",
        "return (dout * self.n,)",
        "grad(lambda a: (c(a), setattr(c, 'n', c.n + 1))[0])(x)",
    ),
    "attribute made by construct": multiply(
        "self.saved = x * 2; return x * 2", "return (dout * self.saved,)", "c(x) * x"
    ),
    "Tensor that construct stores": multiply(
        "self.keep = x * 2; return x * 2", "return (dout * self.keep,)", "c(c(x)) * x"
    ),
    "list argument written after the call": cell(
        "(self, x, k): return x * k[0]",
        "(self, x, k, out, dout): return dout * k[0], None",
        "(lambda k: (c(x, k), k.append(k.pop() + 2)))([3.0])[0] * x",
    ),
    "dict argument written by construct": cell(
        "(self, x, k): k['n'] = 7.0; return x * 2",
        "(self, x, k, out, dout): return dout * k['n'], None",
        "c(x, {'n': 1.0}) * x",
    ),
    "object argument written after the call": cell(
        "(self, x, k): return x * k.n",
        "(self, x, k, out, dout): return dout * k.n, None",
        "(lambda k: (c(x, k), setattr(k, 'n', 5.0)))(Holder())[0] * x",
    ),
    "Parameter written between two calls of a pullback": multiply(
        "return x * 2",
        "return (dout * self.w,)",
        "(lambda p: p(x)[0] + (ops.assign(c.w, c.w + 1), p(x)[0])[1])(ms.vjp(c, x)[1])",
    ),
    "input written by construct": multiply(
        "x[0] = 4.0; return x * x", "return (dout * x,)", "(lambda y: (c(y) * y, y))(x * 1)"
    ),
    "input added to by construct": multiply(
        "x += 4.0; return x * x", "return (dout * x,)", "c(x) * x"
    ),
}
# These do not run line by line: nothing is written between the call and its derivative.
IN_TIME = {
    "Parameter written before the call": multiply(
        "return x * 2", "return (dout * self.w,)", "(ops.assign(c.w, c.w + x), grad(c)(x))[1]"
    ),
    "Parameter written after the derivative": multiply(
        "return x * 2",
        "return (dout * self.w,)",
        "(lambda g: (g, ops.assign(c.w, c.w - g)))(grad(c)(x))[0]",
    ),
    "two derivatives with a write between": multiply(
        "return x * 2",
        "return (dout * self.w,)",
        "grad(c)(x) + (ops.assign(c.w, c.w + 1), grad(c)(x))[1]",
    ),
    "another Parameter": multiply(
        "self.n = self.n + 1; return x * 2", "return (dout * self.w,)", "grad(c)(x) * c.n"
    ),
}

PRELUDE = """
W = Parameter(Tensor([2.0, 3.0]), name="W")
V = Parameter(Tensor([0.5, 1.5]), name="V")
WATCH = ("W", "V")
"""
ERRORS = {
    "write before a caught error": """
def f(x):
    def h(a):
        ops.assign(V, V + 1)
        raise ValueError("p")
    try:
        return grad(h)(x)
    except ValueError:
        return x * ops.stop_gradient(V)
""",
    "print and local write before a caught error": """
def f(x):
    seen = []
    def h(a):
        print("h")
        seen.append(a * 2)
        raise ValueError("p")
    try:
        return grad(h)(x)
    except ValueError as error:
        print(error, len(seen))
        return x * x
""",
    "write before an error of the transform": """
def f(x):
    def h(a):
        ops.assign(V, V + 1)
        return None
    try:
        return grad(h)(x)
    except TypeError:
        return x * ops.stop_gradient(V)
    except ValueError:
        return x * 5
    except RuntimeError:
        return x * ops.stop_gradient(V)
""",
    "write before an error in a Cell with a bprop": """
class C(nn.Cell):
    def construct(self, x):
        ops.assign(V, V + 1)
        raise ValueError("p")
    def bprop(self, x, out, dout):
        return (dout,)
c = C()
def f(x):
    try:
        return c(x)
    except ValueError:
        return x * ops.stop_gradient(V)
""",
}
AUX = {
    "containers": """
def f(x):
    def h(a):
        return (a * a).sum(), {"n": 3, "t": a * 2, "s": "text", "l": [a, 1, None]}, None, 2.5
    (v, *aux), g = ms.value_and_grad(h, has_aux=True)(x)
    aux[0]["l"].append(v)
    return v, aux[0]["t"], aux[0]["l"], aux[2], g
""",
    "containers of jvp": """
def f(x):
    return ms.jvp(lambda a: (a * W, a * 2, "k", {"d": a}), x, x, has_aux=True)
""",
    "containers of a Jacobian": """
def f(x):
    h = lambda a: (a * a, {"k": a * 3})
    return ms.jacrev(h, has_aux=True)(x), ms.jacfwd(h, has_aux=True)(x)
""",
}
WEIGHTS = {
    "twice": """
def f(x):
    return grad(lambda a: ops.stop_gradient(a) * W * W, None, [W, V, W])(x)
""",
    "only read by a bprop": """
class C(nn.Cell):
    def construct(self, x):
        return x * 2
    def bprop(self, x, out, dout):
        return (dout * W,)
c = C()
def f(x):
    return grad(lambda a: c(a), 0, [W])(x)
""",
}
LOOPS = {
    "derivative of a loop in a loop": """
def h(a):
    k = Tensor(0)
    while k < 2:
        a = ops.sin(a) * a
        k = k + 1
    return a.sum()
def f(x):
    y, k = x, Tensor(0)
    while k < 2:
        y = y - 0.1 * grad(h)(y)
        k = k + 1
    return y
""",
    "derivative of a recursion": """
def h(n, a):
    if n < 1:
        return a
    return h(n - 1, ops.sin(a)) * a
def f(x):
    return grad(lambda a: h(Tensor(3), a))(x)
""",
}
UNCOMPILED_LOOPS = {
    "Jacobian of a loop": """
def f(x):
    def h(a):
        k = Tensor(0)
        while k < 2:
            a = ops.sin(a) * x
            k = k + 1
        return a
    return ms.jacrev(h)(x)
""",
    "derivative inside the recursion": """
def h(n, a):
    if n < 1:
        return a
    return a * grad(lambda b: h(n - 1, ops.sin(b)))(a)
def f(x):
    return h(Tensor(2), x)
""",
    "pullback outside of its branch": """
def f(x):
    if x.sum() > 0:
        out, pull = ms.vjp(lambda a: ops.sin(a) * a, x)
    else:
        out, pull = ms.vjp(lambda a: ops.cos(a) * a, x)
    return pull(x)[0]
""",
}


def loaded(source, transform):
    text = textwrap.dedent(source)
    file = f"<derivatives {next(NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {
        "__name__": "__program__", "ms": ms, "nn": nn, "ops": ops, "np": np, "Tensor": Tensor,
        "Parameter": Parameter, "grad": grad, "jit": transform,
    }  # fmt: skip
    exec(compile(text, file, "exec"), space)
    return space


def derived(f, order):
    if order == 0:
        return f
    inner = derived(f, order - 1)
    return lambda x: grad(lambda a: total(inner(a)))(x)


def observed(source, order, where):
    """Return what each call did, and the warnings about functions that are not compiled."""
    compiled = lambda f: jit(f, jit_level="O0")  # noqa: E731
    space = loaded(source, compiled)
    f = compiled(space["f"]) if where == "outside" else space["f"]
    function = derived(f, order)
    function = compiled(function) if where == "inside" else function
    found, said = [], []
    for numbers in INPUTS:
        x, out, error, result = Tensor(numbers), io.StringIO(), None, None
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = snapshot(function(x))
            except Exception as raised:  # noqa: BLE001 (compared below)
                words = without_location(tuple(map(str, raised.args)))
                error = (type(raised).__qualname__, words)
        said += [str(w.message) for w in caught if LINE_BY_LINE in str(w.message)]
        after = [snapshot(eval(name, space)) for name in space.get("WATCH", ())]
        found.append((result, error, out.getvalue().split(), (after, snapshot(x))))
    return found, said


def check(source, orders=(0, 1, 2), uncompiled=False, shift=0):
    for order in orders:
        near = None if order + shift < 2 else 1e-5
        want, _ = observed(source, order, "eager")
        for where in ("inside", "outside") if order else ("outside",):
            got, said = observed(source, order, where)
            for k, (a, b) in enumerate(zip(want, got, strict=True)):
                label = f"order {order}, derivative {where}, call {k + 1}"
                assert a[1] == b[1], label
                assert same_words(a[2], b[2]), (label, a[2], b[2])
                assert difference_of(a[0], b[0], "result", near) is None, label
                assert difference_of(a[3], b[3], "afterwards", near) is None, label
            if not uncompiled:
                assert not said, (order, where)


def table(programs):
    return pytest.mark.parametrize("source", programs.values(), ids=programs)


@table(INVALID)
def test_an_invalid_bprop_is_an_error_of_the_derivative(source):
    check(source, uncompiled="missing" in source)


@table(RESULTS)
def test_a_bprop_gets_what_construct_returned(source):
    check(source, shift=1, uncompiled="float(" in source)


@table(LATE)
def test_a_bprop_reads_what_was_written_before_the_derivative(source):
    check(source, orders=(0, 1), uncompiled=True, shift=1)


@table(IN_TIME)
def test_writes_before_a_call_and_after_a_derivative_are_compiled(source):
    check(source, orders=(0,), shift=1)


@table(ERRORS)
def test_effects_before_a_caught_error_stay(source):
    check(PRELUDE + source, uncompiled=True)


@table(AUX)
def test_auxiliary_results_may_be_containers(source):
    check(PRELUDE + source, shift=1)


@table(WEIGHTS)
def test_weights_may_be_repeated_or_unused(source):
    check(PRELUDE + source, orders=(0,))


@table(LOOPS)
def test_derivatives_of_derivatives_of_loops(source):
    check(source, shift=1)


@table(UNCOMPILED_LOOPS)
def test_derivatives_that_a_graph_cannot_hold_run_line_by_line(source):
    check(source, uncompiled=True, shift=1)


@pytest.mark.parametrize("how", ["weight", "Parameter as input", "Tensor as input"])
def test_hooks_of_outside_tensors_run_and_are_noticed(how):
    w, seen = Parameter(Tensor([2.0, 3.0]), name="w"), []
    if how == "weight":
        gradient = jit(lambda x: grad(lambda a: (a * w).sum(), None, [w])(x))
    else:
        w = w if how == "Parameter as input" else Tensor([2.0, 3.0])
        gradient = jit(lambda x: grad(lambda a: (a * x).sum(), (0,))(w))
    x = Tensor([1.0, 2.0])

    def called():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*{LINE_BY_LINE}")
            return gradient(x)[0].asnumpy().tolist()

    assert [called() for _ in range(3)] == [[1.0, 2.0]] * 3
    handle = w.register_hook(lambda g: g * 3)
    other = w.register_hook(lambda g: seen.append(g.asnumpy().tolist()))
    assert [called() for _ in range(2)] == [[3.0, 6.0]] * 2
    assert seen == [[3.0, 6.0]] * 2
    handle.remove()
    assert called() == [1.0, 2.0] and seen[2:] == [[1.0, 2.0]]
    other.remove()
    assert called() == [1.0, 2.0] and len(seen) == 3


def test_a_gradient_that_a_bprop_loses_is_an_error_in_every_order():
    class C(nn.Cell):
        def construct(self, p, y):
            return p[0] * y

        def bprop(self, p, y, out, dout):
            return None, dout * 3

    c = C()
    f = lambda x: c((x * 2, 1), x)  # noqa: E731
    for order in (1, 2):
        for given in (derived(f, order), derived(jit(f, jit_level="O0"), order)):
            with pytest.raises(ms.errors.GradientError, match=r"^C: the function uses a Tensor"):
                given(Tensor([1.0, 2.0]))
