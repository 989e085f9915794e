"""Small programs in the style of MindSpore tutorials, and exactly what they print."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

HEAD = """
import numpy as np
import duograph as ms
import duograph.nn as nn
import duograph.ops as ops
from duograph.ops import operations as P
ms.set_context(mode=ms.PYNATIVE_MODE)
"""


def run(program: str, *, code: int = 0) -> str:
    """Run a program in a new process; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


PROGRAMS = {
    # A07: Seed: same `MyNet` prints `[5. 7. 9.]` in PYNATIVE
    "add_net": (
        """
        class Sum(nn.Cell):
            def __init__(self):
                super(Sum, self).__init__()
                self.add = ops.Add()

            def construct(self, a, b):
                return self.add(a, b)

        a = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        b = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
        print(Sum()(a, b))
        """,
        "[5. 7. 9.]\n",
    ),
    # A26: Seed: eager `ops.mul(x,y)`, `print(output.asnumpy())` gives `[ 4. 10. 18.]`
    "mul": (
        """
        a = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        b = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
        print(ops.mul(a, b).asnumpy())
        """,
        "[ 4. 10. 18.]\n",
    ),
    # C03, C04: gradient with respect to the input, taken inside another Cell
    "grad_net": (
        """
        class Scaled(nn.Cell):
            def __init__(self):
                super().__init__()
                self.matmul = ops.MatMul()
                self.z = ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name='z')

            def construct(self, a, b):
                return self.matmul(a * self.z, b)

        class InputGradient(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.grad_op = ops.GradOperation()

            def construct(self, a, b):
                return self.grad_op(self.net)(a, b)

        a = ms.Tensor([[0.8, 0.6, 0.2], [1.8, 1.3, 1.1]], dtype=ms.float32)
        b = ms.Tensor([[0.11, 3.3, 1.1], [1.1, 0.2, 1.4], [1.1, 2.2, 0.3]], dtype=ms.float32)
        print(InputGradient(Scaled())(a, b))
        """,
        "[[4.5099998 2.7       3.6000001]\n [4.5099998 2.7       3.6000001]]\n",
    ),
    # C23: Eager Python `for` is simply executed; seed prints `[4. 5. 6.]`
    "loop": (
        """
        class Steps(nn.Cell):
            def __init__(self):
                super().__init__()
                self.z = ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name='z')

            def construct(self, a):
                for _ in range(3):
                    a = a + self.z
                return a

        print(Steps()(ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))))
        """,
        "[4. 5. 6.]\n",
    ),
    # B06, B12: a label with a newline, then the matrix as NumPy lays it out
    "label_and_matrix": (
        """
        a = ms.Tensor(np.ones([2, 2], dtype=np.float32))
        print("a:\\n", a)
        print("x:", a[0], "\\ny:", a * 1024)
        """,
        "a:\n [[1. 1.]\n [1. 1.]]\nx: [1. 1.] \ny: [[1024. 1024.]\n [1024. 1024.]]\n",
    ),
    # C05, C06: `grad_ops(net)(x, y)` usable at top level
    "get_all": (
        """
        class Sum(nn.Cell):
            def construct(self, a, b):
                return a + b

        a = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        out = ops.GradOperation(get_all=True)(Sum())(a, a)
        print(len(out), out[0], out[1])
        """,
        "2 [1. 1. 1.] [1. 1. 1.]\n",
    ),
    # C17, C18, C19, C20: a rule registered by the old path, with primitives inside, is the one that
    # runs
    "rule": (
        """
        from duograph.ops._grad.grad_base import bprop_getters, binop_grad_common

        @bprop_getters.register(ops.Mul)
        def rule_of_mul(self):
            times = P.Mul()

            def bprop(x, y, out, dout):
                return binop_grad_common(x, y, times(y, dout) * 100, times(x, dout))
            return bprop

        a, b = ms.Tensor([[1.0, 2.0]]), ms.Tensor([3.0])
        print(ms.grad(lambda x, y: x * y, (0, 1))(a, b))
        """,
        "(Tensor(shape=[1, 2], dtype=Float32, value=\n[[ 3.00000000e+02,  3.00000000e+02]]), "
        "Tensor(shape=[1], dtype=Float32, value= [ 3.00000000e+00]))\n",
    ),
    # D04's numbers without the compiled part: 2, 4, 16, 256, 512, 1024
    "combination": (
        """
        class Twice(nn.Cell):
            def construct(self, a):
                a = a + a
                return a + a

        class Square(nn.Cell):
            def construct(self, a):
                a = a * a
                return a * a

        class All(nn.Cell):
            def __init__(self):
                super().__init__()
                self.twice = Twice()
                self.square = Square()

            def construct(self, a):
                return self.twice(self.square(self.twice(a)))

        print(All()(ms.Tensor(np.ones([1, 3], dtype=np.float32))))
        """,
        "[[1024. 1024. 1024.]]\n",
    ),
    # A43: Import style `from mindspore import nn, ops, Tensor, Parameter` with `import mindspore as
    # ms`
    "import_style": (
        """
        from duograph import nn, ops, Tensor, Parameter, context
        from duograph.ops import functional as F, composite as C
        import duograph.common.dtype as mstype
        print(F.add(Tensor([1]), 1), C.GradOperation is ops.GradOperation, mstype.float32)
        """,
        "[2] True Float32\n",
    ),
    # J03: `nn.Conv2d` defaults pad_mode `same`, has_bias False
    "conv_defaults": (
        """
        conv = nn.Conv2d(in_channels=3, out_channels=4, kernel_size=3, stride=2, padding=0)
        conv.init_parameters_data()
        print(conv(ms.Tensor(np.ones((1, 3, 3, 3), np.float32))).shape, conv.has_bias)
        """,
        "(1, 4, 2, 2) False\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_what_it_states(name: str) -> None:
    """A07, A26, B06, B12, C03, C04, C05, C06, C17, C18, C19, C20, C23, A43, J03: programs print
    what they say.

    A35, B01, B02, B04: both spellings of `super`, Tensors of NumPy arrays and nested lists, named
        Parameters.
    """
    program, want = PROGRAMS[name]
    assert run(program) == want


def test_prints_inside_construct_come_at_once() -> None:
    """A28: Print inside `construct` in PYNATIVE shows values at once: `matmul:  [...]`

    B08, B09: `ops.ones(5, ms.float32)` has shape (5,), matmul of (5,) by (5,3) gives (3,); B03, B04
        make the weights.
    """
    out = run(
        """
        class Layer(nn.Cell):
            def __init__(self):
                super().__init__()
                w = np.arange(15.0).reshape(5, 3)
                self.w = ms.Parameter(ms.Tensor(w, ms.float32), name='w')
                self.b = ms.Parameter(ms.Tensor(np.array([0.5, 1.5, 2.5]), ms.float32), name='b')

            def construct(self, x):
                out = ops.matmul(x, self.w)
                print('matmul: ', out)
                out = out + self.b
                print('add bias: ', out)
                return out

        out = Layer()(ops.ones(5, ms.float32))
        print("out: ", out)
        """
    )
    assert out == "matmul:  [30. 35. 40.]\nadd bias:  [30.5 36.5 42.5]\nout:  [30.5 36.5 42.5]\n"


def test_training_step() -> None:
    """C11: `value_and_grad(fn, None, optimizer.parameters)` gives `(loss, grads)`; J04, J05: Adam's
    second positional is the rate, `optimizer(grads)` applies an update."""
    out = run(
        """
        ms.set_seed(3)
        network = nn.Dense(10, 1)
        loss_fn = nn.BCELoss()
        optimizer = nn.Adam(network.trainable_params(), 0.01)

        def forward_fn(data, label):
            return loss_fn(ops.sigmoid(network(data)), label)

        grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)
        data = ms.Tensor(np.random.default_rng(0).normal(size=(8, 10)), ms.float32)
        label = ms.Tensor(np.ones((8, 1)), ms.float32)
        losses = []
        for _ in range(5):
            loss, grads = grad_fn(data, label)
            optimizer(grads)
            losses.append(float(loss))
        kind = type(optimizer.parameters).__name__
        print(losses == sorted(losses, reverse=True), len(grads), kind)
        """
    )
    assert out == "True 2 ParameterTuple\n"


def test_raw_logits_into_bce_loss_are_refused() -> None:
    """D10 in eager mode: BCELoss on a value outside [0, 1] raises, naming op and value."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            HEAD + "nn.BCELoss()(ms.Tensor([[2.5]]), ms.Tensor([[1.0]]))",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "2.5" in last
    assert "[0, 1]" in last


def test_debugger_sees_intermediate_values() -> None:
    """A24: Breakpoints, pdb and IDE stepping work in PYNATIVE, intermediate values readable"""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            HEAD + "a = ms.Tensor([1.0, 2.0])\nbreakpoint()\nb = a * 2\nbreakpoint()\n",
        ],
        input="p a.asnumpy().tolist()\nc\np b.asnumpy().tolist()\nc\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "[1.0, 2.0]" in done.stdout
    assert "[2.0, 4.0]" in done.stdout


def test_whole_python_language() -> None:
    """A23: PYNATIVE accepts the whole Python language; A22: operators, functions, networks and
    gradients separately
    """
    import duograph as ms

    def numbers(x):
        try:
            yield x
            raise KeyError
        except KeyError:
            yield from (x * k for k in range(2, 4))

    def f(x):
        total = x
        for v in numbers(x):
            match v.shape:
                case (n,):
                    total = total + v * n
        return total

    got = ms.grad(f)(ms.Tensor([1.0, 1.0]))
    np.testing.assert_array_equal(got.asnumpy(), [13, 13])
