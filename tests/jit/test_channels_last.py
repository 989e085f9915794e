"""Convolutions run channels last where that pays, with the same results."""

from __future__ import annotations

import dataclasses

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops, passes
from duograph.backend import registry
from duograph.backend.costs import DEFAULT_COSTS
from duograph.ir.control import SUBGRAPH_OPS
from duograph.ir.graph import Graph
from duograph.ir.verify import verify
from duograph.passes import channels_last_conversion, channels_last_costs
from duograph.types import TensorType

CPU = pytest.importorskip("duograph_cpu")
needs_compiler = pytest.mark.skipif(
    registry.backend("CPU").compiles(0) is not None, reason="this machine has no C compiler"
)
LEVELS = ["O1", "O2"]
LAYOUT = DEFAULT_COSTS.layout


def replace_pass(monkeypatch, make):
    """Make the pipeline run `make(function)` in place of the channels-last pass `function`."""
    pipeline = [
        dataclasses.replace(step, function=make(step.function))
        if step.name == "channels_last"
        else step
        for step in passes.PIPELINE
    ]
    monkeypatch.setattr(passes, "PIPELINE", pipeline)


def claiming(wanted, changing_weights=False):
    """Return a variant of the pass for a backend with all, or no, channels-last kernels."""
    costs = DEFAULT_COSTS._replace(layout=LAYOUT._replace(changing_weights=changing_weights))

    def make(function):
        return lambda graph, context: function(
            graph, dataclasses.replace(context, claims=lambda *_: wanted, costs=costs)
        )

    return make


@pytest.fixture
def always(monkeypatch):
    """Fixture: converts to channels last whatever can be converted."""
    monkeypatch.setattr(channels_last_conversion, "pays", lambda *_: True)
    monkeypatch.setattr(channels_last_conversion, "suits", lambda *_: True)
    replace_pass(monkeypatch, claiming(True))


@pytest.fixture
def training(monkeypatch):
    """Fixture: converts convolutions whose weights may change, and gradients, too."""
    monkeypatch.setattr(channels_last_conversion, "pays", lambda *_: True)
    monkeypatch.setattr(channels_last_conversion, "suits", lambda *_: True)
    replace_pass(monkeypatch, claiming(True, changing_weights=True))


@pytest.fixture
def graphs(monkeypatch):
    """Fixture: the list of verified graphs that the channels-last pass has returned."""
    found: list[Graph] = []

    def make(function):
        def seen(graph, context):
            found.append(verify(function(graph, context)))
            return found[-1]

        return seen

    replace_pass(monkeypatch, make)
    return found


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def conv(inputs, outputs, size=3, stride=1, groups=1, bias=False):
    """Return a convolution layer with random weights."""
    return nn.Conv2d(
        inputs,
        outputs,
        size,
        stride,
        pad_mode="pad",
        padding=size // 2,
        group=groups,
        has_bias=bias,
        weight_init=Tensor(
            array(outputs, inputs // groups, size, size, seed=inputs + outputs) / size / inputs**0.5
        ),
        bias_init=Tensor(array(outputs, seed=outputs)) if bias else None,
    )


class Normalised(nn.Cell):
    """A convolution, normalised by what it has seen, and perhaps an activation."""

    def __init__(self, inputs, outputs, size=3, stride=1, groups=1, after=ops.relu):
        super().__init__()
        self.conv = conv(inputs, outputs, size, stride, groups)
        self.norm = nn.BatchNorm2d(outputs)
        self.norm.moving_mean.set_data(Tensor(array(outputs, seed=1)))
        self.norm.moving_variance.set_data(Tensor(array(outputs, seed=2) ** 2 + 0.5))
        self.after = after

    def construct(self, x):
        x = self.norm(self.conv(x))
        return x if self.after is None else self.after(x)


class Residual(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = Normalised(6, 8, stride=2), Normalised(8, 8, after=None)
        self.down = Normalised(6, 8, 1, 2, after=None)
        self.c, self.d = Normalised(8, 8), Normalised(8, 8, after=None)

    def construct(self, x):
        x = ops.relu(self.b(self.a(x)) + self.down(x))
        return ops.relu(self.d(self.c(x)) + x)


class Separable(nn.Cell):
    """Inverted bottlenecks, and a mean over space before a dense layer."""

    def __init__(self):
        super().__init__()
        self.up, self.each = (
            Normalised(4, 12, 1, after=ops.relu6),
            Normalised(12, 12, groups=12, after=ops.relu6),
        )
        self.down = Normalised(12, 4, 1, after=None)
        self.fc = nn.Dense(4, 5, weight_init=Tensor(array(5, 4)))

    def construct(self, x):
        return self.fc((x + self.down(self.each(self.up(x)))).mean((2, 3)))


class Excite(nn.Cell):
    """Channels weighed by a small network of their means."""

    def __init__(self, keep):
        super().__init__()
        self.a, self.b = Normalised(3, 8), Normalised(8, 4)
        self.less, self.more = conv(8, 2, 1, bias=True), conv(2, 8, 1, bias=True)
        self.keep = keep

    def construct(self, x):
        x = self.a(x)
        weights = x.mean((2, 3), True) if self.keep else x.mean((2, 3)).reshape(x.shape[0], 8, 1, 1)
        return self.b(x * ops.sigmoid(self.more(ops.silu(self.less(weights)))))


class Densely(nn.Cell):
    """Every layer reads what all before it have found."""

    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([Normalised(4 + 3 * k, 3) for k in range(3)])

    def construct(self, x):
        for layer in self.layers:
            x = ops.cat((x, layer(x)), 1)
        return x


class Branches(nn.Cell):
    """Four ways, one of which begins with a pool and one of which is chosen by value."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Normalised(4, 4, 1), Normalised(4, 6), Normalised(4, 5, 1)
        self.d, self.e = Normalised(4, 4), Normalised(4, 4, 1)
        self.pool = nn.MaxPool2d(3, 1, pad_mode="same")

    def construct(self, x):
        if x.sum() > 0:
            d = self.d(x)
        else:
            d = self.e(self.d(x)) * 2
        return ops.cat((self.a(x), self.b(self.a(x)), self.c(self.pool(x)), d), 1)


class Repeated(nn.Cell):
    """A block run until a value says so."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Normalised(4, 6), Normalised(6, 4, after=ops.tanh)

    def construct(self, x, n):
        while n > 0:
            x = x + self.b(self.a(x))
            n = n - 1
        return x


class Shifted(nn.Cell):
    """What moves elements along axes, is broadcast, or reduces some of the axes."""

    def __init__(self):
        super().__init__()
        self.a, self.b = conv(4, 6, bias=True), conv(7, 4, 1)
        self.whole = Parameter(Tensor(array(6, 9, 7)), name="whole")
        self.lines = Parameter(Tensor(array(9, 1, seed=3)), name="lines")

    def construct(self, x):
        x = (self.a(x) + self.whole) * self.lines
        low = ops.amax(x, 1, True)
        x = ops.cat((x[:, 1:4], low, x[:, :3]), 1)
        x = ops.pad(x, [1, 2, 0, 1])
        x = ops.where(x > 0, x, x * 0.1).astype(ms.float32)
        y = self.b(x)
        most = ops.amax(y, 1), ops.amax(y, (1, 2))
        return y[:, :, ::2, 1:], y.sum(3), *most, y.sum((0, 2, 3)), y.min(), y.mean((0, 2), True)


class Kept(nn.Cell):
    """Values that are read inside and outside, as they are and under other names."""

    def __init__(self):
        super().__init__()
        self.a, self.b = conv(4, 6), conv(6, 6)

    def construct(self, x):
        x = ops.relu(self.a(x))
        y = self.b(x)
        return x, y, x.reshape(x.shape[0], -1) @ ops.ones((6 * 63, 2)), ops.softmax(y + x, 1)


class Pools(nn.Cell):
    """Pooling between convolutions; where the largest were found is asked for once."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Normalised(4, 6), conv(6, 5, bias=True), conv(5, 3, 1)
        self.most = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        self.mean = nn.AvgPool2d(2, 1, pad_mode="pad", padding=1, count_include_pad=False)

    def construct(self, x):
        x = self.c(self.mean(self.b(self.most(self.a(x)))))
        return ops.avg_pool2d(x, 2), ops.max_pool2d(x, 2, 1, return_indices=True)[1]


class Last(nn.Cell):
    """The user's own channels last: what turns around each convolution cancels."""

    def __init__(self):
        super().__init__()
        shape = {"pad_mode": "pad", "padding": 1, "data_format": "NHWC"}
        self.a = nn.Conv2d(4, 6, 3, weight_init=Tensor(array(6, 4, 3, 3)), **shape)
        self.b = nn.Conv2d(6, 4, 3, weight_init=Tensor(array(4, 6, 3, 3)), **shape)

    def construct(self, x):
        return self.b(ops.relu(self.a(x)))


class Rank(nn.Cell):
    """Convolutions of one and of three axes."""

    def __init__(self, n):
        super().__init__()
        layer = {1: nn.Conv1d, 3: nn.Conv3d}[n]
        self.a = layer(
            3, 5, 3, weight_init=Tensor(array(5, 3, *[3] * n)), pad_mode="pad", padding=1
        )
        self.b = layer(5, 2, 2, weight_init=Tensor(array(2, 5, *[2] * n)), pad_mode="valid")

    def construct(self, x):
        return self.b(ops.gelu(self.a(x)))


class Half(nn.Cell):
    """Weights that are rounded to another dtype first."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype
        self.net = Residual()

    def construct(self, x):
        w = self.net.a.conv.weight.astype(self.dtype)
        y = ops.conv2d(x.astype(self.dtype), w, None, 1, "pad", 1)
        return ops.relu(y), ops.conv2d(y, ops.ones((3, 8, 1, 1), self.dtype))


def image(n=2, c=4):
    return Tensor(array(n, c, 9, 7, seed=7))


# network, arguments, convolutions that are laid out, values that are transposed
NETWORKS = {
    "residual": (Residual, (image(c=6),), 5, 2),
    "residual, one image": (Residual, (image(1, 6),), 5, 2),
    "depthwise and mean": (Separable, (image(),), 3, 1),
    "squeeze and excite": (lambda: Excite(True), (image(c=3),), 4, 2),
    "squeeze and excite, reshaped": (lambda: Excite(False), (image(c=3),), 4, 2),
    "dense": (Densely, (image(),), 3, 2),
    "branches": (Branches, (image(),), 6, 8),
    "loop": (Repeated, (image(), Tensor(3)), 2, 2),
    "shifted": (Shifted, (image(),), 2, 4),
    "kept": (Kept, (image(),), 2, 4),
    "pools": (Pools, (image(),), 3, 3),
    "channels last before": (Last, (Tensor(array(2, 9, 7, 4)),), 2, 0),
    "one axis": (lambda: Rank(1), (Tensor(array(2, 3, 11)),), 2, 2),
    "three axes": (lambda: Rank(3), (Tensor(array(2, 3, 5, 4, 6)),), 2, 2),
    "float16": (lambda: Half(ms.float16), (image(c=6),), 2, 3),
    "bfloat16": (lambda: Half(ms.bfloat16), (image(c=6),), 2, 3),
    "one element": (Residual, (Tensor(array(1, 6, 1, 1)),), 5, 0),
    "no image": (Residual, (Tensor(array(0, 6, 9, 7)),), 5, 2),
}
NEAR = {ms.float16: 2e-2, ms.bfloat16: 2e-1}


def parts(found):
    return found if isinstance(found, tuple) else (found,)


def check(want, got):
    for a, b in zip(parts(want), parts(got), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        near = NEAR.get(a.dtype, 5e-5)
        a, b = a.float().asnumpy(), b.float().asnumpy()
        np.testing.assert_allclose(b, a, rtol=near, atol=near * max(1, np.abs(a).max(initial=0)))


def count(graph, name):
    """Return how many nodes call an op, in a graph and all its sub-graphs."""
    inside = sum(
        count(g, name) for node in graph.nodes if node.op in SUBGRAPH_OPS for g in node.graphs
    )
    return inside + sum(node.op.name == name for node in graph.nodes)


@needs_compiler
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, level, always, graphs):
    make, args, convolutions, transposed = NETWORKS[name]
    net = make()
    net.set_train(False)
    want = net(*args)
    run = ms.jit(lambda *xs: net(*xs), jit_level=level)
    for _ in range(3):  # what is computed once is from the second call on
        check(want, run(*args))
    assert (
        count(graphs[0], "conv_channels_last") == convolutions and count(graphs[0], "conv") == 0
    ), graphs[0]
    said = "; ".join(run.explain(*args).kernels)
    values = f"{transposed} value{'s' * (transposed != 1)} transposed"
    assert f"{convolutions} convolutions laid out channels last, {values}" in said, said


# ---- training
# --------------------------------------------------------------------------

# the gradients of these ops, and the ops themselves, have forms with channels last
FIRST = [
    "conv", "conv_input_grad", "conv_weight_grad", "max_pool", "max_pool_grad", "avg_pool",
    "avg_pool_grad",
]  # fmt: skip


class Trained(nn.Cell):
    """A network and the square of its results, with statistics of the batch."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, *args):
        return sum((y.float() ** 2).sum() for y in parts(self.net(*args)) if y.dtype != ms.int64)


class Made(nn.Cell):
    """Weights that are computed from the image that they are applied to."""

    def __init__(self):
        super().__init__()
        self.a, self.b = conv(4, 6), conv(6, 3)

    def construct(self, x):
        x = ops.relu(self.a(x))
        weights = ops.tanh(x[:, :, :3, :3])
        return self.b(ops.conv2d(x, weights, None, 1, "pad", 1) @ ops.ones((7, 7)) * 1.0), weights


class Pooled(nn.Cell):
    """Pooling between convolutions, without statistics of the batch, which the CPU computes."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv(4, 6), conv(6, 5, bias=True), conv(5, 3, 1)
        self.most = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        self.mean = nn.AvgPool2d(2, 1, pad_mode="pad", padding=1, count_include_pad=False)

    def construct(self, x):
        return self.c(ops.relu(self.mean(self.b(self.most(self.a(x))))))


# pooling of what is not laid out, and the gradient of it
POOL = ("max_pool", "max_pool_grad")
# network, arguments, ops with channels first that may remain
TRAINED = {
    "residual": (Residual, (image(c=6),), ()),
    "depthwise and mean": (Separable, (image(),), ()),
    "squeeze and excite": (lambda: Excite(True), (image(c=3),), ()),
    "dense": (Densely, (image(),), ()),
    "branches": (Branches, (image(),), POOL),
    "shifted": (Shifted, (image(),), ()),
    "kept": (Kept, (image(),), ()),
    "pools": (Pools, (image(),), POOL),
    "pools without statistics": (Pooled, (image(),), ()),
    "channels last before": (Last, (Tensor(array(2, 9, 7, 4)),), ()),
    "one axis": (lambda: Rank(1), (Tensor(array(2, 3, 11)),), ()),
    "three axes": (lambda: Rank(3), (Tensor(array(2, 3, 5, 4, 6)),), ()),
    "bfloat16": (lambda: Half(ms.bfloat16), (image(c=6),), ()),
    "one element": (Residual, (Tensor(array(3, 6, 1, 1)),), ("conv_weight_grad",)),
    "no image": (Residual, (Tensor(array(0, 6, 9, 7)),), ()),
    "made weights": (Made, (Tensor(array(6, 4, 9, 7)),), ()),
}


@needs_compiler
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TRAINED)
def test_gradients_with_channels_last(name, level, training, graphs):
    """Forward and backward pass are laid out, and give the gradients of eager mode."""
    make, args, remain = TRAINED[name]
    net = Trained(make()).set_train(name != "no image")
    weights = list(net.trainable_params())
    gradient = ms.value_and_grad(lambda *xs: net(*xs), 0, weights)
    start = [p.value().copy() for p in net.get_parameters()]
    want, (dx, dws) = gradient(*args)
    for p, value in zip(net.get_parameters(), start):
        p.set_data(value)  # the statistics too
    got, (dx2, dws2) = ms.jit(lambda *xs: gradient(*xs), jit_level=level)(*args)
    near = {"bfloat16": 0.3}.get(name, 1e-3)
    for a, b in zip((want, dx, *dws), (got, dx2, *dws2), strict=True):
        a, b = a.float().asnumpy(), b.float().asnumpy()
        np.testing.assert_allclose(b, a, atol=near * max(1, np.abs(a).max(initial=0)))
    found = {op: count(graphs[0], op) for op in FIRST}
    assert all(n == 0 or op in remain for op, n in found.items()), found
    converted = {op: count(graphs[0], f"{op}_channels_last") for op in FIRST[:3]}
    assert all(n > 0 or op in remain for op, n in converted.items()), converted


@needs_compiler
def test_positions_of_maxima_are_converted(training, graphs):
    """Where the indices are read, the op with indices takes the place of the one without."""
    net = Trained(Pooled()).set_train(True)
    ms.jit(lambda x: ms.grad(net, 0)(x))(image())
    assert count(graphs[0], "max_pool_indices_channels_last") == 1
    assert count(graphs[0], "max_pool_grad_channels_last") == 1
    assert count(graphs[0], "max_pool_channels_last") == 0


@needs_compiler
@pytest.mark.parametrize("changing", [False, True])
def test_weights_that_change_are_the_backends_choice(changing, graphs, monkeypatch):
    replace_pass(monkeypatch, claiming(True, changing))
    function, args, _ = trained()
    said = explained(ms.jit(lambda *xs: function(*xs)), *args)
    how = "laid out channels last, 1 value transposed" if changing else "with channels first"
    assert f"4 convolutions {how}" in said, said


# ---- what stays as it is
# --------------------------------------------------------------------------


def chain(length, width=4):
    return nn.SequentialCell(*[Normalised(width, width) for _ in range(length)]).set_train(False)


def explained(run, *args):
    run(*args)
    return "; ".join(run.explain(*args).kernels)


BEFORE = channels_last_costs.Cluster(6, 200 * LAYOUT.traffic_per_transpose, 200, 2)
RULE = {
    "one between two transposes": (BEFORE._replace(convolutions=1, traffic=200), False),
    "two": (BEFORE._replace(convolutions=2, traffic=400), False),
    "as many bytes as they cost": (BEFORE, True),
    "almost": (BEFORE._replace(traffic=BEFORE.traffic - 1), False),
    "nothing moves": (BEFORE._replace(moved=0, borders=0), True),
}


@pytest.mark.parametrize("name", RULE)
def test_layout_change_is_made_where_it_pays(name):
    cluster, wanted = RULE[name]
    assert channels_last_costs.pays(cluster, LAYOUT) is wanted


@needs_compiler
@pytest.mark.parametrize("length", [1, 2, 5, 6, 8])
def test_chains_of_a_minimum_length_change_layout(length, graphs):
    net = chain(length, 16)
    run = ms.jit(lambda x: net(x))
    said = explained(run, image(c=16))
    check(net(image(c=16)), run(image(c=16)))
    if length < LAYOUT.traffic_per_transpose:
        assert (
            f"{length} convolution{'s' * (length > 1)} with channels first: transposes around them"
            in said
        ), said
        assert count(graphs[0], "conv") == length
    else:
        assert f"{length} convolutions laid out channels last, 2 values transposed" in said, said


# shape of weights, groups, whether the input is laid out already
WEIGHTS = {
    "wide": ((16, 3, 3, 3), 1, False, True),
    "narrow": ((15, 64, 3, 3), 1, True, False),
    "each channel by itself": ((32, 1, 3, 3), 32, False, True),
    "few channels by themselves": ((8, 1, 3, 3), 8, True, False),
    "several outputs of each channel": ((64, 1, 3, 3), 32, True, False),
    "in groups": ((64, 32, 3, 3), 2, True, False),
    "narrow, of kernels of one": ((4, 64, 1, 1), 1, True, True),
    "narrow, of kernels of one, by itself": ((4, 64, 1, 1), 1, False, False),
    "in groups, of kernels of one": ((64, 32, 1, 1), 2, True, False),
    "one axis": ((16, 8, 3), 1, False, True),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_convolutions_that_support_channels_last(name):
    shape, groups, follows, wanted = WEIGHTS[name]
    weight = TensorType.of(shape, ms.float32)
    assert channels_last_costs.suits(weight, groups, follows, LAYOUT) is wanted


def narrow():
    return chain(4, 8), (image(c=8),), "vectors of their channels would not be full"


def trained():
    net = chain(4, 16)
    optimizer = nn.SGD(net.trainable_params(), 1e-3)
    grad = ms.value_and_grad(lambda x: net(x).mean(), None, optimizer.parameters)

    def step(x):
        value, grads = grad(x)
        optimizer(grads)
        return value

    return step, (image(c=16),), "their weights may change from call to call"


def given():
    weights = [Tensor(array(16, 16, 3, 3, seed=k)) for k in range(4)]

    def function(x, *weights):
        for w in weights:
            x = ops.relu(ops.conv2d(x, w, None, 1, "pad", 1))
        return x

    return function, (image(c=16), *weights), "their weights may change from call to call"


def unclaimed():
    return chain(4, 16), (image(c=16),), "the backend has no kernel of its own for them"


@needs_compiler
@pytest.mark.parametrize("make", [narrow, trained, given, unclaimed])
def test_graphs_without_supported_convolutions_are_unchanged(make, monkeypatch, graphs):
    replace_pass(monkeypatch, claiming(make is not unclaimed))
    function, args, why = make()
    said = explained(ms.jit(lambda *xs: function(*xs)), *args)
    assert f"4 convolutions with channels first: {why}" in said, said
    assert count(graphs[0], "conv_channels_last") == 0 and count(graphs[0], "conv") == 4


def test_level_o0_keeps_its_layout(always, graphs):
    net = chain(4)
    run = ms.jit(lambda x: net(x), jit_level="O0")
    assert (run(image()).asnumpy() == net(image()).asnumpy()).all() and not graphs


# ---- beside other things
# --------------------------------------------------------------------------


def recursive(net, x, n):
    if n > 0:
        return recursive(net, net(x), n - 1)
    return x


NET = chain(2)
BESIDE = {
    "gradient of the input": lambda x: ms.grad(lambda x: NET(x).sum())(x),
    "gradient of weights": lambda x: ms.grad(lambda x: NET(x).sum(), None, NET.trainable_params())(
        x
    ),
    "second derivative": lambda x: ms.grad(
        lambda y: (ms.grad(lambda x: (NET(x) ** 3).sum())(y) ** 2).sum()
    )(x),
    "vmap": lambda x: ms.vmap(lambda x: NET(x))(ops.stack((x, x * 2))),
    "recursion": lambda x: recursive(NET, x, (x.sum() > -1e9).astype(ms.int32) + 1),
    "jvp": lambda x: ms.jvp(lambda x: NET(x), (x,), (x * 2,)),
}


@needs_compiler
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", BESIDE)
def test_gradients_and_other_ops_beside_convolutions(name, level, always, graphs):
    function = BESIDE[name]
    want = parts(function(image()))
    run = ms.jit(lambda x: function(x), jit_level=level)
    for _ in range(3):
        check(want, parts(run(image())))
    assert count(graphs[0], "conv_channels_last") or name == "recursion"


@needs_compiler
@pytest.mark.parametrize("level", LEVELS)
def test_weights_that_change_take_effect(level, always):
    net = chain(3)
    run = ms.jit(lambda x: net(x), jit_level=level)
    for k in range(3):
        for _ in range(3):
            check(net(image()), run(image()))
        net[1].conv.weight.set_data(Tensor(array(4, 4, 3, 3, seed=k)))
        net[2].norm.moving_mean.set_data(Tensor(array(4, seed=k)))


@needs_compiler
def test_user_transposes_cancel(always, graphs):
    net = Last()
    ms.jit(lambda x: net(x))(Tensor(array(2, 9, 7, 4)))
    assert count(graphs[0], "transpose") > 0 and count(passes.run(graphs[0]), "transpose") == 0


@needs_compiler
def test_source_spans_are_kept(always, graphs):
    net = Kept()
    run = ms.jit(lambda x: net(x), jit_level="O1")
    run(image())
    (program,) = run.programs()
    want = [node.span for node in program.graph.nodes if node.op.name == "conv"]
    assert [node.span for node in graphs[0].nodes if node.op.name == "conv_channels_last"] == want
    assert len(set(want)) == len(want) > 1
    assert all(node.span is not None for node in graphs[0].nodes)
