"""The seed document on combining dynamic and static graphs, program by program, and its six
precautions.

D01, D02, D03, D04, D11, D16, D17, D18, D19, D20, D22, D26, D27, C25, C39: what the document prints
"""

from __future__ import annotations

import re
import textwrap

import duograph as ms
import numpy as np
import pytest
from duograph import errors, nn, ops

X = np.array([1.0, 2.0, 3.0], np.float32)

COMBINED = """
from duograph import ms_function

class Add(nn.Cell):
    def construct(self, x):
        x = x + x
        x = x + x
        return x

class Mul(nn.Cell):
    @ms_function
    def construct(self, x):
        x = x * x
        x = x * x
        return x

class Test(nn.Cell):
    def __init__(self):
        super(Test, self).__init__()
        self.add = Add()
        self.mul = Mul()

    def construct(self, x):
        x = self.add(x)
        x = self.mul(x)
        x = self.add(x)
        return x

ms.set_context(mode=ms.PYNATIVE_MODE)
"""

PROGRAMS = {
    "combined": (
        COMBINED
        + """
x = ms.Tensor(np.ones([3, 3], dtype=np.float32))
print("init x:\\n", x)
net = Test()
x = net(x)
print("\\nx:\\n", x)
""",
        """
        init x:
         [[1. 1. 1.]
         [1. 1. 1.]
         [1. 1. 1.]]

        x:
         [[1024. 1024. 1024.]
         [1024. 1024. 1024.]
         [1024. 1024. 1024.]]
        """,
    ),
    # C39: the backward parts of eager and compiled code are joined
    "gradient of the combination": (
        COMBINED
        + """
x = ms.Tensor(np.ones([3, 3], dtype=np.float32))
print(ops.GradOperation()(Test())(x))
""",
        """
        [[4096. 4096. 4096.]
         [4096. 4096. 4096.]
         [4096. 4096. 4096.]]
        """,
    ),
    "independent function": (
        """
from duograph import ms_function
ms.set_context(mode=ms.PYNATIVE_MODE)

@ms_function
def add_func(x, y):
    return ops.add(x, y)

x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
out = add_func(x, y)
print(out)
""",
        "[5. 7. 9.]",
    ),
    "member function": (
        """
from duograph import ms_function
ms.set_context(mode=ms.PYNATIVE_MODE)

class Add(nn.Cell):

    @ms_function # Use the modifier to specify the execution in static graph mode.
    def construct(self, x, y):
        out = x + y
        return out

x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

grad_ops = ops.GradOperation(get_all=True)  # Define the derivation operation.
net = Add()
grad_out = grad_ops(net)(x, y)

print("Infer result:\\n", net(x, y))

print("Gradient result:")
print("Grad x Tensor1:\\n", grad_out[0])  # Derivation of x
print("Grad y Tensor2:\\n", grad_out[1])  # Derivation of y
""",
        """
        Infer result:
         [5. 7. 9.]
        Gradient result:
        Grad x Tensor1:
         [1. 1. 1.]
        Grad y Tensor2:
         [1. 1. 1.]
        """,
    ),
    # Precaution 5, scenario 1
    "a local of a global's name": (
        """
from duograph import ms_function

# pylint: disable=W0612

value = 5

@ms_function
def func(x, y):
    out = x + y
    value = 1
    return out

ms.set_context(mode=ms.PYNATIVE_MODE)
x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
y = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
func(x, y)
print(value)
""",
        "5",
    ),
    # Precaution 6, scenario 1
    "an operator from outside": (
        """
from duograph import ms_function

ms.set_context(mode=ms.PYNATIVE_MODE)

add = ops.Add()

@ms_function
def add_fn(x, y):
    res = add(x, y)
    return res

x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
z = add_fn(x, y)

print("x:", x.asnumpy(), "\\ny:", y.asnumpy(), "\\nz:", z.asnumpy())
""",
        """
        x: [1. 2. 3.]
        y: [4. 5. 6.]
        z: [5. 7. 9.]
        """,
    ),
}
# Precaution 5, scenario 2
STALE = """
from duograph import ms_function

class Func(nn.Cell):
    def __init__(self):
        super(Func, self).__init__()
        self.value = 5

    @ms_function
    def construct(self, x):
        out = self.value + x
        return out

ms.set_context(mode=ms.PYNATIVE_MODE)
x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
func = Func()
print("out1:", func(x))
func.value = 1
print("out2:", func(x))
"""
# Precaution 6, scenario 2
CONVOLUTION = """
from duograph import ms_function

ms.set_context(mode=ms.PYNATIVE_MODE)

# Instantiate the conv_obj operator in the conv_fn function.
conv_obj = nn.Conv2d(in_channels=3, out_channels=4, kernel_size=3, stride=2, padding=0)
conv_obj.init_parameters_data()

@ms_function
def conv_fn(x):
    res = conv_obj(x)
    return res

input_data = np.random.RandomState(0).randn(1, 3, 3, 3).astype(np.float32)
z = conv_fn(ms.Tensor(input_data))
print(z.asnumpy())
"""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in textwrap.dedent(text).strip("\n").splitlines()]


@pytest.mark.filterwarnings("ignore:.*ms_function.*:DeprecationWarning")
class TestSeedDocument:
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_program(self, name, load, capsys):
        source, wanted = PROGRAMS[name]
        load(source)
        assert _lines(capsys.readouterr().out) == _lines(wanted)

    def test_an_attribute_changed_later(self, load, capsys, warned):
        """D22: The seed's own output, twice `[6. 7. 8.]`, under the default policy, which says so
        once.
        """
        load(STALE)
        assert capsys.readouterr().out == "out1: [6. 7. 8.]\nout2: [6. 7. 8.]\n"
        (warning,) = [w for w in warned if not issubclass(w.category, DeprecationWarning)]
        assert re.search(r"value.*5.*1", str(warning.message), re.DOTALL)

    def test_the_same_without_a_warning(self, load, capsys):
        ms.set_context(stale_captures="ignore")
        load(STALE)
        assert capsys.readouterr().out == "out1: [6. 7. 8.]\nout2: [6. 7. 8.]\n"

    def test_a_layer_with_weights_from_outside(self, load, capsys):
        """D27: output shape (1, 4, 2, 2), nested as NumPy prints four axes; live weights."""
        space = load(CONVOLUTION)
        out = space["z"]
        assert out.shape == (1, 4, 2, 2)
        x = ms.Tensor(space["input_data"])
        np.testing.assert_array_equal(out.asnumpy(), space["conv_obj"](x).asnumpy())
        assert capsys.readouterr().out == f"{out.asnumpy()}\n"
        assert capsys.readouterr().out.count("[[[[") <= 1
        space["conv_obj"].weight.set_data(ops.zeros_like(space["conv_obj"].weight))
        assert not space["conv_fn"](x).asnumpy().any()


class TestSyntax:
    """Precautions 1 to 3: what is outside the syntax scope is an error; control flow.

    Breakpoints.
    """

    @pytest.mark.parametrize(
        "line",
        [
            "import inspect; await inspect",
            "(yield x)",
            "class Inner: pass",
            "breakpoint()",
            "eval('x')",
        ],
    )
    def test_what_cannot_be_compiled_is_refused_at_strict(self, line, load):
        kind = "async def" if "await" in line else "def"
        source = f"@ms.jit(fullgraph=True)\n{kind} f(x):\n    {line}\n    return x + 1\n"
        with pytest.raises(errors.UnsupportedSyntaxError) as caught:
            load(source)["f"](ms.Tensor(X))
        text = str(caught.value)
        assert isinstance(caught.value, RuntimeError)
        assert len(text.splitlines()) <= 15
        assert "^" in text and "<test" in text  # the caret, and the place

    def test_control_flow(self, agree):
        agree(
            """
            @jit
            def f(x, n):
                if n > 2:
                    x = x + 1
                for i in range(n):
                    if x.sum() > 20:
                        break
                    x = x * 2
                while x.max() < 100:
                    x = x + x
                return x
            """,
            X,
            4,
            grad=(0,),
        )

    def test_breakpoints_work_outside_and_not_inside(self, load, monkeypatch, warned):
        """D18: line by line code may stop at a breakpoint; a function that has one is not compiled,
        and says so.
        """
        stops = []
        monkeypatch.setattr("sys.breakpointhook", lambda *a, **k: stops.append("stop"))
        space = load("""
            @ms.jit
            def inner(x):
                return x * 2

            def outer(x):
                breakpoint()
                return inner(x)

            @ms.jit
            def inside(x):
                breakpoint()
                return x * 2
        """)
        assert space["outer"](ms.Tensor(X)).asnumpy().tolist() == [2, 4, 6]
        assert stops == ["stop"]
        assert space["inside"](ms.Tensor(X)).asnumpy().tolist() == [2, 4, 6]
        assert stops == ["stop", "stop"]
        (warning,) = warned
        assert "breakpoint" in str(warning.message)
        ms.set_context(jit_syntax_level="STRICT")
        with pytest.raises(errors.UnsupportedSyntaxError, match="breakpoint"):
            space["inside"](ms.Tensor(X))


# ---- precaution 4
# -----------------------------------------------------------------------------------

HOOKS = {
    "HookBackward": """
        def seen(grad):
            print("hook")
            return grad * 10

        hook = ops.HookBackward(seen)

        @ms.jit
        def f(x):
            return (hook(x * 2) * 3).sum()
    """,
    "register_hook": """
        @ms.jit
        def f(x):
            y = x * 2
            y.register_hook(lambda grad: grad * 10)
            return (y * 3).sum()
    """,
}


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("level", ("LAX", "STRICT"))
def test_hooks_are_refused(name, level, load):
    """D19: Hook operator in compiled code is never *silently* dropped: refused, with the reason and
    what to do.
    """
    ms.set_context(jit_syntax_level=level)
    f = load(HOOKS[name])["f"]
    with pytest.raises(errors.UnsupportedSyntaxError, match=r"(?i)hook"):
        f(ms.Tensor(X))
    with pytest.raises(errors.UnsupportedSyntaxError, match=r"(?i)hook"):
        ms.grad(f)(ms.Tensor(X))


def test_a_hook_on_the_compiled_cell_itself_runs_around_it():
    """A hook of a Cell whose construct is jitted stands outside the compiled part, as in eager
    mode.
    """

    class Net(nn.Cell):
        @ms.jit
        def construct(self, x):
            return x * 2

    net = Net()
    net.register_forward_hook(lambda cell, inputs, output: output + 1)
    assert net(ms.Tensor(X)).asnumpy().tolist() == [3, 5, 7]


BPROPS = {
    "a Cell's bprop": """
        class Twice(nn.Cell):
            def construct(self, x):
                return x * 2

            def bprop(self, x, out, dout):
                return (dout * 50 + out,)

        twice = Twice()

        @jit
        def f(x):
            return twice(x * 3) + x
    """,
    "the jitted Cell's own": """
        class Net(nn.Cell):
            @jit
            def construct(self, x):
                return x * 2

            def bprop(self, x, out, dout):
                return (dout * 100,)

        f = Net()
    """,
    "two inputs": """
        class Mul(nn.Cell):
            def construct(self, x, y):
                return x * y

            def bprop(self, x, y, out, dout):
                return y * dout * 2, x * dout * 3

        mul = Mul()

        @jit
        def f(x):
            return mul(x, x + 1)
    """,
    "in a tensor loop": """
        class Twice(nn.Cell):
            def construct(self, x):
                return x * 2

            def bprop(self, x, out, dout):
                return (dout * 5,)

        twice = Twice()

        @jit
        def f(x):
            i = Tensor(0)
            while i < 3:
                x = twice(x)
                i = i + 1
            return x
    """,
    "in a branch": """
        class Twice(nn.Cell):
            def construct(self, x):
                return x * 2

            def bprop(self, x, out, dout):
                return (dout * 5,)

        twice = Twice()

        @jit
        def f(x):
            if x.sum() > 0:
                x = twice(x)
            return x * x
    """,
    "with parameters": """
        class Scale(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = Parameter(Tensor([3.0]), name="w")

            def construct(self, x):
                return x * self.w

            def bprop(self, x, out, dout):
                return (dout * self.w * 7,)

        scale = Scale()

        @jit
        def f(x):
            return scale(x) * 2
    """,
}


@pytest.mark.parametrize("name", BPROPS)
def test_custom_bprop_is_honoured(name, agree):
    """C27: Custom `bprop` method on a Cell, in eager and graph."""
    seen = agree(BPROPS[name], X, grad=(0,), modes=("jit",))
    if name == "the jitted Cell's own":
        gradient = next(s for s in seen if s.label.startswith("gradient"))
        assert gradient.result[1][0][1].tolist() == [100, 100, 100]


def test_custom_bprop_in_graph_mode(agree):
    agree(
        """
        class Twice(nn.Cell):
            def construct(self, x):
                return x * 2

            def bprop(self, x, out, dout):
                return (dout * 50,)

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.twice = Twice()

            def construct(self, x):
                return self.twice(x) + x

        f = Net()
        """,
        X,
        grad=(0,),
        modes=("graph mode",),
    )


# ---- precaution 6
# -----------------------------------------------------------------------------------


def test_a_layer_with_parameters_built_inside_runs_line_by_line(load):
    """D28: Parameter-owning layer built *inside* a jit function gets a clear message, which names
    the layer.
    """
    f = load("""
        @ms.jit
        def f(x):
            layer = nn.Dense(3, 2)
            return layer(x)
    """)["f"]
    with pytest.warns(RuntimeWarning, match=r"line by line.*Dense.*\(weight\) made inside jit"):
        assert f(ms.Tensor(X.reshape(1, 3))).shape == (1, 2)


def test_a_layer_without_parameters_may_be_built_inside(agree):
    agree("@jit\ndef f(x):\n    return nn.ReLU()(x - 2) + nn.Softmax()(x)\n", X, grad=(0,))
    agree("@jit\ndef f(x):\n    return ops.ReduceSum(True)(x, 0)\n", X, grad=(0,))
