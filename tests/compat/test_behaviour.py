"""What programs rely on that MindSpore does: structures of gradients, results of writes, options.

The expected structures are those that MindSpore 2.10.0 prints.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.dataset import NumpySlicesDataset

X, Y, V = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), Tensor([1.0, 1.0])


def mul(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def square(x: Tensor) -> Tensor:
    return x * x


def with_aux(x: Tensor) -> tuple[Tensor, ...]:
    return x * x, x


def with_two(x: Tensor) -> tuple[Tensor, ...]:
    return x * x, x, x


def weighted(x: Tensor) -> Tensor:
    return x * W


W = Parameter(Tensor([2.0, 2.0]), name="w")
MANY = ms.ParameterTuple([W])


def pulled(*args: Any, **options: Any) -> Any:
    value, pull, *aux = ms.vjp(*args, **options)
    return (value, pull(V), *aux)


def structure(value: Any) -> Any:
    """Return nested tuples of lists, for Tensors their elements."""
    if isinstance(value, tuple):
        return tuple(structure(v) for v in value)
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


G, X2, S, T = [3.0, 4.0], [1.0, 2.0], [1.0, 4.0], [2.0, 4.0]
STRUCTURES = {
    "one aux": (lambda: ms.grad(with_aux, has_aux=True)(X), (T, (X2,))),
    "two aux": (lambda: ms.grad(with_two, has_aux=True)(X), (T, (X2, X2))),
    "value, one aux": (lambda: ms.value_and_grad(with_aux, has_aux=True)(X), ((S, X2), T)),
    "vjp": (lambda: pulled(square, X), (S, (T,))),
    "vjp of two": (lambda: pulled(mul, X, Y), ([3.0, 8.0], (G, X2))),
    "vjp, one aux": (lambda: pulled(with_aux, X, has_aux=True), (S, (T,), X2)),
    "vjp, two aux": (lambda: pulled(with_two, X, has_aux=True), (S, (T,), (X2, X2))),
    "vjp, weight": (lambda: pulled(weighted, X, weights=W), (T, (([2.0, 2.0],), X2))),
    "vjp, weights": (lambda: pulled(weighted, X, weights=MANY), (T, (([2.0, 2.0],), (X2,)))),
    "jvp": (lambda: ms.jvp(square, X, V), (S, T)),
    "jvp of two": (lambda: ms.jvp(mul, (X, Y), (V, V)), ([3.0, 8.0], [4.0, 6.0])),
    "jvp, one aux": (lambda: ms.jvp(with_aux, X, V, has_aux=True), (S, T, X2)),
    "jvp, two aux": (lambda: ms.jvp(with_two, X, V, has_aux=True), (S, T, (X2, X2))),
    "nn.Vjp": (lambda: nn.Vjp(square)(X, V), (S, T)),
    "jacrev": (lambda: ms.jacrev(square)(X), [[2.0, 0.0], [0.0, 4.0]]),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_of_gradients(name: str, compiled: bool) -> None:
    call, wanted = STRUCTURES[name]
    assert structure(ms.jit(call)() if compiled else call()) == wanted


INDEX, SLICE, ROW = Tensor([0]), Tensor([[0]]), Tensor([[9.0, 0.5]])
WRITES: dict[str, Callable[[Parameter], Tensor]] = {
    "assign": lambda p: ops.assign(p, ops.ones((2, 2))),
    "assign_add": lambda p: ops.assign_add(p, 1.0),
    "assign_sub": lambda p: ops.assign_sub(p, ops.ones((2, 2))),
    "Assign": lambda p: ops.Assign()(p, ops.ones((2, 2))),
    "index_add": lambda p: ops.index_add(p, INDEX, ROW, 0),
    **{
        f"scatter_{mode}": lambda p, mode=mode: getattr(ops, f"scatter_{mode}")(p, INDEX, ROW)
        for mode in ("update", "add", "sub", "mul", "div", "max", "min")
    },
    **{
        f"scatter_nd_{mode}": lambda p, mode=mode: getattr(ops, f"scatter_nd_{mode}")(p, SLICE, ROW)
        for mode in ("add", "sub", "mul", "div", "max", "min")
    },
    "ScatterNdUpdate": lambda p: ops.ScatterNdUpdate()(p, SLICE, ROW),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_return_the_new_value(name: str, compiled: bool) -> None:
    """The result is a Tensor that prints values and that later writes do not change."""
    p = Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="p")
    run = ms.jit(lambda: WRITES[name](p)) if compiled else lambda: WRITES[name](p)
    found = run()
    assert type(found) is Tensor
    np.testing.assert_array_equal(found.asnumpy(), p.asnumpy())
    before = found.asnumpy().copy()
    assert not np.array_equal(before, [[1.0, 2.0], [3.0, 4.0]])
    ops.assign(p, ops.zeros((2, 2)))
    np.testing.assert_array_equal(found.asnumpy(), before)


def test_writes_return_a_tensor_that_is_no_parameter() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert ops.assign(x, ops.zeros((2, 2))) is x
    assert ops.scatter_add(x, INDEX, ROW) is x


class Loss(nn.Cell):
    """The mean square of a layer's error."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.square(self.net(x) - y).mean()


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def test_a_model_of_a_training_cell_trains(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ms.context.settings, "mode", mode)
    net = nn.Dense(2, 1, weight_init="zeros")
    cell = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params(), 0.1))
    data = NumpySlicesDataset(
        (np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), shuffle=False
    )
    ms.Model(cell).train(1, data.batch(2), dataset_sink_mode=False)
    assert cell.optimizer.global_step.asnumpy() == 2
    assert (net.weight.asnumpy() > 0).all()
    with pytest.raises(ValueError, match="a loss_fn and no optimizer"):
        ms.Model(net, nn.MSELoss()).train(1, data.batch(2))


# names of keywords that parameters of duograph's own helpers have as well
KEYWORDS = ["ev", "self", "t", "fn", "function", "block", "args", "items", "name"]


@pytest.mark.parametrize("key", KEYWORDS)
def test_users_keywords_clash_with_nothing(key: str) -> None:
    def plus(**options: Any) -> Any:
        return sum(options.values())

    @ms.jit
    def program(x: Tensor) -> Tensor:
        return dict(a=1, **{key: 2})[key] * x + plus(**{key: 3}) + ops.partial(plus, **{key: 1})()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program(X).asnumpy().tolist() == [6.0, 8.0]


@pytest.mark.parametrize("key", ["self", "cell", "weights_"])
def test_keywords_of_recomputed_and_called_cells(key: str) -> None:
    names: dict[str, Any] = {"nn": nn}
    exec(f"class Net(nn.Cell):\n  def construct(me, x, {key}):\n    return x * {key}", names)
    net = names["Net"]()
    assert net(X, **{key: 2}).asnumpy().tolist() == T
    assert ms.recompute(net, X, **{key: 2}).asnumpy().tolist() == T


def test_a_layer_made_inside_runs_line_by_line() -> None:
    """Each call makes the layer anew, as Python does; at STRICT it is refused."""

    @ms.jit
    def program(x: Tensor) -> Tensor:
        return nn.Dense(2, 3, weight_init="ones", bias_init="zeros")(x)

    with pytest.warns(RuntimeWarning, match=r"runs line by line.*layer with Parameters"):
        assert program(ops.ones((1, 2))).asnumpy().tolist() == [[2.0, 2.0, 2.0]]
    assert program(ops.ones((1, 2))).asnumpy().tolist() == [[2.0, 2.0, 2.0]]

    @ms.jit(jit_syntax_level=ms.STRICT)
    def strict(x: Tensor) -> Tensor:
        return nn.Dense(2, 3)(x)

    with pytest.raises(RuntimeError, match="Make it outside"):
        strict(ops.ones((1, 2)))


def test_names_that_programs_pass() -> None:
    graph = ops.MultitypeFuncGraph("g")
    for name in ("RowTensor", "COOTensor", "CSRTensor"):
        graph.register(name)(lambda value: value)
    with pytest.raises(TypeError):
        graph(1)
    assert ms.get_auto_parallel_context("pipeline_scheduler") == "1f1b"
