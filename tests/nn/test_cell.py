"""Tests of Cell: names, trees, flags, hooks, printing.

Names and printed forms are those of MindSpore 2.10.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, ParameterTuple, Tensor, nn, ops
from duograph.runtime_state import runtime_state


class Own(nn.Cell):
    def __init__(self):
        super().__init__()
        self.zz = Parameter(Tensor([1.0]), name="z")
        self.q = Parameter(Tensor([1.0]))
        self.register_buffer("rb", Tensor([3.0]))
        self.pt = ParameterTuple(
            [Parameter(Tensor([1.0]), name="p1"), Parameter(Tensor([1.0]), name="p2")]
        )

    def construct(self, x):
        return x * self.q


class Twice(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Own()
        self.net2 = self.net

    def construct(self, x):
        return self.net2(self.net(x))


def names(cell):
    return [p.name for p in cell.get_parameters()]


# ---- names
# ------------------------------------------------------------------------------------------


def test_parameter_names_of_the_tutorial_network():
    """J09: Nested Cell prefixing: `dense_relu_sequential.0.weight`"""

    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.flatten = nn.Flatten()
            self.dense_relu_sequential = nn.SequentialCell(
                nn.Dense(4, 3), nn.ReLU(), nn.Dense(3, 2)
            )

    assert names(Network()) == [
        "dense_relu_sequential.0.weight", "dense_relu_sequential.0.bias",
        "dense_relu_sequential.2.weight", "dense_relu_sequential.2.bias",
    ]  # fmt: skip


def test_names_follow_the_path():
    """J01: `nn.Cell` with construct, auto parameter naming, `trainable_params()`"""
    assert names(Own()) == ["z", "q", "p1", "p2"]
    both = Twice()
    assert names(both) == ["net2.zz", "net2.q", "net2.p1", "net2.p2"]
    assert [n for n, _ in both.parameters_and_names()] == ["net.zz", "net.q", "net.p1", "net.p2"]
    assert [n for n, _ in both.cells_and_names()] == ["", "net"]
    assert list(Own().state_dict()) == ["zz", "q", "p1", "p2", "rb"]
    assert both.get_sub_cell("net") is both.net


def appended() -> nn.SequentialCell:
    cells = nn.SequentialCell([nn.Dense(1, 1), nn.ReLU()])
    assert cells.append(nn.Dense(1, 1)) is None
    return cells


CONTAINERS = {
    "append": (
        appended,
        ["0.weight", "0.bias", "2.weight", "2.bias"],
    ),
    "names of a dictionary": (
        lambda: nn.SequentialCell(OrderedDict([("fc", nn.Dense(1, 1)), ("act", nn.ReLU())])),
        ["fc.weight", "fc.bias"],
    ),
    "list without prefix": (
        lambda: nn.CellList([Own(), nn.ReLU()], auto_prefix=False),
        ["z", "q", "p1", "p2"],
    ),
    "dictionary": (
        lambda: nn.CellDict({"a": nn.Dense(1, 1), "b": nn.ReLU()}),
        ["a.weight", "a.bias"],
    ),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    """J08: `nn.SequentialCell`, `nn.CellList`, `nn.CellDict`"""
    make, wanted = CONTAINERS[name]
    assert names(make()) == wanted


def test_containers_renumber():
    s = nn.SequentialCell(nn.Dense(1, 1), nn.ReLU(), nn.Dense(1, 1))
    del s[0]
    assert names(s) == ["1.weight", "1.bias"] and len(s) == 2
    layers = nn.CellList([nn.Dense(1, 1)])
    layers.insert(0, nn.ReLU())
    layers.extend([nn.Dense(1, 1)])
    assert names(layers) == ["1.weight", "1.bias", "2.weight", "2.bias"]
    assert isinstance(s[0:1], nn.SequentialCell) and isinstance(layers[-1], nn.Dense)
    with pytest.raises(IndexError, match=r"index 9; wanted one in \[-2, 2\)"):
        s[9]
    with pytest.raises(NotImplementedError):
        layers(Tensor([1.0]))


PLACE = r"\(\S*test_cell\.py:\d+\)"


def test_duplicate_parameter_names_are_refused():
    """B15: Two parameters of one name in a Cell tree raise ValueError naming it"""

    class Two(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor([1.0]), name="w")
            self.b = Parameter(Tensor([1.0]), name="w")

        def construct(self, x):
            return x * self.a * self.b

    for use in (
        lambda c: c(Tensor([1.0])),
        lambda c: c.trainable_params(),
        lambda c: c.parameters_dict(),
    ):
        with pytest.raises(ValueError, match=rf"a {PLACE} and b {PLACE} are both named 'w'"):
            use(Two())

    class Above(nn.Cell):
        def __init__(self):
            super().__init__()
            self.d = Two()

        def construct(self, x):
            return self.d(x)

    assert names(Above()) == ["d.a", "d.b"]  # a path is unique
    assert Above()(Tensor([2.0])).asnumpy() == 2.0


# ---- attributes
# -------------------------------------------------------------------------------------


def before_init():
    class Early(nn.Cell):
        def __init__(self):
            self.w = Parameter(Tensor([1.0]), name="w")

    Early()


def setting(name, value):
    net = nn.Dense(2, 2, activation="relu")
    setattr(net, name, value)


ERRORS = {
    "before init": (before_init, AttributeError, r"super\(\).__init__"),
    "no construct": (lambda: nn.Cell()(Tensor([1.0])), AttributeError, "construct"),
    "number for a Parameter": (
        lambda: setting("weight", 3),
        TypeError,
        "int for the Parameter 'weight'",
    ),
    "number for a child": (
        lambda: setting("activation", 3),
        TypeError,
        "int for the child 'activation'",
    ),
    "child's name taken": (
        lambda: nn.Dense(1, 1).insert_child_to_cell("weight", nn.ReLU()),
        KeyError,
        "weight",
    ),
    "name with a dot": (
        lambda: nn.Dense(1, 1).insert_param_to_cell("a.b", Parameter(Tensor([1.0]))),
        KeyError,
        "a.b",
    ),
    "no Parameter": (lambda: nn.Dense(1, 1).insert_param_to_cell("a", 3), TypeError, "int for 'a'"),
    "no child": (lambda: nn.SequentialCell([nn.ReLU(), 3]), TypeError, "int; wanted a Cell"),
    "unknown attribute": (lambda: nn.ReLU().nosuch, AttributeError, "nosuch"),
    "set_train of a text": (lambda: nn.ReLU().set_train("x"), TypeError, "mode='x'"),
    "to_float of an int type": (lambda: nn.ReLU().to_float(ms.int32), ValueError, "to_float"),
    "argument left out": (
        lambda: nn.ReLU().register_buffer("mean"),
        TypeError,
        r"Cell.register_buffer\(\) missing 1",
    ),
    "hook that is none": (
        lambda: nn.ReLU().register_forward_hook(3),
        TypeError,
        "int; wanted a function",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_cells_name_the_argument(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


def test_setting_attributes():
    net = nn.Dense(2, 2)
    weight = net.weight
    net.weight = Tensor(np.ones((2, 2), np.float32))
    assert net.weight is weight and weight.asnumpy().sum() == 4
    net.bias = None
    assert net.bias is None and names(net) == ["weight"]
    net.act = nn.ReLU()
    assert list(net.name_cells()) == ["act"]
    del net.act
    assert not hasattr(net, "act") and not net.name_cells()
    before = runtime_state.cells_version
    net.anything = 1
    assert runtime_state.cells_version > before


def test_flags_and_phase():
    """J17: `set_train`, `self.training`, Dropout and BatchNorm phase"""
    net = Twice()
    assert not net.training
    assert net.set_train() is net and net.net.training and net.phase == "train"
    assert not net.set_train(False).net.training
    assert net.add_flags_recursive(a=1).net.get_flags() == {"a": 1} and net.net.a == 1
    seen = []
    net.apply(lambda c: seen.append(c.cls_name))
    assert seen[-1] == "Twice" and "Own" in seen
    assert net.set_grad().requires_grad


def test_buffers_and_state():
    net = Own()
    assert [n for n, _ in net.named_buffers()] == ["rb"] and len(list(net.buffers())) == 1
    other = Own()
    state = {k: Tensor(v.asnumpy() + 1) for k, v in net.state_dict().items()}
    assert other.load_state_dict(state) == ([], [])
    assert other.zz.asnumpy() == 2.0 and other.rb.asnumpy() == 4.0
    with pytest.raises(ValueError, match="missing keys: q, p1, p2, rb"):
        other.load_state_dict({"zz": Tensor([9.0])})
    assert other.zz.asnumpy() == 2.0
    missing, unexpected = other.load_state_dict(
        {"zz": Tensor([9.0]), "no": Tensor([1.0])}, strict=False
    )
    assert missing == ["q", "p1", "p2", "rb"] and unexpected == ["no"] and other.zz.asnumpy() == 9.0
    with pytest.raises(ValueError, match=r"zz has shape \(2,\), wanted \(1,\); q"):
        other.load_state_dict({"zz": Tensor([1.0, 2.0]), "q": Tensor([[1.0]])}, strict=False)


def test_copies():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    x = Tensor(np.ones((1, 2), np.float32))
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert names(made) == names(net)
        np.testing.assert_array_equal(made(x).asnumpy(), net(x).asnumpy())
        made[0].weight.set_data(Tensor(np.zeros((3, 2), np.float32)))
        assert net[0].weight.asnumpy().any()


# ---- printing
# ---------------------------------------------------------------------------------------

PRINTED = {
    "dense": (
        lambda: nn.Dense(784, 512),
        "Dense(input_channels=784, output_channels=512, has_bias=True)",
    ),
    "dense without bias": (
        lambda: nn.Dense(2, 3, has_bias=False),
        "Dense(input_channels=2, output_channels=3)",
    ),
    "dense with activation": (
        lambda: nn.Dense(2, 3, activation="relu"),
        "Dense(\n  input_channels=2, output_channels=3, has_bias=True, activation=ReLU()\n"
        "  (activation): ReLU()\n)",
    ),
    "sequential": (
        lambda: nn.SequentialCell(nn.Dense(1, 1), nn.SequentialCell(nn.ReLU())),
        "SequentialCell(\n  (0): Dense(input_channels=1, output_channels=1, has_bias=True)\n"
        "  (1): SequentialCell(\n    (0): ReLU()\n  )\n)",
    ),
    "dropout": (lambda: nn.Dropout(p=0.3), "Dropout(p=0.3)"),
    "old dropout": (lambda: nn.Dropout(0.8), "Dropout(keep_prob=0.8)"),
    "pool": (lambda: nn.MaxPool2d(2, 2), "MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)"),
    "group norm": (lambda: nn.GroupNorm(2, 4), "GroupNorm(num_groups=2, num_channels=4)"),
    "momentum": (lambda: nn.Momentum(nn.Dense(1, 1).trainable_params(), 0.1, 0.9), "Momentum()"),
    "step": (
        lambda: nn.TrainOneStepCell(
            nn.WithLossCell(nn.ReLU(), nn.MSELoss()), nn.SGD(nn.Dense(1, 1).trainable_params(), 0.1)
        ),
        "TrainOneStepCell(\n  (network): WithLossCell(\n    (_backbone): ReLU()\n    (_loss_fn): "
        "MSELoss()\n"
        "  )\n  (optimizer): SGD()\n  (grad_reducer): Identity()\n)",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printing(name):
    make, wanted = PRINTED[name]
    assert repr(make()) == wanted


# ---- calling
# ----------------------------------------------------------------------------------------


def plain_dense():
    net = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
    return net, Tensor([[1.0, 2.0]])


def test_hooks_see_values_and_gradients():
    net, x = plain_dense()
    seen = []
    handles = [
        net.register_forward_pre_hook(lambda cell, args: seen.append(("pre", args[0].shape))),
        net.register_forward_hook(
            lambda cell, args, out: seen.append(("forward", out.asnumpy().tolist()))
        ),
        net.register_backward_pre_hook(
            lambda cell, g: seen.append(("backward pre", g[0].asnumpy().tolist()))
        ),
        net.register_backward_hook(
            lambda cell, gi, go: seen.append(
                ("backward", gi[0].asnumpy().tolist(), go[0].asnumpy().tolist())
            )
        ),
    ]
    grad = ms.grad(lambda x: net(x).sum())(x)
    assert seen == [
        ("pre", (1, 2)), ("forward", [[3.0, 3.0]]), ("backward pre", [[1.0, 1.0]]),
        ("backward", [[2.0, 2.0]], [[1.0, 1.0]]),
    ]  # fmt: skip
    assert grad.asnumpy().tolist() == [[2.0, 2.0]]
    for h in handles:
        h.remove()
        h.remove()
    seen.clear()
    net(x)
    assert not seen


def test_hooks_change_values_and_gradients():
    net, x = plain_dense()
    net.register_forward_pre_hook(lambda cell, args: (args[0] * 2,))
    net.register_forward_hook(lambda cell, args, out: out + 1)
    assert net(x).asnumpy().tolist() == [[7.0, 7.0]]
    net.register_backward_hook(lambda cell, gi, go: (gi[0] * 100,))
    # the backward hook does not see the product of the pre-hook
    assert ms.grad(lambda x: net(x).sum())(x).asnumpy().tolist() == [[400.0, 400.0]]


def test_hook_order():
    net, x = plain_dense()
    seen = []
    net.register_forward_hook(lambda *a: seen.append(1))
    net.register_forward_hook(lambda *a: seen.append(0), prepend=True)
    net(x)
    assert seen == [0, 1]


def test_custom_bprop_of_a_cell():
    class Product(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return x * 100 * dout, y * 1000 * dout

    dx, dy = ms.grad(Product(), (0, 1))(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    assert dx.asnumpy().tolist() == [100.0, 200.0] and dy.asnumpy().tolist() == [3000.0, 4000.0]


def test_to_float_casts_inputs_and_weights():
    net, x = plain_dense()
    assert net.to_float(ms.float16) is net
    out = net(x)
    assert out.dtype is ms.float16 and net.weight.dtype is ms.float32
    grads = ms.grad(lambda x: net(x).astype(ms.float32).sum(), None, net.trainable_params())(x)
    assert [g.dtype for g in grads] == [ms.float32, ms.float32]
    assert grads[0].asnumpy().tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("frozen", [None, False, True], ids=["none", "trainable", "frozen"])
def test_recompute_of_a_cell_with_and_without_parameters(frozen, compiled):
    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            if frozen is not None:
                self.w = Parameter(Tensor([2.0, 3.0]), name="w", requires_grad=not frozen)

        def construct(self, x):
            return x * x * (1 if frozen is None else self.w)

    def gradient(block):
        f = ms.grad(lambda x: (block(x) * x).sum())
        return (ms.jit(f) if compiled else f)(Tensor([1.0, 2.0])).asnumpy()

    recomputed = Block()
    recomputed.recompute()
    np.testing.assert_array_equal(gradient(recomputed), gradient(Block()))


def test_recompute_has_the_same_gradients():
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5), nn.Tanh())
    net.set_train()
    x = Tensor(np.random.RandomState(0).randn(3, 4).astype(np.float32))
    state = ms.get_rng_state()
    plain = ms.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(x)
    ms.set_rng_state(state)
    net.recompute()
    again = ms.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(x)
    np.testing.assert_array_equal(plain[0].asnumpy(), again[0].asnumpy())
    for a, b in zip([plain[1][0], *plain[1][1]], [again[1][0], *again[1][1]], strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)


class _Block(nn.Cell):
    """A block that also uses what is put into it, or passed to it by name."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.factor = None

    def construct(self, x, flag=True, scale=None):
        out = self.dense(x) * (2.0 if flag else 1.0)
        out = out if self.factor is None else out * self.factor
        return out if scale is None else out * scale


def _with_attribute(call, block, x, y):
    block.factor = y * 2
    return call(x)


def _with_list(call, block, x, y):
    block.factor = [y * 3, y][0]
    return call(x, flag=False)


# how y reaches the block, and whether the tape keeps the values of the block
REACHES = {
    "attribute": (_with_attribute, True),
    "list": (_with_list, True),
    "keyword": (lambda call, block, x, y: call(x, scale=y * 2, flag=False), False),
    "constant attribute": (
        lambda call, block, x, y: _with_attribute(call, block, x, Tensor([[1.0, 3.0]])) * y,
        False,
    ),
    "argument": (lambda call, block, x, y: call(x * y), False),
}


@pytest.mark.parametrize("name", REACHES)
@pytest.mark.parametrize("compiled", ["", "inside", "outside"])
@pytest.mark.parametrize("method", [False, True])
def test_recompute_keeps_every_gradient(name, compiled, method):
    reach, keeps = REACHES[name]
    x, y = Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]])

    def gradients(recomputed):
        block = _Block()
        if recomputed and method:
            block.recompute()
        again = recomputed and not method
        call = (lambda *a, **k: ms.recompute(block, *a, **k)) if again else block
        run = lambda x, y: reach(call, block, x, y).sum()  # noqa: E731
        weights = block.trainable_params()
        if compiled == "inside":
            run = ms.jit(run)
        take = lambda x, y: ms.grad(run, (0, 1), weights)(x, y)  # noqa: E731
        found = ms.jit(take)(x, y) if compiled == "outside" else take(x, y)
        return [g.asnumpy() for part in found for g in part]

    want = gradients(False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = gradients(True)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any("intermediate values are kept" in str(w.message) for w in said) == (
        keeps and not compiled
    )


def test_recompute_drops_what_the_tape_recorded():
    block, x = _Block(), Tensor([[1.0, 2.0]])
    held = []

    def loss(x):
        out = ms.recompute(block, x)
        held.append(out._edge)
        return out.sum()

    ms.grad(loss, 0, block.trainable_params())(x)
    (node,) = held
    assert [type(p).__name__ for p in node.parents] == ["Leaf"] * 3 and not node.residuals


def test_init_parameters_data_and_same_padding():
    conv = nn.Conv2d(3, 4, 3, stride=2, padding=0)
    assert list(conv.init_parameters_data()) == [conv.weight] and conv.bias is None
    assert conv(ops.ones((1, 3, 4, 4), ms.float32)).shape == (1, 4, 2, 2)


def test_call_overhead_is_small():
    """A Cell without hooks and casts goes straight to construct."""

    class Nothing(nn.Cell):
        def construct(self, x):
            return x

    net = Nothing()
    net(1)
    assert net._plain
    net.register_forward_hook(lambda *a: None)
    assert not net._plain


class Square(nn.Cell):
    def construct(self, x, scale=None):
        y = x * x
        return y if scale is None else y * scale


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("scale", [None, 2.0])
def test_a_recomputed_cell_without_parameters(order, wrap, scale):
    cell = Square()
    cell.recompute()
    more = () if scale is None else (ms.Tensor(scale),)

    def f(x):
        return (cell(x, *more) * x).sum()

    for _ in range(order - 1):
        f = (lambda g: lambda x: ms.grad(g)(x).sum())(f)
    x = np.array([1.0, 2.0], np.float32)
    wanted = {1: 3 * x * x, 2: 6 * x, 3: 6 + 0 * x}[order] * (scale or 1)
    np.testing.assert_allclose(wrap(ms.grad(f))(ms.Tensor(x)).asnumpy(), wanted, rtol=1e-6)
