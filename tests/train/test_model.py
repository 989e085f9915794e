"""Tests of Model, callbacks, wrappers and mixed precision on small problems."""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, amp, dataset, nn, ops, train


def problem(n=20, batch=5, shuffle=False):
    random = np.random.RandomState(0)
    x = random.randn(n, 4).astype(np.float32)
    y = (x @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32)).astype(np.float32)
    return dataset.NumpySlicesDataset((x, y), ["data", "label"], shuffle=shuffle).batch(batch)


def model(**options):
    ms.set_seed(1)
    net = nn.Dense(4, 1)
    optimizer = options.pop("optimizer", None) or nn.SGD(net.trainable_params(), 0.1)
    return ms.Model(
        net, nn.MSELoss(), optimizer, metrics={"mse": nn.MSE(), "loss": nn.Loss()}, **options
    )


class Points(train.Callback):
    def __init__(self):
        self.seen = []

    def begin(self, run_context):
        self.seen.append("begin")

    def epoch_begin(self, run_context):
        self.seen.append("epoch")

    def step_end(self, run_context):
        p = run_context.original_args()
        self.seen.append((p.cur_epoch_num, p.cur_step_num, p.batch_num))

    def end(self, run_context):
        self.seen.append("end")


def test_training_learns_and_calls_back():
    m, points = model(), Points()
    before = m.eval(problem())["loss"]
    m.train(2, problem(), callbacks=points)
    assert points.seen == [
        "begin", "epoch", (1, 1, 4), (1, 2, 4), (1, 3, 4), (1, 4, 4),
        "epoch", (2, 5, 4), (2, 6, 4), (2, 7, 4), (2, 8, 4), "end",
    ]  # fmt: skip
    after = m.eval(problem())
    assert after["loss"] < before / 3 and after["mse"] == pytest.approx(after["loss"], rel=1e-5)
    assert m.predict(Tensor(np.ones((3, 4), np.float32))).shape == (3, 1)


def test_loss_monitor_prints_as_mindspore(capsys):
    m = model()
    m.train(2, problem(), callbacks=[train.LossMonitor(2), train.TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" is ")[0] for line in lines if line.startswith("epoch")] == [
        "epoch: 1 step: 2, loss",
        "epoch: 1 step: 4, loss",
        "epoch: 2 step: 2, loss",
        "epoch: 2 step: 4, loss",
    ]
    assert [line.split(":")[0] for line in lines if line.startswith("Train")] == [
        "Train epoch time"
    ] * 2
    assert float(lines[0].rsplit(" ", 1)[1]) > 0


def test_fit_evaluates_and_records_a_history(capsys):
    m, history = model(), train.History()
    m.fit(3, problem(), problem(), valid_frequency=2, callbacks=[history, train.LossMonitor(100)])
    assert history.epoch == {"epoch": [1, 2, 3]} and len(history.history["net_output"]) == 3
    assert len(history.history["loss"]) == 1
    assert "Eval result: epoch 2, metrics: {'mse': " in capsys.readouterr().out


def test_checkpoints_during_training(tmp_path):
    m = model()
    config = train.CheckpointConfig(
        save_checkpoint_steps=2, keep_checkpoint_max=3, append_info=["epoch_num"]
    )
    callback = train.ModelCheckpoint("net", str(tmp_path), config)
    m.train(2, problem(), callbacks=callback)
    assert sorted(os.listdir(tmp_path)) == ["net-1_4.ckpt", "net-2_2.ckpt", "net-2_4.ckpt"]
    found = ms.load_checkpoint(callback.latest_ckpt_file_name)
    assert set(found) == {
        "weight",
        "bias",
        "epoch_num",
        "global_step",
        "learning_rate",
        "momentum",
        "accum.weight",
        "accum.bias",
        "stat.weight",
        "stat.bias",
    }
    assert int(found["epoch_num"]) == 2 and int(found["global_step"].asnumpy()[0]) == 8
    again = model()
    assert ms.load_param_into_net(again.train_network, found) == ([], ["epoch_num"])
    assert int(again._optimizer.global_step.asnumpy()[0]) == 8


def test_early_stopping_and_best_weights():
    m = model()
    stop = train.EarlyStopping("loss", patience=1, min_delta=1e9, restore_best_weights=True)
    points = Points()
    m.train(9, problem(), callbacks=[points, stop])
    assert stop.stopped_epoch == 2 and points.seen.count("epoch") == 2


def test_callbacks_change_the_learning_rate():
    m = model()
    m.train(
        2,
        problem(),
        callbacks=train.LearningRateScheduler(lambda rate, step: rate * 0.5 if step == 3 else rate),
    )
    assert m._optimizer.learning_rate.asnumpy() == pytest.approx(0.05)
    m = model()
    m.train(4, problem(), callbacks=train.ReduceLROnPlateau("loss", 0.1, patience=1, min_delta=1e9))
    assert m._optimizer.learning_rate.asnumpy() == pytest.approx(1e-4, rel=1e-4)


def test_lambda_callback_and_request_stop():
    seen = []
    m = model()
    m.train(3, problem(), callbacks=[
        train.LambdaCallback(on_train_step_end=lambda c: seen.append(1) or c.request_stop()),
    ])  # fmt: skip
    assert seen == [1]


def test_iterables_are_datasets():
    m = model()
    x = np.ones((2, 4), np.float32)
    m.train(1, [(x, np.ones((2, 1), np.float32))] * 3)
    assert m._optimizer.global_step.asnumpy()[0] == 3
    m.train(1, [{"data": Tensor(x), "label": Tensor(np.ones((2, 1), np.float32))}])
    assert m._optimizer.global_step.asnumpy()[0] == 4


ERRORS = {
    "no Cell": (lambda: ms.Model(3), TypeError, "int for network; wanted a Cell"),
    "no optimizer": (
        lambda: ms.Model(nn.ReLU(), nn.MSELoss()).train(1, problem()),
        ValueError,
        "no optimizer",
    ),
    "no epochs": (lambda: model().train(0, problem()), ValueError, "epoch=0"),
    "no batches": (lambda: model().train(1, []), ValueError, "without batches"),
    "no dataset": (lambda: model().train(1, 3), TypeError, "int as a dataset"),
    "no metrics": (
        lambda: ms.Model(nn.ReLU(), nn.MSELoss()).eval(problem()),
        ValueError,
        "no metrics",
    ),
    "unknown metric": (lambda: ms.Model(nn.ReLU(), nn.MSELoss(), metrics={"foo"}), KeyError, "foo"),
    "unknown level": (lambda: model(amp_level="O9"), ValueError, "O9"),
    "no callback": (
        lambda: model().train(1, problem(), callbacks=[3]),
        TypeError,
        "int; wanted Callbacks",
    ),
    "unknown argument": (lambda: model(foo=1), TypeError, "foo"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_model(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


@pytest.mark.parametrize("method", ["train", "fit", "build"])
@pytest.mark.parametrize("epochs", ["3", 0], ids=["text", "zero"])
def test_errors_name_the_method_that_was_called(method, epochs):
    calls = {
        "train": lambda m: m.train(epochs, problem()),
        "fit": lambda m: m.fit(epochs, problem()),
        "build": lambda m: m.build(problem(), None, epoch=epochs),
    }
    with pytest.raises((TypeError, ValueError), match=f"Model.{method}: got epoch="):
        calls[method](model())


@pytest.mark.parametrize("method", ["train", "fit", "build"])
def test_errors_of_a_model_without_an_optimizer_name_the_method(method):
    m = ms.Model(nn.Dense(4, 1), nn.MSELoss())
    run = {"train": m.train, "fit": m.fit, "build": lambda n, data: m.build(data, None)}[method]
    with pytest.raises(ValueError, match=f"Model.{method}: the Model has a loss_fn and no optim"):
        run(1, problem())


def test_an_evaluation_that_fails_leaves_the_network_training():
    m = model()
    m.predict_network.set_train(True)
    with pytest.raises(ValueError, match="Dense: got input"):
        m.eval([(np.ones((2, 9), np.float32), np.ones((2, 1), np.float32))])
    assert m.predict_network.training


# ---- wrappers
# ---------------------------------------------------------------------------------------


def test_three_forms_of_a_training_step_agree():
    def net():
        ms.set_seed(2)
        return nn.WithLossCell(nn.Dense(2, 1), nn.MSELoss())

    x, y = ops.ones((4, 2), ms.float32), ops.zeros((4, 1), ms.float32)
    a, b, c = net(), net(), net()
    nn.TrainOneStepCell(a, nn.SGD(a.trainable_params(), 0.1))(x, y)

    class Step(nn.TrainOneStepCell):
        def construct(self, data, label):
            loss = self.network(data, label)
            sens = ops.ones_like(loss) * self.sens
            grads = self.grad(self.network, self.weights)(data, label, sens)
            self.optimizer(self.grad_reducer(grads))
            return loss

    Step(b, nn.SGD(b.trainable_params(), 0.1))(x, y)
    optimizer = nn.SGD(c.trainable_params(), 0.1)
    _, grads = ms.value_and_grad(c, None, optimizer.parameters)(x, y)
    optimizer(grads)
    for p, q, r in zip(
        a.trainable_params(), b.trainable_params(), c.trainable_params(), strict=True
    ):
        np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())
        np.testing.assert_array_equal(p.asnumpy(), r.asnumpy())


def test_loss_scale_skips_an_overflow():
    net = nn.WithLossCell(nn.Dense(2, 1, weight_init="ones", bias_init="zeros"), nn.MSELoss())
    step = nn.TrainOneStepWithLossScaleCell(
        net, nn.SGD(net.trainable_params(), 0.1), nn.DynamicLossScaleUpdateCell(1024, 2, 2)
    )
    x, y = ops.ones((4, 2), ms.float32), ops.zeros((4, 1), ms.float32)
    loss, overflow, scale = step(x, y)
    assert loss.asnumpy() == 4.0 and not bool(overflow) and scale.asnumpy() == 1024
    np.testing.assert_allclose(net.backbone_network.weight.asnumpy(), [[0.6, 0.6]], rtol=1e-6)
    before = net.backbone_network.weight.asnumpy().copy()
    _, overflow, scale = step(x * float("inf"), y)
    assert bool(overflow) and scale.asnumpy() == 512
    np.testing.assert_array_equal(net.backbone_network.weight.asnumpy(), before)
    for _ in range(3):
        _, _, scale = step(x, y)
    assert scale.asnumpy() == 1024


# ---- mixed precision
# --------------------------------------------------------------------------------


def test_loss_scalers():
    scaler = amp.DynamicLossScaler(1024, 2, 2)
    grads = scaler.scale((Tensor([1.0]), Tensor([2.0], ms.float16)))
    assert grads[0].asnumpy() == 1024 and grads[1].dtype is ms.float16
    assert scaler.unscale(grads)[1].asnumpy() == 2
    assert bool(amp.all_finite(grads)) and not bool(amp.all_finite((grads, Tensor([np.nan]))))
    scaler.adjust(Tensor(False))
    assert scaler.scale_value.asnumpy() == 512
    scaler.adjust(Tensor(True))
    scaler.adjust(Tensor(True))
    assert scaler.scale_value.asnumpy() == 1024


def seen_types(level, dtype=ms.float16):
    found = {}
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    for name, cell in net.cells_and_names():
        if name:
            cell.register_forward_hook(
                lambda c, a, o, n=name: found.__setitem__(n, (a[0].dtype.name, o.dtype.name))
            )
    out = amp.auto_mixed_precision(net, level, dtype)(ops.ones((1, 1, 4, 4), ms.float32))
    return found, out.dtype.name


LEVELS = {
    "O0": ["float32", "float32", "float32"],
    "O1": ["float16", "float16", "float16"],
    "O2": ["float16", "float32", "float16"],
    "O3": ["float16", "float16", "float16"],
}


@pytest.mark.parametrize("level", LEVELS)
def test_amp_levels(level):
    found, out = seen_types(level)
    assert out == "float32"
    assert [found[n][1] for n in "012"] == LEVELS[level]


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_model_trains_at_every_amp_level(level):
    m = model(amp_level=level)
    before = m.eval(problem())["loss"]
    m.train(6, problem())  # O2 starts with a scale of 2 ** 24, which overflows a dozen times
    assert m.eval(problem())["loss"] < before


def test_fixed_loss_scale_manager():
    m = model(loss_scale_manager=amp.FixedLossScaleManager(1024.0))
    before = m.eval(problem())["loss"]
    m.train(2, problem())
    assert m.eval(problem())["loss"] < before / 3


# ---- metrics
# ----------------------------------------------------------------------------------------

PRED = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
LABELS = np.array([1, 0, 0])
METRICS = {
    "accuracy": (nn.Accuracy, 2 / 3),
    "precision": (nn.Precision, [1.0, 0.5]),
    "recall": (nn.Recall, [0.5, 1.0]),
    "F1": (nn.F1, [2 / 3, 2 / 3]),
    "top 1": (nn.Top1CategoricalAccuracy, 2 / 3),
    "top 5": (nn.Top5CategoricalAccuracy, 1.0),
    "confusion": (lambda: nn.ConfusionMatrix(2), [[1.0, 1.0], [0.0, 1.0]]),
    "perplexity": (nn.Perplexity, float(np.exp(-np.log([0.9, 0.8, 0.3]).mean()))),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name):
    make, wanted = METRICS[name]
    metric = make()
    metric.clear()
    for i in range(3):
        metric.update(Tensor(PRED[i : i + 1]), Tensor(LABELS[i : i + 1]))
    np.testing.assert_allclose(metric.eval(), wanted, rtol=1e-6)
    metric.clear()
    with pytest.raises(RuntimeError, match="no batch was counted"):
        metric.eval()


def test_set_indexes_of_metrics():
    metric = nn.MAE().set_indexes([0, 2])
    metric.update(np.array([1.0]), "skipped", np.array([3.0]))
    assert metric.eval() == 2.0
