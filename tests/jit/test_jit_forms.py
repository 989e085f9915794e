"""The forms of `jit`: spellings, options, where source is found, and how to switch it off."""

from __future__ import annotations

import copy
import inspect
import os
import subprocess
import sys
import textwrap
import warnings
import weakref

import duograph as ms
import numpy as np
import pytest
from duograph import nn
from duograph.errors import OptionWarning

X = np.array([1.0, 2.0, 3.0], np.float32)


def t(*values, dtype=None):
    return ms.Tensor(list(values), dtype or ms.float32)


def compiles(function) -> int:
    return function.cache_info().misses


def test_spellings_of_jit():
    """D07: `@ms.jit`, `@ms.jit()`, `@ms.jit(opts)`, `ms.jit(fn)`, `ms.jit(net.construct)`,
    `ms.jit(net)`.
    """

    class Net(nn.Cell):
        def construct(self, x):
            return x * 2

    @ms.jit
    def bare(x):
        return x * 2

    @ms.jit()
    def called(x):
        return x * 2

    @ms.jit(jit_level="O0", capture_mode="ast", fullgraph=True)
    def options(x):
        return x * 2

    @ms.jit(jit_config=ms.JitConfig(jit_level="O0"))
    def config(x):
        return x * 2

    def plain(x):
        return x * 2

    for f in (bare, called, options, config, ms.jit(plain), ms.jit(Net().construct), ms.jit(Net()),
              ms.jit(fn=plain)):  # fmt: skip
        for _ in range(2):
            assert f(t(1, 2)).asnumpy().tolist() == [2, 4]
    assert bare.__name__ == "bare" and bare.__wrapped__(t(1)).asnumpy().tolist() == [2]
    # D38: the names of MindSpore's capture modes are accepted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptionWarning)
        for mode in ("ast", "bytecode", "trace"):
            assert ms.jit(plain, capture_mode=mode)(t(1)).asnumpy().tolist() == [2]


@pytest.mark.parametrize(
    "options,kind",
    [
        ({"capture_mode": "magic"}, ValueError),
        ({"jit_level": "O9"}, ValueError),
        ({"dynamic": 5}, ValueError),
        ({"fullgraph": "yes"}, TypeError),
        ({"no_such_option": 1}, ValueError),
        ({"jit_config": {"jit_level": "O9"}}, ValueError),
        ({"jit_config": {"no_such_option": 1}}, TypeError),
    ],
)
def test_options_are_checked(options, kind):
    with pytest.raises(kind):
        ms.jit(lambda x: x, **options)


def test_classes_are_refused():
    """14.4 of the syntax list: jit may decorate functions and methods, not classes."""
    with pytest.raises(TypeError, match="class"):

        @ms.jit
        class Wrong:
            pass

    with pytest.raises(TypeError):
        ms.jit(3)


def test_plain_classes():
    """D05, D06: jit on methods of `ms_class`/`jit_class` classes and of ordinary user classes."""
    for mark in (ms.ms_class, ms.jit_class, lambda c: c):

        @mark
        class Scale:
            def __init__(self, k):
                self.k = ms.Tensor(k, ms.float32)

            @ms.jit
            def run(self, x):
                return self.twice(x) * self.k

            def twice(self, x):
                return x * 2

            @staticmethod
            @ms.jit
            def static(x):
                return x + 1

            @classmethod
            def name(cls):
                return cls.__name__

        scale, other = Scale(3.0), Scale(5.0)
        assert scale.run(t(1, 2)).asnumpy().tolist() == [6, 12]
        assert other.run(t(1, 2)).asnumpy().tolist() == [10, 20]
        assert scale.run(t(1, 2)).asnumpy().tolist() == [6, 12]
        assert Scale.static(t(1)).asnumpy().tolist() == [2]


class Scaled:
    """Methods of each kind; `value` is a constant of the programs."""

    value = 3

    @ms.jit
    def of_object(self, x):
        """Return x times the value."""
        return x * self.value

    @classmethod
    @ms.jit
    def of_class(cls, x):
        return x * cls.value

    def plain(self, x):
        return x * self.value


class ScaledCell(nn.Cell):
    value = 3

    @ms.jit
    def construct(self, x):
        return x * self.value


BOUND = {
    "method": lambda: Scaled().of_object,
    "class method": lambda: Scaled.of_class,
    "class method of an object": lambda: Scaled().of_class,
    "jit of a bound method": lambda: ms.jit(Scaled().plain),
    "construct of a Cell": lambda: ScaledCell().construct,
}


@pytest.mark.parametrize("name", BOUND)
def test_bound_methods_have_the_methods_of_compiled_functions(name):
    bound, x = BOUND[name](), ms.Tensor([1.0, 2.0])
    assert bound.explain(x).writes == [] and bound.cache_info().misses >= 1
    before = bound.cache_info()
    bound.compile(x)
    assert "mul" in str(bound.graph(x))
    assert "x * " in bound.show(x).text()
    assert bound(x).asnumpy().tolist() == [3, 6]
    assert bound(x=x).asnumpy().tolist() == [3, 6]
    assert bound.cache_info().misses <= before.misses + 1  # the keyword is another signature
    with pytest.raises(TypeError, match="positional argument"):
        bound.explain()


@pytest.mark.parametrize("name", BOUND)
def test_bound_methods_look_like_those_of_python(name):
    bound, x = BOUND[name](), ms.Tensor([1.0, 2.0])
    assert inspect.ismethod(bound) and str(inspect.signature(bound)) == "(x)"
    again = getattr(bound.__self__, bound.__name__)
    if name != "jit of a bound method":
        assert bound == again and hash(bound) == hash(again) and bound != again.__func__
    assert copy.copy(bound) == bound
    assert repr(bound).startswith(f"<bound method {bound.__qualname__} of ")
    assert bound.__doc__ == bound.__func__.__doc__ and bound.__module__ == __name__
    copied = copy.deepcopy(bound)
    assert (copied.__self__ is bound.__self__) == isinstance(bound.__self__, type)
    assert copied(x).asnumpy().tolist() == [3, 6]
    assert weakref.ref(bound)() is bound
    with pytest.raises(AttributeError, match="no_such_name"):
        bound.no_such_name


def test_a_bound_compiled_method_is_pickled_by_its_name():
    """As Python's: by its receiver and its name, so that the receiver's state goes along."""
    call, (receiver, name) = Scaled().of_object.__reduce__()
    assert call is getattr and type(receiver) is Scaled and name == "of_object"


def test_a_receiver_of_any_name():
    class Net(nn.Cell):
        @ms.jit
        def construct(this, x):
            return x * 2

    class Plain:
        @ms.jit
        def run(me, x, y=2):
            return x * y

    assert Net()(t(1)).asnumpy().tolist() == [2]
    assert Plain().run(t(1)).asnumpy().tolist() == [2]
    assert Plain().run(t(1), y=3).asnumpy().tolist() == [3]


def test_jit_class_errors():
    """D42: error text when put on a Cell; error when the object is called and has no `__call__`."""
    with pytest.raises(TypeError, match="Cell"):

        @ms.jit_class
        class Net(nn.Cell):
            pass

    @ms.jit_class
    class Quiet:
        pass

    quiet = Quiet()
    with pytest.raises((TypeError, ValueError), match="Quiet"):
        ms.jit(lambda x: quiet(x))(t(1))


def test_a_cell_with_a_dense_layer():
    """D08: `@ms.jit` on `construct` of a Cell with `nn.Dense(10, 1)`."""

    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(10, 1)

        @ms.jit
        def construct(self, x):
            return self.fc(x)

    net = Network()
    x = ms.Tensor(np.arange(20, dtype=np.float32).reshape(2, 10))
    np.testing.assert_array_equal(net(x).asnumpy(), net.fc(x).asnumpy())
    assert net(x).shape == (2, 1)


SIGNATURES = {
    "args": ("*xs", "xs[0] + xs[1] * len(xs)", ("a", "b"), {}),
    "kwargs": ("**kw", "kw['x'] - kw['y']", (), {"x": "a", "y": "b"}),
    "kwargs in another order": ("x, y", "x - y", (), {"y": "b", "x": "a"}),
    "keyword only": ("x, *, y, k=2", "x * k - y", ("a",), {"y": "b"}),
    "positional only": ("x, /, y", "x - y", ("a", "b"), {}),
    "defaults": ("x, y=None, k=3", "x * k if y is None else x - y", ("a",), {}),
    "default given": ("x, y=None, k=3", "x * k if y is None else x - y", ("a",), {"y": "b"}),
    "mixed": ("x, *rest, k=1, **kw", "x + rest[0] * k + kw['z']", ("a", "b"), {"k": 4, "z": 7}),
    "tensor default": ("x, y=DEFAULT", "x * y", ("a",), {}),
    "list of tensors": ("xs", "xs[0] - xs[1]", (["a", "b"],), {}),
    "dict of tensors": ("d", "d['x'] - d['y']['z']", ({"x": "a", "y": {"z": "b"}},), {}),
    "named tuple": ("p", "p.x - p.y", (("point", "a", "b"),), {}),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name, load):
    """D34: jit with *args, **kwargs, keyword-only, defaults."""
    import collections

    point = collections.namedtuple("point", "x y")
    parameters, body, args, kwargs = SIGNATURES[name]
    tensors = {"a": t(1, 2, 3), "b": t(10, 20, 30)}

    def filled(v):
        if isinstance(v, str):
            return tensors[v]
        if isinstance(v, tuple):
            return point(filled(v[1]), filled(v[2]))
        if isinstance(v, list):
            return [filled(i) for i in v]
        if isinstance(v, dict):
            return {k: filled(i) for k, i in v.items()}
        return v

    f = load(f"DEFAULT = ms.Tensor([5.0, 6.0, 7.0])\n\ndef f({parameters}):\n    return {body}\n")[
        "f"
    ]
    compiled = ms.jit(f)
    given = [filled(a) for a in args], {k: filled(v) for k, v in kwargs.items()}
    wanted = f(*given[0], **given[1])
    for _ in range(2):
        assert compiled(*given[0], **given[1]).asnumpy().tolist() == wanted.asnumpy().tolist()
    assert compiles(compiled) == 1


@pytest.mark.parametrize("call", ["f()", "f(x, x, x)", "f(x, z=1)", "f(x, x=x)"])
def test_wrong_arguments_are_python_errors(call, load):
    space = load("def plain(x, y=None):\n    return x\nf = ms.jit(plain)\n")
    space["x"] = t(1)
    with pytest.raises(TypeError) as wanted:
        eval(call.replace("f(", "plain("), space)
    with pytest.raises(TypeError) as found:
        eval(call, space)
    assert str(wanted.value) in str(found.value)


def test_functions_without_a_source_file():
    """D35: jit on lambda, on a function made by exec, in a REPL or notebook."""
    assert ms.jit(lambda x: x * 2)(t(1)).asnumpy().tolist() == [2]
    double, triple = ms.jit(lambda x: x * 2), ms.jit(lambda x: x * 3)
    assert [f(t(1)).asnumpy().tolist() for f in (double, triple)] == [[2], [3]]
    table = {"a": ms.jit(lambda x, k=2: x + k), "b": ms.jit(lambda x: -x)}
    assert table["a"](t(1), k=5).asnumpy().tolist() == [6]
    assert table["b"](t(1)).asnumpy().tolist() == [-1]


def test_a_function_made_by_exec(load, warned):
    """With source that `linecache` finds it is compiled, as in a notebook; without, it is run line
    by line.
    """
    source = "@ms.jit\ndef f(x):\n    if x.sum() > 0:\n        return x * 7\n    return x\n"
    known = load(source)["f"]
    assert known(t(1)).asnumpy().tolist() == [7]
    assert known.cache_info().fallbacks == 0 and not warned
    space: dict = {"ms": ms}
    exec(source, space)
    assert space["f"](t(1)).asnumpy().tolist() == [7]
    if space["f"].cache_info().fallbacks:
        (warning,) = warned
        assert "source" in str(warning.message)
    with pytest.raises(RuntimeError, match="source"):
        exec("f = ms.jit(lambda x: x * 9, fullgraph=True)", space)
        space["f"](t(1))


@pytest.mark.parametrize("way", ["-c", "stdin", "interactive"])
def test_sources_without_a_file(way):
    """Code given with -c, on standard input, and typed at the prompt; Python keeps its source from
    3.13 on.
    """
    program = textwrap.dedent("""
        import duograph as ms
        @ms.jit
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x

        print(f(ms.Tensor([1.0, 2.0])))
        print(ms.jit(lambda x: x * 3)(ms.Tensor([1.0, 2.0])))
    """)
    command = [sys.executable, "-W", "ignore::RuntimeWarning"]
    command += {"-c": ["-c", program], "stdin": ["-"], "interactive": ["-i", "-q"]}[way]
    given = None if way == "-c" else program
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=600, check=False
    )
    assert "[2. 4.]" in done.stdout and "[3. 6.]" in done.stdout, done.stderr


def test_nested_jit_becomes_one_graph():
    """D33: a jit function calling another jit function is inlined."""

    @ms.jit
    def inner(x):
        return x * 2

    class Layer(nn.Cell):
        @ms.jit
        def construct(self, x):
            return inner(x) + 1

    layer = Layer()

    @ms.jit
    def outer(x):
        return layer(x) * inner(x)

    assert outer(t(1, 2)).asnumpy().tolist() == [6, 20]
    assert ms.grad(outer)(t(1, 2)).asnumpy().tolist() == [10, 18]
    assert compiles(outer) <= 2  # under a derivative it may be a program of its own
    assert compiles(inner) == 0 and compiles(Layer.construct) == 0


def test_jit_works_in_both_modes():
    """D11: jit honours its decorator whatever the global mode is."""

    @ms.jit
    def f(x):
        return x * 2

    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        assert f(t(1)).asnumpy().tolist() == [2]
    assert compiles(f) >= 1 and f.cache_info().fallbacks == 0


SWITCHED = """
import duograph as ms
seen = []

@ms.jit
def f(x):
    seen.append(type(x).__name__)
    return x * 2

for _ in range(2):
    assert f(ms.Tensor([1.0])).asnumpy().tolist() == [2]
assert seen == ["Tensor", "Tensor"]
assert f.cache_info().misses == 0
"""


@pytest.mark.parametrize("name", ["DUOGRAPH_JIT", "MS_JIT"])
def test_a_switch_turns_compilation_off(name):
    """D36: `MS_JIT=0` style switch turns all compilation off."""
    environment = {**os.environ, name: "0"}
    done = subprocess.run(
        [sys.executable, "-c", SWITCHED],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_switch_in_the_settings(load):
    space = load(SWITCHED.replace("import duograph as ms\n", "ms.set_context(jit=False)\n"))
    ms.set_context(jit=True)
    space["f"](t(1))
    assert compiles(space["f"]) == 1


def test_fullgraph_refuses_python_fallback(load):
    """D37: `fullgraph=True` means no fallback to Python: refused, where LAX runs it."""
    source = """
        import scipy

        def f(x):
            y = np.asarray(x.asnumpy())
            return ms.Tensor(np.sort(y)[::-1].copy()) + x
    """.replace("import scipy\n", "")
    f = load(source)["f"]
    x = t(1, 3, 2)
    assert f(x).asnumpy().tolist() == [4, 5, 3]
    assert ms.jit(f)(x).asnumpy().tolist() == [4, 5, 3]
    with pytest.raises(ms.errors.UnsupportedSyntaxError):
        ms.jit(f, fullgraph=True)(x)
    with pytest.raises(RuntimeError):
        ms.jit(f, jit_config=ms.JitConfig(jit_syntax_level="STRICT"))(x)


LAMBDAS = """
import duograph as ms

def pair(k):
    return lambda x: x * k, lambda x: x + k, lambda x, k=k: x - k

same = [lambda x: x * 3, lambda x: x * 3]; other = lambda x: x * 4
x = ms.Tensor([2.0])
for f in (*pair(5), *same, other):
    assert str(ms.jit(f)(x)) == str(f(x)), (str(ms.jit(f)(x)), str(f(x)))
twins = [lambda x: x + 1, lambda x: (x + 1)]; first = [lambda x: x + 0.5, lambda y: y + 0.5]
for f in (*twins, *first):
    assert str(ms.jit(f)(x)) == str(f(x))
print("told apart")
"""


@pytest.mark.parametrize("option", ["-X no_debug_ranges", ""])
def test_two_lambdas_on_one_line(option, tmp_path):
    """Also where code does not know its columns: Python 3.10, and what -X no_debug_ranges leaves
    out.
    """
    program = tmp_path / "lambdas.py"
    program.write_text(LAMBDAS)
    run = subprocess.run([sys.executable, *option.split(), program], capture_output=True, text=True)
    assert run.stdout == "told apart\n", run.stderr
