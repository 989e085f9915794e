"""Declared sizes: None and `Symbol` in `input_signature` and `set_inputs`."""

from __future__ import annotations

import duograph as ms
import pytest
from duograph import Symbol, Tensor, nn, ops


def placeholder(*shape, dtype=ms.float32):
    return Tensor(shape=list(shape), dtype=dtype)


# id: the declared shapes, shapes that they accept, shapes that they refuse, programs
SIGNATURES = {
    "any size": ([(None, 4)], [[(3, 4)], [(9, 4)], [(5, 4)]], [[(3, 5)], [(4,)]], 1),
    "minus one": ([(-1, 4)], [[(3, 4)], [(9, 4)]], [[(3, 5)]], 1),
    "sizes 0 and 1": ([(None,)], [[(3,)], [(1,)], [(0,)], [(5,)]], [[(3, 1)]], 3),
    "two sizes": ([(None, None)], [[(3, 4)], [(9, 2)], [(5, 7)]], [[(3,)]], 1),
    "equal at first": ([(None, None)], [[(3, 3)], [(4, 4)], [(5, 7)], [(2, 2)]], [], 2),
    "bounds": ([(Symbol(min=2, max=8),)], [[(2,)], [(8,)], [(5,)]], [[(1,)], [(9,)]], 1),
    "no bound": ([(Symbol(min=4, max=2),)], [[(4,)], [(99,)]], [[(3,)]], 1),
    "divisor": ([(Symbol(divisor=8),)], [[(8,)], [(64,)], [(24,)]], [[(9,)], [(4,)]], 1),
    "remainder": (
        [(Symbol(divisor=8, remainder=3),)], [[(11,)], [(3,)], [(27,)]], [[(8,)], [(12,)]], 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SIGNATURES)
def test_declared_sizes_are_symbolic_at_the_first_call(case: str) -> None:
    declared, accepted, refused, programs = SIGNATURES[case]
    signature = tuple(placeholder(*shape) for shape in declared)
    f = ms.jit(lambda x: (x * 2).sum() + x.size, input_signature=signature)
    for shapes in accepted:
        arguments = [ops.ones(shape) for shape in shapes]
        assert float(f(*arguments)) == sum(3 * x.size for x in arguments)
    assert f.cache_info().misses == programs
    for shapes in refused:
        with pytest.raises(ValueError, match="its input_signature says shape"):
            f(*[ops.ones(shape) for shape in shapes])


def test_one_symbol_is_one_size_if_it_is_unique() -> None:
    def f(x, y):
        return x.reshape(-1, 8) + y.reshape(8, -1).T

    same = Symbol(divisor=8, unique=True)
    g = ms.jit(f, input_signature=(placeholder(same), placeholder(same)))
    for n in (16, 32, 8, 24):
        assert g(ops.ones(n), ops.ones(n)).shape == (n // 8, 8)
    said = "size 24 for axis 0 of argument y and 16 for axis 0 of argument x"
    with pytest.raises(ValueError, match=said):
        g(ops.ones(16), ops.ones(24))
    assert g.cache_info().misses == 1
    other = Symbol(divisor=8)
    h = ms.jit(lambda x, y: x.sum() + y.sum(), input_signature=(placeholder(other),) * 2)
    assert float(h(ops.ones(16), ops.ones(24))) == 40


def test_items_of_containers_may_be_declared() -> None:
    f = ms.jit(lambda xs: xs[0].sum() + xs[1].sum(),
               input_signature=((placeholder(None), placeholder(None, 2)),))  # fmt: skip
    for n in (3, 4, 5):
        assert float(f((ops.ones(n), ops.ones((2 * n, 2))))) == 5 * n
    assert f.cache_info().misses == 1
    with pytest.raises(ValueError, match="for item 1 of argument xs"):
        f((ops.ones(3), ops.ones((2, 3))))


def test_set_inputs_of_a_cell(restored) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(4, 3)

        def construct(self, x):
            return self.dense(x).mean(0)

    net = Net()
    net.set_inputs(placeholder(None, 4))
    for n in (5, 7, 9):
        assert net(ops.ones((n, 4))).shape == (3,)
    assert net._graph.cache_info().misses == 1
    with pytest.raises(ValueError, match=r"\(None, 4\)"):
        net(ops.ones((5, 5)))


def test_a_signature_that_the_code_contradicts_says_so_in_explain() -> None:
    w = ops.ones((5, 3))
    f = ms.jit(lambda x: ops.matmul(x, w), input_signature=placeholder(None, None))
    for n in (4, 6, 7):
        assert f(ops.ones((n, 5))).shape == (n, 3)
    assert f.cache_info().misses == 1
    with pytest.raises(ValueError, match=r"(?s)matmul: got shapes \(4, 6\) and .*test_open_"):
        f(ops.ones((4, 6)))
    (line, *_) = f.explain(ops.ones((4, 5))).sizes
    assert "shapes (s0, 5)" in line


# arguments that `Symbol` refuses, and what the error says
WRONG = [
    ({"max": 1.5}, TypeError, "got max=1.5; wanted an int"),
    ({"min": True}, TypeError, "got min=True"),
    ({"unique": 1}, TypeError, "got unique=1; wanted True or False"),
    ({"width": 3}, TypeError, "unknown argument 'width'"),
    ({"min": 0}, ValueError, "min=0 and divisor=1; wanted at least 1"),
    ({"divisor": 0}, ValueError, "divisor=0"),
    ({"divisor": 4, "remainder": 4}, ValueError, "remainder=4; wanted 0 to 3"),
    ({"remainder": -1}, ValueError, "remainder=-1"),
]


@pytest.mark.parametrize(("options", "error", "text"), WRONG)
def test_wrong_symbols(options, error, text) -> None:
    with pytest.raises(error, match=text):
        Symbol(**options)


def test_a_symbol_prints_as_it_was_made() -> None:
    symbol = Symbol(max=64, min=2, divisor=8, remainder=1, unique=True)
    assert repr(symbol) == "Symbol(min=2, max=64, divisor=8, remainder=1, unique=True)"
    assert repr(placeholder(symbol, None)._init) == "placeholder of shape (None, None)"


def test_counts_of_a_compiled_function_are_no_captures() -> None:
    """A function that calls another compiled one does not depend on how often that was called."""
    inner = ms.jit(lambda x: x * 2)
    outer = ms.jit(lambda x: inner(x) + 1)
    x = ops.ones(3)
    inner(x), outer(x), inner(x), inner(ops.ones(4))
    assert outer(x).asnumpy().tolist() == [3, 3, 3]  # warnings are errors
    assert outer.cache_info().misses == 1
    assert not [
        name for name, _ in outer.explain(x).captures if name.endswith(("_hits", "_misses"))
    ]
