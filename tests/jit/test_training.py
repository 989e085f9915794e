"""Whole training steps in one graph: weights and optimizer states are those of eager mode, bit for
bit.

D09: Whole step in one graph: forward + `value_and_grad` + `optimizer(grads)`; returns loss; weights
    move
D48: BatchNorm moving averages updated inside a compiled step persist
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn

RNG = np.random.RandomState(1)
X = RNG.randn(8, 6).astype(np.float32)
LABELS = RNG.randint(0, 3, 8).astype(np.int32)
IMAGES = RNG.randn(4, 1, 8, 8).astype(np.float32)

# how an optimizer is made from `params`
OPTIMISERS = {
    "ASGD": "nn.ASGD(params, 0.1)",
    "AdaMax": "nn.AdaMax(params, 0.1)",
    "Adadelta": "nn.Adadelta(params)",
    "Adagrad": "nn.Adagrad(params, learning_rate=0.1)",
    "Adam": "nn.Adam(params, 0.1)",
    "AdaFactor": "nn.AdaFactor(params, 0.1, scale_parameter=False, relative_step=False)",
    "Adam, amsgrad": "nn.Adam(params, 0.1, use_amsgrad=True)",
    "Adam, nesterov": "nn.Adam(params, 0.1, use_nesterov=True, weight_decay=0.1, loss_scale=2.0)",
    "AdamOffload": "nn.AdamOffload(params, 0.1)",
    "AdamWeightDecay": "nn.AdamWeightDecay(params, 0.1, weight_decay=0.1)",
    "FTRL": "nn.FTRL(params, learning_rate=0.1, l2=0.01)",
    "LARS": "nn.LARS(nn.Momentum(params, 0.1, 0.9))",
    "Lamb": "nn.Lamb(params, 0.1, weight_decay=0.1)",
    "LazyAdam": "nn.LazyAdam(params, 0.1)",
    "Momentum": "nn.Momentum(params, 0.1, 0.9)",
    "Momentum, nesterov": "nn.Momentum(params, 0.1, 0.9, weight_decay=0.01, loss_scale=2.0, "
    "use_nesterov=True)",
    "ProximalAdagrad": "nn.ProximalAdagrad(params, learning_rate=0.1, l1=0.01)",
    "RMSProp": "nn.RMSProp(params, 0.1, momentum=0.5)",
    "RMSProp, centered": "nn.RMSProp(params, 0.1, centered=True, weight_decay=0.01)",
    "Rprop": "nn.Rprop(params, 0.1)",
    "SGD": "nn.SGD(params, 0.1)",
    "SGD, nesterov": "nn.SGD(params, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "list of rates": "nn.SGD(params, [0.1, 0.2, 0.3])",
    "schedule": "nn.Adam(params, nn.ExponentialDecayLR(0.1, 0.9, 1))",
    "warm-up": "nn.Momentum(params, nn.WarmUpLR(0.1, 4), 0.9)",
    "groups": (
        "nn.Momentum([{'params': params[:2], 'lr': 0.2, 'weight_decay': 0.1}, {'params': "
        "params[2:]},"
        " {'order_params': params}], 0.1, 0.9)"
    ),
    "group schedules": (
        "nn.Adam([{'params': params[:2], 'lr': nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)}, "
        "{'params': params[2:]}], 0.1)"
    ),
}

MLP = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(6, 5)
        self.second = nn.Dense(5, 3)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))

net = Net()
net.set_train()
params = net.trainable_params()
loss_fn = nn.CrossEntropyLoss()
optimizer = {optimizer}
"""
STEP = """
def forward(x, y):
    logits = net(x)
    return loss_fn(logits, y), logits

grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

@jit
def f(x, y):
    (loss, logits), grads = grad_fn(x, y)
    optimizer(grads)
    return loss, logits

WATCH = ("list(net.get_parameters())", "list(optimizer.get_parameters())")
"""


def test_every_optimizer_has_a_row():
    made = {
        n for n in dir(nn) if isinstance(c := getattr(nn, n), type) and issubclass(c, nn.Optimizer)
    }
    assert made - {"Optimizer"} <= {name.split(",")[0] for name in OPTIMISERS}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_whole_steps(name, agree):
    """Loss, outputs, weights and the optimizer's state after each of three steps."""
    seen = agree(MLP.format(optimizer=OPTIMISERS[name]) + STEP, X, LABELS, calls=3)
    losses = [float(s.result[0][1]) for s in seen]
    assert losses[2] != losses[0]  # the weights move


@pytest.mark.parametrize("name", ["Momentum", "Adam", "SGD", "schedule"])
def test_train_one_step_cell_in_graph_mode(name, agree):
    source = (
        MLP.format(optimizer=OPTIMISERS[name])
        + """
f = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
f.set_train()
WATCH = ("list(f.get_parameters())",)
"""
    )
    agree(source, X, LABELS, calls=3, modes=("graph mode",))


@pytest.mark.parametrize(
    "scale",
    [
        "nn.FixedLossScaleUpdateCell(64.0)",
        "nn.DynamicLossScaleUpdateCell(2.0**30, 2, 2)",
        "Tensor([8.0])",
    ],
)
def test_loss_scaling_in_graph_mode(scale, agree):
    """Overflow skips a step under a tensor condition: the same steps are skipped in both modes."""
    source = (
        MLP.format(optimizer="nn.Momentum(params, 0.1, 0.9)")
        + f"""
f = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_fn), optimizer, {scale})
f.set_train()
WATCH = ("list(f.get_parameters())",)
"""
    )
    agree(source, X * 100, LABELS, calls=4, modes=("graph mode",))


def test_other_wrappers_in_graph_mode(agree):
    head = MLP.format(optimizer="nn.SGD(params, 0.1)")
    for made in (
        "nn.WithLossCell(net, loss_fn)",
        "nn.WithEvalCell(net, loss_fn)",
        "nn.WithGradCell(nn.WithLossCell(net, loss_fn))",
        "nn.ForwardValueAndGrad(nn.WithLossCell(net, loss_fn), params, get_by_list=True)",
    ):
        agree(f"{head}\nf = {made}\n", X, LABELS, modes=("graph mode",))


CONVOLUTIONAL = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.drop = nn.Dropout(p=0.3)
        self.head = nn.Dense(64, 3)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.head(self.drop(self.flatten(x)))

net = Net()
net.set_train()
params = net.trainable_params()
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Adam(params, 0.01)
"""


def test_batch_norm_and_dropout_in_a_compiled_step(agree):
    """Moving averages move once per step, to the same bits; dropout masks are the same."""
    seen = agree(CONVOLUTIONAL + STEP, IMAGES, LABELS[:4], calls=4)
    means = [s.state["list(net.get_parameters())"] for s in seen]
    assert str(means[0]) != str(means[1])


def test_moving_averages_of_a_compiled_layer(agree):
    agree(
        """
        net = nn.BatchNorm2d(1)
        net.set_train()

        @jit
        def f(x):
            return net(x) + net(x * 2)

        WATCH = ("net.moving_mean", "net.moving_variance")
        """,
        IMAGES,
        grad=(0,),
        weights="net.trainable_params()",
        calls=3,
    )


def test_the_seed_training_step(agree):
    """C11, D10: the training step of the seed document: Dense(10, 1), BCELoss, Adam."""
    source = """
    network = nn.Dense(10, 1)
    loss_fn = nn.BCELoss()
    optimizer = nn.Adam(network.trainable_params(), 0.01)

    def forward_fn(data, label):
        logits = network(data)
        loss = loss_fn(logits, label)
        return loss

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @jit
    def train_step(data, label):
        loss, grads = grad_fn(data, label)
        optimizer(grads)
        return loss

    f = train_step
    WATCH = ("list(network.get_parameters())",)
    """
    data, label = RNG.rand(4, 10).astype(np.float32), np.ones((4, 1), np.float32)
    seen = agree(source, data * 100, label, calls=1)
    assert seen[0].error is not None and isinstance(seen[0].error[2], RuntimeError)
    sigmoid = source.replace("logits = network(data)", "logits = ops.sigmoid(network(data))")
    agree(sigmoid, data, label, calls=3)


CLIPPED = {
    "by value": "grads = tuple([ops.clip_by_value(g, -0.01, 0.01) for g in grads])",
    "by norm": "grads = tuple([ops.clip_by_norm(g, 0.1) for g in grads])",
    "by global norm": "grads = ops.clip_by_global_norm(grads, 0.1)",
}


@pytest.mark.parametrize("name", CLIPPED)
def test_clipping(name, agree):
    """C37: clipping by value / norm / global norm inside the compiled step."""
    step = STEP.replace("    optimizer(grads)\n", f"    {CLIPPED[name]}\n    optimizer(grads)\n")
    agree(MLP.format(optimizer="nn.Adam(params, 0.1)") + step, X, LABELS, calls=3)


def test_gradient_accumulation(agree):
    """C37: gradients are added up in Parameters, applied every second step under a tensor
    condition.
    """
    step = """
accumulated = [Parameter(ops.zeros_like(p), name="acc." + p.name) for p in params]
counter = Parameter(Tensor(0, ms.int32), name="counter")
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

@jit
def f(x, y):
    loss, grads = grad_fn(x, y)
    for a, g in zip(accumulated, grads):
        ops.assign_add(a, g)
    ops.assign_add(counter, Tensor(1, ms.int32))
    if counter % 2 == 0:
        optimizer(tuple([a / 2 for a in accumulated]))
        for a in accumulated:
            ops.assign(a, ops.zeros_like(a))
    return loss

WATCH = ("list(net.get_parameters())", "list(optimizer.get_parameters())", "accumulated", "counter")
"""
    agree(MLP.format(optimizer="nn.Momentum(params, 0.1, 0.9)") + step, X, LABELS, calls=4)


def test_hyper_map_updates(agree):
    """D44: `HyperMap` and `MultitypeFuncGraph`, the older way to write an update."""
    step = """
update = ops.MultitypeFuncGraph("update")

@update.register("Number", "Tensor", "Tensor")
def _update(rate, p, g):
    return ops.assign_sub(p, g * rate)

hyper_map = ops.HyperMap()
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, params)

@jit
def f(x, y):
    loss, grads = grad_fn(x, y)
    hyper_map(ops.partial(update, 0.1), ms.ParameterTuple(params), grads)
    return loss

WATCH = ("list(net.get_parameters())",)
"""
    agree(MLP.format(optimizer="nn.SGD(params, 0.1)") + step, X, LABELS, calls=3)


@pytest.mark.parametrize("transform", ["get_by_list", "sens"])
def test_grad_operation_steps(transform, agree):
    """C07, C09: GradOperation with weights, and with a sens parameter, inside a compiled step."""
    sens = transform == "sens"
    extra = ", Tensor(2.0)" if sens else ""
    step = f"""
grad_op = ops.GradOperation(get_by_list=True, sens_param={sens})
with_loss = nn.WithLossCell(net, loss_fn)
weights = ms.ParameterTuple(params)

@jit
def f(x, y):
    grads = grad_op(with_loss, weights)(x, y{extra})
    optimizer(grads)
    return grads

WATCH = ("list(net.get_parameters())",)
"""
    agree(MLP.format(optimizer="nn.SGD(params, 0.1)") + step, X, LABELS, calls=3)


def test_training_switches_between_the_modes(load):
    """Steps taken line by line and compiled may follow each other: the state is one."""
    x, y = ms.Tensor(X), ms.Tensor(LABELS)
    ms.set_context(jit_level="O0")

    def run(steps):
        ms.set_seed(5)
        fresh = load(MLP.format(optimizer="nn.Adam(params, 0.1)") + STEP.replace("@jit\n", ""))
        plain, jitted = fresh["f"], ms.jit(fresh["f"])
        losses = [(jitted if s else plain)(x, y)[0].asnumpy().tobytes() for s in steps]
        return losses, [p.asnumpy().tobytes() for p in fresh["params"]]

    assert run([0, 0, 0, 0]) == run([0, 1, 0, 1]) == run([1, 1, 1, 1])


def test_a_whole_step_compiles_once(load):
    space = load(
        MLP.format(optimizer="nn.Adam(params, nn.ExponentialDecayLR(0.1, 0.9, 1))") + STEP,
        jit=ms.jit,
    )
    x, y = ms.Tensor(X), ms.Tensor(LABELS)
    for _ in range(4):
        space["f"](x, y)
    assert space["f"].cache_info().misses == 1


def test_a_checkpoint_loaded_after_a_warm_up_call_is_used(load, tmp_path):
    """Promise 3, loaded means loaded: MindSpore's jit ignores a checkpoint that is loaded after the
    first call.
    """
    space = load(MLP.format(optimizer="nn.Adam(params, 0.1)") + STEP, jit=ms.jit)
    net, x, y = space["net"], ms.Tensor(X), ms.Tensor(LABELS)
    predict = ms.jit(lambda v: net(v))
    before = predict(x).asnumpy()
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    for _ in range(3):
        space["f"](x, y)
    assert predict(x).asnumpy().tobytes() != before.tobytes()
    ms.load_param_into_net(net, ms.load_checkpoint(str(tmp_path / "net.ckpt")))
    assert predict(x).asnumpy().tobytes() == before.tobytes()


def test_model_train_in_graph_mode():
    """`Model.train` in GRAPH_MODE gives the losses and weights of PYNATIVE_MODE."""

    def run(mode):
        ms.set_context(mode=mode, jit_level="O0")
        ms.set_seed(4)
        net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 3))
        data = ms.dataset.NumpySlicesDataset({"x": X, "y": LABELS}, shuffle=False).batch(4)
        model = ms.Model(
            net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), {"acc"}
        )
        model.train(3, data)
        return [p.asnumpy().tobytes() for p in net.get_parameters()], model.eval(data)

    assert run(ms.PYNATIVE_MODE) == run(ms.GRAPH_MODE)


def test_recompute_in_graph_mode(agree):
    """C36: Gradient checkpointing `recompute` per Cell gives the same gradients."""
    agree(
        """
        net = f = nn.SequentialCell(nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 6))
        net[0].recompute()
        """,
        X,
        grad=(0,),
        weights="net.trainable_params()",
        modes=("graph mode",),
    )
