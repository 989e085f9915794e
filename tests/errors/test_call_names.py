"""Messages name what the user's line called, in both modes; what code of the user raised stays."""

from __future__ import annotations

import pickle

import duograph as ms
import pytest
from duograph import Tensor, mint, nn, ops
from duograph.call_names import CONTAINER, FUNCTION, LAYER, WRAPPER, Link, called, leave

A = ops.ones((2, 3))
B = ops.ones((4,))
FAR = Tensor([7])
SEQUENTIAL = nn.SequentialCell(nn.Dense(3, 4), nn.SequentialCell(nn.ReLU(), nn.Dense(5, 2)))
TABLES = nn.SequentialCell(nn.Embedding(4, 2))
STEP = nn.WithLossCell(nn.SequentialCell(nn.Dense(5, 2)), nn.MSELoss())

# what is called, and how its message begins
CALLS = {
    "ops": (lambda: ops.concat((A, A), axis=2), "concat: got axis 2"),
    "another name": (lambda: ops.cat((A, A), axis=2), "cat: got axis 2"),
    "another name of an op": (lambda: ops.ge(A, B), "ge: got operands"),
    "a composite": (lambda: ops.where(A > 0, A, B), "where: got operands"),
    "mint": (lambda: mint.cat((A, A), dim=2), "cat: got dim 2"),
    "mint, functional": (lambda: mint.nn.functional.linear(A, A.T), "linear: got input"),
    "method": (lambda: A.view(4, 2), "view: got shape"),
    "method, another name": (lambda: A.eq(B), "eq: got operands"),
    "method of an op": (lambda: A.absolute(B), "absolute: "),
    "index": (lambda: A[5], "index: got 5"),
    "index of a set": (lambda: ops.zeros((3,))[9], "index: got 9"),
    "operator": (lambda: A + B, "add: got operands"),
    "operator @": (lambda: A @ A, "matmul: got shapes"),
    "primitive": (lambda: ops.Reshape()(A, (5,)), "Reshape: got shape"),
    "primitive with options": (lambda: ops.Softmax(axis=3)(A), "Softmax: got axis 3"),
    "a value": (lambda: A.take(FAR, axis=0, mode="raise"), "take: index 7"),
    "a value, primitive": (lambda: ops.Gather()(A, FAR, 0), "Gather: index 7"),
    "layer": (lambda: nn.Dense(5, 2)(A), "Dense: got input"),
    "layer made of layers": (
        lambda: nn.MultiheadAttention(8, 2)(*[ops.ones((2, 1, 9))] * 3),
        "MultiheadAttention: query",
    ),
    "loss": (lambda: nn.L1Loss()(A, B), "L1Loss: got operands"),
    "container": (lambda: SEQUENTIAL(A), "Dense (SequentialCell[1][1]): got input"),
    "wrapper": (lambda: STEP(A, A), "Dense (SequentialCell[0]): got input"),
    "option of a layer": (
        lambda: nn.Dense(3, 2, weight_init="normla"),
        "Dense: got weight_init='normla'; did you mean normal?",
    ),
    "sizes one by one": (lambda: ops.eye(-2), "eye: got n=-2"),
    "device": (lambda: A.move_to("nowhere"), "move_to: got 'nowhere'"),
}
# These make layers, or move Tensors: compiled code may not.
EAGER = {"option of a layer", "device", "layer", "layer made of layers", "loss"}


def head(call):
    with pytest.raises(ms.errors.DuographError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize("name", CALLS)
def test_line_by_line(name):
    call, wanted = CALLS[name]
    assert head(call).startswith(wanted)
    assert head(call).startswith(wanted)  # from the cache of calls


@pytest.mark.parametrize("name", sorted(set(CALLS) - EAGER))
def test_compiled(name):
    call, wanted = CALLS[name]
    assert head(ms.jit(call)).startswith(wanted)


class Holder(nn.Cell):
    """A Cell of the user's that calls a layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def construct(self, *inputs):
        return self.layer(*inputs)


LAYERS = {
    "layer": (nn.Dense(5, 2), (A,), "Dense: got input"),
    "container": (SEQUENTIAL, (A,), "Dense (SequentialCell[1][1]): got input"),
    "a value": (TABLES, (FAR,), "Embedding (SequentialCell[0]): index 7"),
    "wrapper": (STEP, (A, A), "Dense (SequentialCell[0]): got input"),
    "the user's inside ours": (nn.SequentialCell(Holder(nn.Dense(5, 2))), (A,), "Dense: got input"),
    "loss": (nn.HuberLoss(), (A, B), "HuberLoss: got operands"),
}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_a_network(name, mode):
    layer, inputs, wanted = LAYERS[name]
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        assert head(lambda: Holder(layer)(*inputs)).startswith(wanted)
        assert head(lambda: Holder(Holder(layer))(*inputs)).startswith(wanted)
    finally:
        ms.set_context(mode=before)


def failing(x):
    return ops.cat((x, ops.ones((9,))), axis=5)


def raising(x):
    raise ms.errors.ShapeError("mine: got what I say")


# functions of the framework that call code of the user: its error keeps its head
THROUGH = {
    "vmap": (lambda: ms.vmap(failing)(A), "cat: got axis 5"),
    "grad": (lambda: ms.grad(failing)(A), "cat: got axis 5"),
    "recompute": (lambda: ms.recompute(Holder(failing), A), "cat: got axis 5"),
    "sequential": (lambda: nn.SequentialCell(Holder(failing))(A), "cat: got axis 5"),
    "an error of the user's": (lambda: nn.SequentialCell(Holder(raising))(A), "mine: got what"),
    "jit": (lambda: ms.vmap(ms.jit(failing))(A), "cat: got axis 5"),
}


@pytest.mark.parametrize("name", THROUGH)
def test_errors_through_code_of_the_user_stay(name):
    call, wanted = THROUGH[name]
    assert head(call).startswith(wanted)


FACTS = [
    ms.errors.MissingRuleError("erfinv"),
    ms.errors.UnsupportedOpError("erfinv: no kernel"),
    ms.errors.DeviceMemoryError("erfinv: no memory"),
    ms.errors.GradientError("erfinv: no gradient"),
]


@pytest.mark.parametrize("error", FACTS, ids=lambda e: type(e).__name__)
def test_facts_about_an_op_name_the_op(error):
    """A missing kernel or gradient is that of the op, wherever the function is called."""
    said = str(error)
    leave(error, "grad")
    assert str(error) == said and said.startswith("erfinv: ")


def test_a_named_error_can_be_pickled():
    with pytest.raises(ms.errors.ShapeError) as raised:
        SEQUENTIAL(A)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again).splitlines()[0] == str(raised.value).splitlines()[0]
    assert type(again) is type(raised.value)


def link(name, role, key=""):
    return Link(name, role, key)


CHAINS = {
    "function": ((link("cat", FUNCTION), link("concat", FUNCTION)), "cat"),
    "layer": ((link("Dense", LAYER), link("dense", FUNCTION)), "Dense"),
    "layer in a layer": ((link("LSTM", LAYER), link("Dense", LAYER, ".cell")), "LSTM"),
    "container": ((link("SequentialCell", CONTAINER), link("ReLU", LAYER, "[1]")),
                  "ReLU (SequentialCell[1])"),
    "container alone": ((link("SequentialCell", CONTAINER),), "SequentialCell"),
    "wrapper": ((link("WithLossCell", WRAPPER), link("Dense", LAYER, "._backbone")), "Dense"),
    "function around a layer": ((link("vmap", FUNCTION), link("Dense", LAYER)), "Dense"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_the_name_of_a_chain(name):
    chain, wanted = CHAINS[name]
    assert called(chain) == wanted
