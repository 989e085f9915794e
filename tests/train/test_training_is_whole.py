"""Tests that training and evaluation skip no batch, lose no file and no update without a word.

Feeding in parts, checkpoints of several runs, loss scales in float16, and metrics over batches that
do not fit together. Where a comment does not say otherwise, results are those of MindSpore 2.10.
"""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, dataset, nn, train


class Sum(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([1.0]), name="w")

    def construct(self, x):
        return (self.w * x).sum()


class Seen(train.Callback):
    """Records the first number of each batch, epoch by epoch."""

    def __init__(self):
        self.epochs = []

    def on_train_epoch_begin(self, run_context):
        self.epochs.append([])

    def on_train_step_end(self, run_context):
        (batch,) = run_context.original_args().train_dataset_element
        self.epochs[-1].append(int(batch.asnumpy().reshape(-1)[0]))


def model():
    net = Sum()
    return ms.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))


def numbers(count):
    return dataset.NumpySlicesDataset(np.arange(count, dtype=np.float32), shuffle=False)


# ---- every batch is used ------------------------------------------------------------------------

# batches of the dataset, sink_size: the batches of three epochs
PARTS = {  # as on devices that sink data; MindSpore's CPU ignores sink_size
    "smaller": (5, 2, [[0, 1], [2, 3], [4, 0]]),
    "equal": (3, 3, [[0, 1, 2]] * 3),
    "larger": (2, 3, [[0, 1, 0], [1, 0, 1], [0, 1, 0]]),
    "whole": (2, -1, [[0, 1]] * 3),
}


@pytest.mark.filterwarnings("ignore:.*dataset_sink_mode")
@pytest.mark.parametrize("kind", ["dataset", "list"])
@pytest.mark.parametrize("name", PARTS)
def test_sink_size_continues_with_the_next_batch(name, kind):
    count, size, wanted = PARTS[name]
    data = numbers(count) if kind == "dataset" else [[np.float32(i)] for i in range(count)]
    seen = Seen()
    model().train(3, data, seen, dataset_sink_mode=True, sink_size=size)
    assert seen.epochs == wanted


@pytest.mark.filterwarnings("ignore:.*dataset_sink_mode")
@pytest.mark.parametrize("sink_size", [-1, 2])
def test_an_iterable_that_is_used_up_is_no_epoch(sink_size):
    batches = ([np.float32(i)] for i in range(2))
    with pytest.raises(ValueError, match=r"no batch in epoch 2.*a list instead of a generator"):
        model().train(3, batches, dataset_sink_mode=True, sink_size=sink_size)


@pytest.mark.filterwarnings("ignore:.*dataset_sink_mode")
@pytest.mark.parametrize("sink_size", [-1, 2])
def test_the_model_counts_the_epochs_of_its_dataset(sink_size):
    sizes = []
    data = numbers(4).batch(lambda info: sizes.append(info.get_epoch_num()) or 2)
    data.get_dataset_size()
    sizes.clear()
    model().train(3, data, dataset_sink_mode=sink_size > 0, sink_size=sink_size)
    assert sorted(set(sizes)) == [0, 1, 2]


# ---- callbacks of datasets ----------------------------------------------------------------------


def test_callbacks_of_datasets_count_epochs_by_iterator():
    calls = []

    class Records(dataset.DSCallback):
        def ds_begin(self, context):
            calls.append("begin")

        def ds_epoch_begin(self, context):
            calls.append(("epoch", context.cur_epoch_num))

        def ds_step_end(self, context):
            calls.append((context.cur_step_num_in_epoch, context.cur_step_num))

        def ds_epoch_end(self, context):
            calls.append("end")

    data = numbers(3).map(abs, "column_0", callbacks=[Records(2)])
    iterator = data.create_dict_iterator(num_epochs=2)
    list(iterator), list(iterator)
    epochs = ["begin", ("epoch", 1), (1, 1), (3, 3), "end", ("epoch", 2), (1, 4), (3, 6), "end"]
    assert calls == epochs
    list(data)  # another iterator begins again
    assert calls == epochs + epochs[:5]
    calls.clear()
    list(data.repeat(2))  # one epoch
    assert calls == ["begin", ("epoch", 1), (1, 1), (3, 3), (5, 5), "end"]
    calls.clear()
    data.filter(bool).get_dataset_size()
    data.output_shapes()
    assert calls == []


def test_an_abandoned_iterator_leaves_no_callbacks_behind(tmp_path):
    steps = []

    class Records(dataset.DSCallback):
        def ds_step_begin(self, context):
            steps.append((context.cur_epoch_num, context.cur_step_num))

    data = numbers(3).map(abs, "column_0", callbacks=[Records()]).filter(bool, "column_0")
    iterator = data.create_dict_iterator(num_epochs=1)
    next(iterator)
    before = list(steps)
    data.get_dataset_size()
    data.save(str(tmp_path / "rows"))
    assert steps == before
    list(iterator)  # it goes on, with its own numbers
    assert steps == [(1, 1), (1, 2), (1, 3)]


# ---- callbacks are exited -----------------------------------------------------------------------


class Entered(train.Callback):
    def __init__(self, log, name, fails=None):
        self.log, self.name, self.fails = log, name, fails

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        return self

    def __exit__(self, kind, *rest):
        self.log.append(f"exit {self.name} {kind and kind.__name__}")

    def on_train_step_end(self, run_context):
        self.log.append(f"step {self.name}")
        if self.fails:
            raise self.fails

    def on_eval_end(self, run_context):
        self.log.append(f"eval {self.name}")


# run: what it calls
ENTERED = {
    "train": ["enter a", "enter b", "step a", "step b", "exit b None", "exit a None"],
    "error": ["enter a", "enter b", "enter c", "step a", "step b",
              "exit c KeyError", "exit b KeyError", "exit a KeyError"],
    "interrupt": ["enter a", "step a", "exit a KeyboardInterrupt"],
    "eval": ["enter a", "eval a", "exit a None"],
    "fit": ["enter a", "step a", "eval a", "exit a None"],  # MindSpore enters them twice
}  # fmt: skip


@pytest.mark.parametrize("name", ENTERED)
def test_callbacks_are_exited_in_every_case(name):
    log = []
    net = nn.Dense(1, 1)
    m = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mae"})
    data = [(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32))]
    a, b = Entered(log, "a"), Entered(log, "b")
    if name == "train":
        m.train(1, data, [a, b])
    elif name == "error":
        b.fails = KeyError("x")
        with pytest.raises(KeyError):
            m.train(1, data, [a, b, Entered(log, "c")])
    elif name == "interrupt":
        a.fails = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            m.train(1, data, [a])
    elif name == "eval":
        m.eval(data, [a])
    else:
        m.fit(1, data, data, callbacks=[a])
    assert log == ENTERED[name]


# ---- checkpoints of several runs ----------------------------------------------------------------


def run(folder, prefix="net", **options):
    config = train.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=1, **options)
    model().train(1, numbers(2), train.ModelCheckpoint(prefix, folder, config))
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_a_later_run_overwrites_no_checkpoint(tmp_path, format):
    names = [f"net-1_2.{format}", f"net_1-1_2.{format}", f"net_2-1_2.{format}"]
    for count in (1, 2, 3):
        assert run(str(tmp_path), format=format) == names[:count]


# files of the folder: the prefix of the next run
PREFIXES = {
    "none": ([], "net"),
    "of another prefix": (["network-1_2.ckpt", "a-net-1_2.ckpt", "net2-1_2.ckpt"], "net"),
    "of another kind": (["net-1_2.txt", "net.ckpt", "net-graph.meta"], "net"),
    "of a gap": (["net-1_2.ckpt", "net_7-1_2.ckpt"], "net_8"),
    "only numbered": (["net_1-1_2.safetensors"], "net_2"),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_the_prefix_of_the_next_run(tmp_path, name):
    files, prefix = PREFIXES[name]
    for file in files:
        (tmp_path / file).write_text("x")
    assert set(run(tmp_path)) == {*files, f"{prefix}-1_2.ckpt"}
    assert all((tmp_path / file).read_text() == "x" for file in files)


def test_one_callback_in_several_runs_keeps_its_prefix(tmp_path):
    callback = train.ModelCheckpoint("net", tmp_path / "new", train.CheckpointConfig(2))
    for _ in range(2):
        model().train(1, numbers(2), callback)
    assert os.listdir(tmp_path / "new") == ["net-1_2.ckpt"]


def test_a_prefix_that_a_function_returns_is_kept(tmp_path):
    for _ in range(2):
        config = train.CheckpointConfig(2)
        callback = train.ModelCheckpoint(lambda p: "net", str(tmp_path), config)
        model().train(1, numbers(2), callback)
    assert os.listdir(tmp_path) == ["net-1_2.ckpt"]


# ---- loss scales --------------------------------------------------------------------------------


class Small(nn.Cell):
    """A mean that makes gradients small, so that they are finite after scaling."""

    def __init__(self, dtype):
        super().__init__()
        self.w = ms.Parameter(Tensor([1.0, 2.0], dtype), name="w")

    def construct(self, x):
        return (self.w * x.astype(self.w.dtype)).astype(ms.float32).mean() * 1e-3


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("scale", [1.0, 2.0**10, 2.0**16, 2.0**20])
@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
def test_large_loss_scales_do_not_stop_the_updates(dtype, scale, mode, restored):
    ms.set_context(mode=mode)
    net = Small(dtype)
    step = nn.TrainOneStepWithLossScaleCell(
        net, nn.SGD(net.trainable_params(), 100.0), Tensor(scale, ms.float32)
    ).set_train()
    _, overflow, _ = step(Tensor([1.0, 2.0]))
    assert not bool(overflow)
    found = net.w.asnumpy().astype(np.float64)
    np.testing.assert_allclose(found, [0.95, 1.9], rtol=1e-2 if dtype is ms.bfloat16 else 1e-3)


@pytest.mark.parametrize("scale", [3.0, 1e4, 1e6, 2.0**16, 2.0**26])  # MindSpore's: up to 5% off
@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
def test_unscaled_gradients_have_the_digits_of_their_dtype(dtype, scale):
    gradients = np.array([scale * 0.375, 1.0, 0.0])
    if dtype is ms.float16:
        gradients = np.minimum(gradients, 60000.0)
    given = Tensor(gradients, dtype)
    wanted = given.asnumpy().astype(np.float64) / np.float32(scale)
    found = ms.amp.StaticLossScaler(scale).unscale((given,))[0]
    assert found.dtype is dtype
    wide = found.asnumpy().astype(np.float64)
    digits = {ms.float16: 1e-3, ms.bfloat16: 1e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(wide, wanted, rtol=digits, atol=3e-8 if dtype is ms.float16 else 0)


@pytest.mark.parametrize("dtype", [ms.complex64, ms.complex128])
def test_unscaled_complex_gradients_keep_their_imaginary_part(dtype):
    found = ms.amp.StaticLossScaler(4.0).unscale((Tensor([1 + 2j, -3j], dtype),))[0]
    assert found.dtype is dtype
    np.testing.assert_array_equal(found.asnumpy(), [0.25 + 0.5j, -0.75j])


# ---- metrics ------------------------------------------------------------------------------------

TWO = (np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
THREE = (np.array([[0.1, 0.9, 0.0], [0.8, 0.2, 0.0]]), np.array([1, 1]))
METRICS = {"Accuracy": nn.Accuracy, "Precision": nn.Precision, "Recall": nn.Recall, "F1": nn.F1,
           "Fbeta": lambda: nn.Fbeta(2.0)}  # fmt: skip


@pytest.mark.parametrize("batches", [(TWO, THREE), (THREE, TWO)])
@pytest.mark.parametrize("name", METRICS)
def test_batches_of_other_classes_are_refused(name, batches):
    metric = METRICS[name]()
    metric.update(*batches[0])
    before = np.asarray(metric.eval())
    with pytest.raises(ValueError, match="classes, after batches of"):
        metric.update(*batches[1])
    assert np.array_equal(np.asarray(metric.eval()), before)
    metric.clear()
    metric.update(*batches[1])


@pytest.mark.parametrize("wrong", [0.3, 2, -1, np.nan])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("make", [nn.Accuracy, nn.Precision, nn.Recall])
def test_multilabel_inputs_are_zeros_and_ones(make, at, wrong):
    metric = make("multilabel")
    inputs = [np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]])]
    metric.update(*inputs)
    inputs[at] = np.array([[1.0, wrong]])
    with pytest.raises(ValueError, match=f"got {wrong}.*multilabel.*wanted 0 or 1"):
        metric.update(*inputs)


# metric, predictions, labels: the value. MindSpore's wrap around or become infinite.
NARROW = {
    "MAE": (nn.MAE, [3, 1], [1, 4], 2.5),
    "MSE": (nn.MSE, [200, 1], [0, 4], 20004.5),
    "Dice": (nn.Dice, [[200, 200]], [[200, 200]], 1.0),
}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float16", "float32"])
@pytest.mark.parametrize("name", NARROW)
def test_metrics_of_narrow_dtypes(name, dtype):
    make, predictions, labels, wanted = NARROW[name]
    metric = make()
    metric.update(np.array(predictions, dtype), np.array(labels, dtype))
    assert metric.eval() == pytest.approx(wanted)
