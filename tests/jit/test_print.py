"""What `print` writes in compiled code: MindSpore's layout, each argument on a line of its own.

The texts are what MindSpore 2.10 printed under its own jit. Where its text is wrong (a shape of one
axis, a dictionary) the line is Python's.
"""

from __future__ import annotations

import textwrap

import duograph as ms
import numpy as np
import pytest

X = np.array([-4.01971531, -0.579053342, 3.41115999], np.float32)
VECTOR = "Tensor(shape=[3], dtype=Float32, value=[-4.01971531e+00 -5.79053342e-01  3.41115999e+00])"

# arguments of print -> the lines
PRINTED = {
    "x": VECTOR,
    "'label:', x": f"label:\n{VECTOR}",
    # as the seed document shows it; MindSpore keeps the space
    "'matmul: ', x": f"matmul:\n{VECTOR}",
    "x, x": f"{VECTOR}\n{VECTOR}",
    "'x:', x, '\\ny:', x": f"x:\n{VECTOR}\n\ny:\n{VECTOR}",
    "'label'": "label",
    "'hello', 'world'": "hello\nworld",
    "x.sum()": "-1.18761",
    "'s:', x.sum()": "s:\n-1.18761",
    "x.sum().astype(ms.int32)": "-1",
    "(x > 0).any()": "1",
    "x.reshape(1, 3) * 1": (
        "Tensor(shape=[1, 3], dtype=Float32, value=\n"
        "[[-4.01971531e+00 -5.79053342e-01  3.41115999e+00]])"
    ),
    "ops.ones((2, 3), ms.float32) + x": (
        "Tensor(shape=[2, 3], dtype=Float32, value=\n"
        "[[-3.01971531e+00  4.20946658e-01  4.41115999e+00]\n"
        " [-3.01971531e+00  4.20946658e-01  4.41115999e+00]])"
    ),
    "ops.ones((2, 2, 2), ms.float32) * x[0]": (
        "Tensor(shape=[2, 2, 2], dtype=Float32, value=\n"
        "[[[-4.01971531e+00 -4.01971531e+00]\n"
        "  [-4.01971531e+00 -4.01971531e+00]]\n"
        " [[-4.01971531e+00 -4.01971531e+00]\n"
        "  [-4.01971531e+00 -4.01971531e+00]]])"
    ),
    "ops.ones((1, 2, 2, 2), ms.float32) * x[0]": (
        "Tensor(shape=[1, 2, 2, 2], dtype=Float32, value=\n"
        "[[[[-4.01971531e+00 -4.01971531e+00]\n"
        "   [-4.01971531e+00 -4.01971531e+00]]\n"
        "  [[-4.01971531e+00 -4.01971531e+00]\n"
        "   [-4.01971531e+00 -4.01971531e+00]]]])"
    ),
    "x.astype(ms.int32)": "Tensor(shape=[3], dtype=Int32, value=[-4  0  3])",
    "x > 0": "Tensor(shape=[3], dtype=Bool, value=[False False  True])",
    "x.astype(ms.float16)": (
        "Tensor(shape=[3], dtype=Float16, value=[-4.0195e+00 -5.7910e-01  3.4121e+00])"
    ),
    "x.astype(ms.float64)": (
        "Tensor(shape=[3], dtype=Float64, value=[-4.01971531e+00 -5.79053342e-01  3.41115999e+00])"
    ),
    "x / 0": (
        "Tensor(shape=[3], dtype=Float32, value=[           -inf            -inf             inf])"
    ),
    "3": "3",
    "0.1": "0.1",
    "True, None": "1\nNone",
    "'a', 1, 2.5, 'b'": "a\n1\n2.5\nb",
    "(1, 2, 3)": "(1, 2, 3)",
    "(x, x.sum())": f"{VECTOR}\n-1.18761",
    "[x, x.sum()]": f"{VECTOR}\n-1.18761",
    "'pair', (x, 1, 's')": f"pair\n{VECTOR}\n1\ns",
    "x.shape, x.dtype, x.ndim": "(3,)\nFloat32\n1",
    "f'x is {x.shape}'": "x is (3,)",
    "f'x is {x}'": "x is [-4.0197153  -0.57905334  3.41116   ]",
    "'%d items' % 3": "3 items",
    "weight": "Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00])",
    "'w:', weight": "w:\nTensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00])",
    "int(x.sum()), x.shape[0]": "-1\n3",
    "{'a': 1}": "{'a': 1}",
}


@pytest.mark.parametrize("arguments", PRINTED)
def test_layout(arguments, load, capsys):
    """A28, A32: the graph format of the seed document, at every call."""
    space = load(f"""
        weight = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

        @ms.jit
        def f(x):
            print({arguments})
            return x
    """)
    for _ in range(2):
        space["f"](ms.Tensor(X))
        assert capsys.readouterr().out == PRINTED[arguments] + "\n"


def test_the_same_in_graph_mode(load, capsys):
    """The seed's network: labels and values in order, then what eager code prints of the result."""
    load("""
        class Network(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = ms.Parameter(ms.Tensor(np.ones((2, 3)), ms.float32), name="w")
                self.b = ms.Parameter(ms.Tensor([0.5, 0.5, 0.5]), name="b")

            def construct(self, x):
                out = ops.matmul(x, self.w)
                print("matmul: ", out)
                out = out + self.b
                print("add bias: ", out)
                return out

        ms.set_context(mode=ms.GRAPH_MODE)
        model = Network()
        x = ms.Tensor([1.0, 2.0])
        model.compile(x)
        print("compiled")
        out = model(x)
        print("out: ", out)
    """)
    wanted = """\
    compiled
    matmul:
    Tensor(shape=[3], dtype=Float32, value=[ 3.00000000e+00  3.00000000e+00  3.00000000e+00])
    add bias:
    Tensor(shape=[3], dtype=Float32, value=[ 3.50000000e+00  3.50000000e+00  3.50000000e+00])
    out:  [3.5 3.5 3.5]
    """
    assert capsys.readouterr().out == textwrap.dedent(wanted)


def test_python_print_options_are_kept(load, capsys):
    """MindSpore refuses `sep`, `end` and `flush` in compiled code; here they mean what they mean in
    Python.
    """
    f = load("""
        @ms.jit
        def f(x):
            print("a", "b", sep="-", end="!\\n", flush=True)
            return x
    """)["f"]
    f(ms.Tensor(X))
    assert capsys.readouterr().out == "a-b!\n"


def test_an_empty_print_and_an_empty_tensor(load, capsys):
    f = load("""
        @ms.jit
        def f(x):
            print("before")
            print(ops.zeros((0, 3), ms.float32))
            print("after")
            return x
    """)["f"]
    f(ms.Tensor(X))
    out = capsys.readouterr().out
    assert out.startswith("before\n") and out.endswith("after\n")
    assert "shape=[0, 3]" in out or "[]" in out


def test_ops_print(load, capsys):
    f = load("""
        show = ops.Print()

        @ms.jit
        def f(x):
            show("first", x)
            ops.print_("second", x)
            return x
    """)["f"]
    f(ms.Tensor(X))
    assert capsys.readouterr().out == f"first\n{VECTOR}\nsecond\n{VECTOR}\n"
