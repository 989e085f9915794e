"""Pipeline parallelism: a program cut into stages computes what one process computes.

The ranks are threads (`run_ranks`); `test_processes` starts real ones. Each stage runs one
micro-batch after the other, so the gradients, and the Parameters after training, have the bits of
one process that runs the same `PipelineCell`.
"""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys

import duograph as ms
import numpy as np
import pipeline_ranks
import pytest
from amount import spread
from duograph import Tensor, nn, ops, parallel
from duograph.communication import get_rank
from duograph.errors import (
    ArgumentValueError,
    DeviceError,
    UnsupportedOpError,
    UnsupportedSyntaxError,
)
from duograph.sharding.schedule import Unit, unit_order
from duograph_collectives.local import run_ranks

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(8, 6)).astype(np.float32)
Y = RANDOM.normal(size=(8, 4)).astype(np.float32)


class Block(nn.Cell):
    def __init__(self, n):
        super().__init__()
        self.dense = nn.Dense(n, n)
        self.norm = nn.LayerNorm((n,))

    def construct(self, x):
        return self.norm(ops.gelu(self.dense(x)))


class Plain(nn.Cell):
    """Three layers that follow each other."""

    def __init__(self, stages):
        super().__init__()
        self.a, self.b, self.c = nn.Dense(6, 16), Block(16), nn.Dense(16, 4)
        for cell, stage in zip((self.a, self.b, self.c), stages, strict=True):
            cell.pipeline_stage = stage

    def construct(self, x):
        return self.c(self.b(ops.tanh(self.a(x))))


class Skipping(Plain):
    """The first layer's result is added behind the second, and goes to two stages."""

    def construct(self, x):
        first = self.a(x)
        return self.c(self.b(first) + first * 0.5)


class Tied(nn.Cell):
    """The first and the last stage share a weight."""

    def __init__(self, stages):
        super().__init__()
        self.a, self.b = nn.Dense(6, 16, has_bias=False), Block(16)
        self.c = Reader(self.a.weight)
        for cell, stage in zip((self.a, self.b, self.c), stages, strict=True):
            cell.pipeline_stage = stage

    def construct(self, x):
        return self.c(self.b(self.a(x)))[:, :4]


class Reader(nn.Cell):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def construct(self, x):
        return ops.matmul(x, self.weight)


class Dropping(Plain):
    """Dropout on two stages and in code without a stage."""

    def __init__(self, stages):
        super().__init__(stages)
        self.d, self.e = nn.Dropout(p=0.3), nn.Dropout(p=0.2)
        self.d.pipeline_stage = stages[1]

    def construct(self, x):
        return self.c(self.d(self.b(ops.tanh(self.a(self.e(x))))))


class Normalised(Plain):
    """Moving statistics, which the stages write while they run forward."""

    def __init__(self, stages):
        super().__init__(stages)
        self.bn = nn.BatchNorm1d(16)
        self.bn.pipeline_stage = stages[1]

    def construct(self, x):
        return self.c(self.b(self.bn(self.a(x))))


class Scaled(Plain):
    """A Parameter without axes on each stage."""

    def __init__(self, stages):
        super().__init__(stages)
        self.first, self.last = Factor(0.5), Factor(2.0)
        self.first.pipeline_stage, self.last.pipeline_stage = stages[0], stages[2]

    def construct(self, x):
        return self.last(self.c(self.b(self.first(self.a(x)))))


class Factor(nn.Cell):
    def __init__(self, value):
        super().__init__()
        self.factor = ms.Parameter(Tensor(value, ms.float32))

    def construct(self, x):
        return x * self.factor


class Loops(Plain):
    """A loop and a branch on Tensors, each inside one stage."""

    def construct(self, x):
        return self.c(self.turn(self.a(x)))

    def __init__(self, stages):
        super().__init__(stages)
        self.turn = Turning(self.b)
        self.turn.pipeline_stage = stages[1]


class Turning(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        k = Tensor(0)
        while k < 2:
            x = ops.tanh(self.inner(x))
            k = k + 1
        if x.sum() > 0:
            x = x * 2.0
        return x


NETWORKS = {c.__name__: c for c in (Plain, Skipping, Tied, Dropping, Normalised, Scaled, Loops)}
ON_ALL = {"global_step", "beta1_power", "beta2_power", "learning_rate"}
STAGES = {2: [(0, 0, 1), (0, 1, 1), (1, 0, 1)], 3: [(0, 1, 2)]}
OPTIMISERS = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "Momentum": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=0.01),
    "Adam": lambda p: nn.Adam(p, 0.01),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01),
    "Lamb": lambda p: nn.Lamb(p, 0.01),
}


def trained(
    network, stages, micro, optimiser="Adam", steps=3, options=None, level="O0", step_of=None
):
    """Return losses and Parameters after some steps, on a pipeline if `options` are given."""
    if options is not None:
        count = max(stages) + 1
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=count, full_batch=True, **options
        )
    ms.set_seed(1)
    net = NETWORKS[network](stages)
    cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), micro)
    cell.set_train()
    step = (step_of or nn.TrainOneStepCell)(cell, OPTIMISERS[optimiser](cell.trainable_params()))
    step.set_jit_config(ms.JitConfig(level))
    losses = [step(Tensor(X), Tensor(Y)) for _ in range(steps)]
    losses = [found[0] if isinstance(found, tuple) else found for found in losses]
    parameters = list(step.get_parameters())
    held = [p.name for p in parameters if p._placement is None or p._placement.elsewhere is None]
    values = {p.name: parallel.gathered(p).asnumpy() for p in parameters}
    return [x.item() for x in losses], values, held


@pytest.fixture(autouse=True)
def graph_mode():
    with contextlib.ExitStack() as stack:
        mode = ms.get_context("mode")
        stack.callback(ms.set_context, mode=mode)
        ms.set_context(mode=ms.GRAPH_MODE)
        yield


def compare(found, expected, exact=True):
    for losses, values, _ in found:
        assert values.keys() == expected[1].keys()
        for name, value in values.items():
            if exact:
                np.testing.assert_array_equal(value, expected[1][name], err_msg=name)
            else:
                np.testing.assert_allclose(value, expected[1][name], rtol=2e-4, atol=2e-5)
        if exact:
            assert losses == expected[0]


CASES = spread(NETWORKS, [(2, 2), (3, 4), (2, 1), (2, 4), (3, 1), (3, 2)])


@pytest.mark.parametrize("network, sizes", CASES)
def test_networks(network, sizes):
    """The bits of one process; each Parameter is on one stage, and the step counters are on all."""
    count, micro = sizes
    for stages in STAGES[count]:
        expected = trained(network, stages, micro)
        found = run_ranks(lambda: trained(network, stages, micro, options={}), count)  # noqa: B023
        compare(found, expected)
        everything = set(expected[1])
        held = [set(names) for _, _, names in found]
        assert set().union(*held) == everything
        for name in everything:
            holders = sum(name in names for names in held)
            # the state of an optimiser without axes is small, and stays on all ranks
            everywhere = name in ON_ALL or (name[:6] == "moment" and not expected[1][name].ndim)
            assert holders == (count if everywhere else 1), name


WAYS = [("1f1b", "O0"), ("gpipe", "O0"), ("1f1b", "O1"), ("1f1b", "O2"), ("gpipe", "O1")]


@pytest.mark.parametrize("optimiser, way", spread(OPTIMISERS, WAYS))
def test_optimisers(optimiser, way):
    scheduler, level = way
    expected = trained("Skipping", (0, 1, 2), 4, optimiser, level=level)
    options = {"pipeline_config": {"pipeline_scheduler": scheduler}}
    found = run_ranks(
        lambda: trained("Skipping", (0, 1, 2), 4, optimiser, options=options, level=level), 3
    )
    compare(found, expected, exact=level == "O0")


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("mode", ["pipeline", "data parallel"])
def test_weights_that_several_matmuls_read(mode, level):
    """Kernels share one packed copy of such a weight, also across the messages in between."""
    x = RANDOM.normal(size=(1024, 64)).astype(np.float32)

    def program(ranks):
        ms.set_seed(1)
        net = nn.SequentialCell(nn.Dense(64, 64), nn.Tanh(), nn.Dense(64, 64))
        net[0].pipeline_stage, net[2].pipeline_stage = 0, 1
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 8)
        if ranks > 1 and mode == "pipeline":
            semi_auto()
        elif ranks > 1:
            ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        step = nn.TrainOneStepCell(cell, nn.SGD(cell.trainable_params(), 0.1))
        step.set_jit_config(ms.JitConfig(level))
        losses = [step(Tensor(x), Tensor(x)).item() for _ in range(2)]
        return losses, {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}

    losses, values = program(1)
    for others, arrays in run_ranks(lambda: program(2), 2):
        np.testing.assert_allclose(others, losses, rtol=1e-5)
        for name, value in arrays.items():
            np.testing.assert_allclose(value, values[name], rtol=1e-4, atol=1e-6)


class Clipping(nn.TrainOneStepCell):
    """A step whose gradients are clipped by their norm over all stages."""

    def construct(self, *inputs):
        loss, grads = self._value_and_grad(inputs)
        self.optimizer(ops.clip_by_global_norm(grads, 0.1))
        return loss


def scaled(network, optimiser):
    manager = nn.DynamicLossScaleUpdateCell(
        loss_scale_value=2.0**12, scale_factor=2, scale_window=2
    )
    return nn.TrainOneStepWithLossScaleCell(network, optimiser, manager)


@pytest.mark.parametrize("step_of", [Clipping, scaled], ids=["clipped", "loss scale"])
@pytest.mark.parametrize("network", ["Plain", "Tied"])
def test_steps_over_all_gradients(network, step_of):
    """A norm, or a check for overflow, of all gradients needs a value of every stage."""
    expected = trained(network, (0, 1, 1), 2, step_of=step_of)
    found = run_ranks(lambda: trained(network, (0, 1, 1), 2, options={}, step_of=step_of), 2)
    compare(found, expected)


def test_functions():
    """A training step that the user wrote and compiled, with `value_and_grad` and the reducer."""

    def program(options=None):
        if options is not None:
            ms.set_auto_parallel_context(
                parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True
            )
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        optimiser = nn.SGD(cell.trainable_params(), 0.1)
        reducer = nn.PipelineGradReducer(optimiser.parameters)
        gradients = ms.value_and_grad(cell, None, optimiser.parameters)

        @ms.jit(jit_level="O0")
        def step(x, y):
            loss, grads = gradients(x, y)
            optimiser(reducer(grads))
            return loss

        losses = [step(Tensor(X), Tensor(Y)).item() for _ in range(3)]
        predict = ms.jit(net, jit_level="O0")(Tensor(X)).asnumpy()
        return losses, predict

    losses, predict = program()
    for found in run_ranks(lambda: program({}), 2):
        assert found[0] == losses
        np.testing.assert_array_equal(found[1], predict)


def test_model_train():
    """`Model.train` and `Model.predict`, with the loss on all ranks."""

    def program(pipeline):
        if pipeline:
            ms.set_auto_parallel_context(
                parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True
            )
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        data = ms.dataset.NumpySlicesDataset((X, Y), shuffle=False).batch(4)
        model = ms.Model(cell, optimizer=nn.SGD(cell.trainable_params(), 0.1))
        model.train(2, data, dataset_sink_mode=False)
        return {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}

    expected = program(False)
    for found in run_ranks(lambda: program(True), 2):
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6)


def test_data_parallel_stages():
    """Two stages of two ranks each; the ranks of a stage pass shards of the batch."""

    def program():
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2)
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        step = nn.TrainOneStepCell(cell, nn.Adam(cell.trainable_params(), 0.01))
        rows = slice(get_rank() % 2 * 4, get_rank() % 2 * 4 + 4)
        losses = [step(Tensor(X[rows]), Tensor(Y[rows])).item() for _ in range(3)]
        return losses, {p.name: parallel.gathered(p).asnumpy() for p in step.get_parameters()}, []

    expected = trained("Plain", (0, 1, 1), 2)
    compare(run_ranks(program, 4), expected, exact=False)


# not Dropping: the numbers of dropout belong to other samples than in one process
@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "Dropping"])
def test_stages_share_the_batch(network):
    """Nothing is gathered: messages carry shards, and gradients are reduced once in a step."""

    def program():
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2)
        ms.set_seed(1)
        net = NETWORKS[network]((0, 1, 1))
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        cell.set_train()
        step = nn.TrainOneStepCell(cell, nn.SGD(cell.trainable_params(), 0.1))
        rows = [slice(r * 4, r * 4 + 4) for r in range(2)][get_rank() % 2]
        x, y = Tensor(X[rows]), Tensor(Y[rows])
        losses = [step(x, y).item() for _ in range(3)]
        values = {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}
        again = [step(x, y).item() for _ in range(2)]  # with Parameters that have a placement
        assert again[1] < again[0] < losses[0]
        return losses, values, str(step.explain(x, y))

    ms.set_seed(1)
    net = NETWORKS[network]((0, 1, 1))
    cell = nn.WithLossCell(net, nn.MSELoss())
    cell.set_train()
    order = [0, 1, 4, 5, 2, 3, 6, 7]  # the first micro-batch has the first half of each shard
    both = [(Tensor(X[rows]), Tensor(Y[rows])) for rows in (order[:4], order[4:])]
    optimiser = nn.SGD(net.trainable_params(), 0.1)
    gradients = ms.value_and_grad(
        lambda: sum(cell(*pair) for pair in both), None, optimiser.parameters
    )
    losses = []
    for _ in range(3):
        loss, grads = gradients()
        optimiser(grads)
        losses.append(loss.item())
    for found, values, text in run_ranks(program, 4):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for p in net.get_parameters():
            np.testing.assert_allclose(values[p.name], p.asnumpy(), rtol=1e-3, atol=1e-5)
        if network not in ("Loops", "Normalised"):
            assert "all_gather" not in text


def test_tensor_parallel_stage():
    """The second of two stages divides a weight among its two ranks."""

    def program():
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True
        )
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        net.c.shard(((1, 1),), parameter_plan={"c.weight": (2, 1)})
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        step = nn.TrainOneStepCell(cell, nn.SGD(cell.trainable_params(), 0.1))
        losses = [step(Tensor(X), Tensor(Y)).item() for _ in range(3)]
        shape = net.c.weight.shape
        return losses, {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}, shape

    expected = trained("Plain", (0, 1, 1), 2, "SGD")
    found = run_ranks(program, 4)
    assert [shape for *_, shape in found] == [(0, 16), (0, 16), (2, 16), (2, 16)]
    for losses, values, _ in found:
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        for name, value in values.items():
            np.testing.assert_allclose(value, expected[1][name], rtol=1e-4, atol=1e-6)


def test_a_mesh_on_one_stage():
    """Only the last of two stages of four ranks divides a weight, along one axis of a mesh."""

    def program():
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True
        )
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        first = 4 * (get_rank() // 4)
        mesh = ms.Layout((2, 2), ("dp", "mp"), rank_list=list(range(first, first + 4)))
        net.c.shard((mesh("dp", "None"),), parameter_plan={"c.weight": mesh("mp", "None")})
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        step = nn.TrainOneStepCell(cell, nn.SGD(cell.trainable_params(), 0.1))
        losses = [step(Tensor(X), Tensor(Y)).item() for _ in range(3)]
        return losses, {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}

    expected = trained("Plain", (0, 1, 1), 2, "SGD")
    for losses, values in run_ranks(program, 8):
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        for name, value in values.items():
            np.testing.assert_allclose(value, expected[1][name], rtol=1e-4, atol=1e-6)


def test_prints_and_their_order():
    """A print of a Cell happens on its stage, and in program order."""

    def program():
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True
        )

        class Printing(Plain):
            def construct(self, x):
                return self.c(self.printed(self.a(x)))

        class Shown(nn.Cell):
            def construct(self, x):
                print("rows", x.shape[0], x.sum() * 0)
                return x

        net = Printing((0, 1, 1))
        net.printed = Shown()
        net.printed.pipeline_stage = 1
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        return ms.jit(cell)(Tensor(X), Tensor(Y)).item()

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        first, second = run_ranks(program, 2)
    assert first == second
    assert out.getvalue().count("rows") == 2  # micro-batches, on one stage


def test_stage_config():
    net = Plain((0, 0, 0))
    cell = nn.PipelineCell(net, 2, stage_config={"a": 0, "b": 1, "b.dense": 2})
    assert [cell.network.a.pipeline_stage, net.b.pipeline_stage] == [0, 1]
    assert net.b.dense.pipeline_stage == 2
    with pytest.raises(KeyError, match="stage_config names 'd'; wanted one of 'a', 'b'"):
        nn.PipelineCell(net, 2, stage_config={"d": 1})
    with pytest.raises(TypeError, match="got stage_config of list"):
        nn.PipelineCell(net, 2, stage_config=[1])


@pytest.mark.parametrize(
    "stage, error", [(-1, ValueError), (True, TypeError), (1.0, TypeError), (None, TypeError)]
)
def test_wrong_stage(stage, error):
    with pytest.raises(error, match="pipeline_stage: got"):
        nn.Dense(1, 1).pipeline_stage = stage


def failing(program, count=2):
    """Return the error that every rank of a program raises."""

    def run():
        try:
            program()
        except Exception as error:  # noqa: BLE001
            return error
        return None

    found = run_ranks(run, count)
    assert all(type(e) is type(found[0]) for e in found)
    return found[0]


def semi_auto(**options):
    ms.set_auto_parallel_context(
        **{"parallel_mode": "semi_auto_parallel", "pipeline_stages": 2, "full_batch": True}
        | options
    )


def run_plain(stages=(0, 1, 1), call=None, **options):
    def program():
        semi_auto(**options)
        cell = nn.PipelineCell(nn.WithLossCell(Plain(stages), nn.MSELoss()), 2)
        return (call or ms.jit(cell))(Tensor(X), Tensor(Y))

    return program


class Across(Plain):
    def construct(self, x):
        x, k = self.a(x), Tensor(0)
        while k < 2:
            x, k = self.b(x), k + 1
            x = ops.tanh(self.d(x))
        return self.c(x)

    def __init__(self, stages):
        super().__init__(stages)
        self.d = nn.Dense(16, 16)
        self.d.pipeline_stage = 0


def across():
    semi_auto()
    return ms.jit(Across((0, 1, 1)))(Tensor(X))


def without_stages():
    semi_auto()
    cell = nn.PipelineCell(nn.WithLossCell(nn.Dense(6, 4), nn.MSELoss()), 2)
    return ms.jit(cell)(Tensor(X), Tensor(Y))


def not_compiled():
    semi_auto()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return nn.PipelineCell(nn.WithLossCell(Plain((0, 1, 1)), nn.MSELoss()), 2)(Tensor(X), Tensor(Y))


def collective():
    semi_auto()
    net = Plain((0, 1, 1))
    return ms.jit(lambda x: ops.AllReduce()(net(x)))(Tensor(X))


WRONG = {
    "a stage too many": (
        run_plain((0, 1, 2)), ArgumentValueError, "got a Cell with pipeline_stage=2",
    ),
    "no stage": (without_stages, ArgumentValueError, "no Cell with a stage"),
    "stages that do not divide": (
        run_plain(pipeline_stages=3), ArgumentValueError, "3 stages for 2",
    ),
    "another mode": (
        run_plain(parallel_mode="data_parallel"), ArgumentValueError, "wanted parallel_mode='semi",
    ),
    "not compiled": (not_compiled, UnsupportedOpError, "code that is not compiled"),
    "a loop across stages": (across, UnsupportedOpError, r"stages \[0, 1\] inside one loop"),
    "a collective": (collective, UnsupportedSyntaxError, "wanted no collectives"),
    "interleaved": (
        run_plain(pipeline_config={"pipeline_interleave": True}), UnsupportedOpError, "one segment",
    ),
    "a scheduler": (run_plain(pipeline_scheduler="zero"), ArgumentValueError, "wanted '1f1b' or"),
    "a key": (run_plain(pipeline_config={"x": 1}), ArgumentValueError, "got the key 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_refused(case):
    program, kind, text = WRONG[case]
    error = failing(program)
    assert type(error) is kind, error
    assert re.search(text, str(error)), error


def test_parameters_of_other_stages(tmp_path):
    """Reading one is an error; checkpoints hold those of the rank, and load whole ones."""
    expected = trained("Plain", (0, 1, 1), 2)

    def program():
        semi_auto()
        ms.set_seed(1)
        net = Plain((0, 1, 1))
        cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
        step = nn.TrainOneStepCell(cell, nn.Adam(cell.trainable_params(), 0.01))
        step(Tensor(X), Tensor(Y))
        rank = get_rank()
        other = (net.c if rank == 0 else net.a).weight
        with pytest.raises(DeviceError, match=f"on stage {1 - rank} of the pipeline"):
            other.asnumpy()
        path = str(tmp_path / f"rank{rank}.ckpt")
        ms.save_checkpoint(net, path)
        names = set(ms.load_checkpoint(path))
        whole = {k: ms.Parameter(Tensor(v), name=k) for k, v in expected[1].items()}
        assert ms.load_param_into_net(net, whole)[0] == []
        assert ms.load_param_into_net(net, ms.load_checkpoint(path))[0] == []
        ms.load_param_into_net(net, whole)
        return names, {p.name: parallel.gathered(p).asnumpy() for p in net.get_parameters()}

    (first, values), (second, others) = run_ranks(program, 2)
    assert not first & second
    assert first | second == {p.name for p in Plain((0, 1, 1)).get_parameters()}
    for name, value in {**values, **others}.items():
        np.testing.assert_array_equal(value, expected[1][name])


def launch(count, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMPI_")}
    script = pathlib.Path(__file__).with_name("pipeline_ranks.py")
    command = [sys.executable, "-m", "duograph.run", "-n", str(count), str(script), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=False
    )


@pytest.mark.parametrize("count", [2, 4])
def test_processes(count, tmp_path):
    """A GPT on ranks that are processes; the stages hold different Parameters."""
    done = launch(count, str(tmp_path))
    assert done.returncode == 0, done.stderr
    expected = pipeline_ranks.train(1)
    found = [np.load(tmp_path / f"{rank}.npz") for rank in range(count)]
    for arrays in found:
        for name in arrays.files:
            np.testing.assert_array_equal(arrays[name], expected[name], err_msg=name)
    assert {name for arrays in found for name in arrays.files} == set(expected)
    blocks = [
        {name.split(".")[2] for name in arrays.files if name.startswith("net.blocks.")}
        for arrays in found
    ]
    assert sorted(b for names in blocks for b in names) == ["0", "1", "2", "3"]


def test_a_failing_stage_ends_all(tmp_path):
    done = launch(2, str(tmp_path), "fail")
    assert done.returncode != 0
    assert "ValueError: the last stage fails" in done.stderr
    assert not list(tmp_path.iterdir())


def test_explain_shows_the_stages():
    def program():
        semi_auto()
        net = Plain((0, 1, 1))
        run = ms.jit(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2))
        return str(run.explain(Tensor(X), Tensor(Y)))

    for rank, text in enumerate(run_ranks(program, 2)):
        assert f"stage {rank} of a pipeline of 2 stages:" in text
        assert "stage 0 to 1: 2 messages, 512 bytes" in text  # (4, 16) floats each


@pytest.mark.parametrize("count, parts", [(1, 1), (1, 3), (2, 1), (2, 2), (3, 5), (4, 8), (8, 3)])
def test_schedule(count, parts):
    """Each pass comes once, after those that it needs, and few micro-batches are open at a time."""
    order = unit_order(count, range(parts))
    assert sorted(order) == sorted(
        Unit(s, p, b) for s in range(count) for p in range(parts) for b in (False, True)
    )
    at = {unit: i for i, unit in enumerate(order)}
    for s in range(count):
        opened = most = 0
        for unit in order:
            if unit.stage == s:
                opened += -1 if unit.backward else 1
                most = max(most, opened)
        assert most == min(count - s, parts)
        for p in range(parts):
            assert at[Unit(s, p, False)] < at[Unit(s, p, True)]
            if s:
                assert at[Unit(s - 1, p, False)] < at[Unit(s, p, False)]
                assert at[Unit(s, p, True)] < at[Unit(s - 1, p, True)]
