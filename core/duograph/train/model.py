"""Model, which trains, evaluates and runs a network over datasets.

User code creates it. It owns the loop over epochs and batches; callbacks receive the state of the
loop through `RunContext`.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, TypeAlias, cast

from .. import context
from ..advice import kind_of
from ..amp import build_train_network
from ..call_errors import explaining
from ..communication import get_group_size, get_rank, micro_batch
from ..context import get_auto_parallel_context
from ..errors import ArgumentError, ArgumentValueError
from ..nn.cell import Cell
from ..nn.metrics.base import Metric
from ..nn.metrics.regression import Loss
from ..nn.metrics.table import get_metrics
from ..nn.optim.optimizer import Optimizer
from ..nn.wrap.cell_wrapper import TrainOneStepCell, WithEvalCell, WithLossCell
from ..option_checks import check_options, warn_unused
from ..tensor import Tensor
from ._rank_checks import check_ranks
from .callback import Callback, CallbackList, ModelCheckpoint, RunContext, RunParameters
from .callback.progress import with_progress

__all__ = ["Model"]

Callbacks: TypeAlias = "Callback | Iterable[Callback] | None"


@explaining
class Model:
    """Trains, evaluates and runs a network (`mindspore.train.Model`).

    Args:
        network: Cell that maps data to predictions or, without `loss_fn`, a batch to the loss.
        loss_fn: Cell or function of (predictions, labels).
        optimizer: Optimizer, for training. Without `optimizer` and `loss_fn`, the network must
            train itself when it is called, as a TrainOneStepCell does.
        metrics: dictionary from names to Metric objects, or set of names of metrics.
        eval_network: Cell for evaluation, which maps a batch to the inputs of the metrics.
        eval_indexes: the positions of loss, predictions and labels in the outputs of
            `eval_network`; -1 for one that is missing.
        amp_level: ``"O0"`` to ``"O3"`` or ``"auto"``, see `amp.auto_mixed_precision`.
        loss_scale_manager: keyword argument; scales the loss.
        keep_batchnorm_fp32: keyword argument; overrides this setting of `amp_level`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `amp_level` is unknown, or `eval_network` and `metrics` do not match.

    Examples:
        >>> import numpy as np
        >>> import duograph as ms
        >>> from duograph import nn, dataset
        >>> data = dataset.NumpySlicesDataset(
        ...     (np.ones((8, 2), np.float32), np.zeros((8, 1), np.float32)), shuffle=False
        ... ).batch(4)
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.SGD(net.trainable_params(), 0.1)
        >>> model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"loss"})
        >>> model.train(2, data)
        >>> sorted(model.eval(data))
        ['loss']
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Callable[..., Any] | None = None,
        optimizer: Optimizer | None = None,
        metrics: dict[str, Metric] | set[str] | None = None,
        eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        if not isinstance(network, Cell):
            raise ArgumentError(f"Model: got {kind_of(network)} for network; wanted a Cell")
        if optimizer is not None and not isinstance(optimizer, Cell):
            raise ArgumentError(
                f"Model: got optimizer of {type(optimizer).__name__}; wanted an Optimizer"
            )
        check_options("Model", boost_level=boost_level, **kwargs)
        self._network = network
        self._loss_fn = loss_fn
        self._optimizer = optimizer
        self._amp_level = amp_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        self._options = kwargs
        self._metric_fns = get_metrics(metrics)
        self._train_network: Cell | None = None
        self._eval_indexes = eval_indexes
        self._eval_network = self._build_eval(eval_network, eval_indexes)
        self._predict_network: Cell = network
        if optimizer is not None:
            self._train_network = build_train_network(
                network, optimizer, loss_fn, level=amp_level, **kwargs
            )
        elif loss_fn is None:
            self._train_network = network  # such as a TrainOneStepCell

    def _build_eval(self, eval_network: Cell | None, indexes: list[int] | None) -> Cell | None:
        """Return the Cell that `Model.eval` runs: `eval_network`, or network and loss function.

        Also set `_eval_indexes`, the positions of loss, prediction and label in the Cell's results;
        they are `indexes`, or (0, 1, 2) for None. Returns None if there is neither `eval_network`
        nor a metric.

        Raises:
            ArgumentValueError: `indexes` is not a list of three, or there are metrics without loss
                function and `eval_network`.
        """
        if eval_network is not None:
            if indexes is not None and (not isinstance(indexes, list) or len(indexes) != 3):
                raise ArgumentValueError(
                    f"Model: got eval_indexes={indexes!r}; wanted a list of three ints"
                )
            self._eval_indexes = indexes or [0, 1, 2]
            return eval_network
        if indexes is not None:
            warn_unused("Model", "eval_indexes")
        if not self._metric_fns:
            return None
        if self._loss_fn is None:
            raise ArgumentValueError(
                "Model: got metrics without loss_fn and eval_network; wanted one of them"
            )
        self._eval_indexes = [0, 1, 2]
        fp32 = self._amp_level in ("O2", "O3", "auto")
        return WithEvalCell(self._network, self._loss_fn, add_cast_fp32=fp32)

    # ---- training -------------------------------------------------------------------------------

    @property
    def train_network(self) -> Cell | None:
        """Return the Cell that runs one training step, or None if this Model cannot train."""
        return self._train_network

    @property
    def predict_network(self) -> Cell:
        """Return the Cell that `Model.predict` runs."""
        return self._predict_network

    @property
    def eval_network(self) -> Cell | None:
        """Return the Cell that `Model.eval` runs, or None if this Model cannot evaluate."""
        return self._eval_network

    def train(
        self,
        epoch: int,
        train_dataset: Iterable[object],
        callbacks: Callbacks = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train for a number of epochs.

        Args:
            epoch: number of the last epoch, counted from 1.
            train_dataset: dataset, or any iterable of batches: tuples, lists or dictionaries of
                Tensors or arrays.
            callbacks: Callback or list of them.
            dataset_sink_mode: only makes `sink_size` take effect; batches are always fed one by
                one.
            sink_size: with `dataset_sink_mode`, the number of steps of an epoch, which begins with
                the batch after the last one of the epoch before; -1 for the whole dataset.
            initial_epoch: number of epochs that are already done; the first epoch that runs is
                `initial_epoch` + 1.

        Raises:
            ValueError: `epoch` is below 1, `initial_epoch` is not below `epoch`, the Model has no
                optimizer, the dataset has no batches, be it in a later epoch only, or data-parallel
                ranks have different numbers of steps or epochs.
        """
        check_options("Model.train", dataset_sink_mode=dataset_sink_mode)
        if sink_size != -1 and not dataset_sink_mode:
            warn_unused("Model.train", "sink_size")
        self._run(
            "Model.train", epoch, train_dataset, callbacks, initial_epoch,
            sink_size if dataset_sink_mode else -1,
        )  # fmt: skip

    def fit(
        self,
        epoch: int,
        train_dataset: Iterable[object],
        valid_dataset: Iterable[object] | None = None,
        valid_frequency: int | Sequence[int] = 1,
        callbacks: Callbacks = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train, and evaluate on `valid_dataset` after every `valid_frequency` epochs.

        `valid_frequency` may also be a list of the epochs after which to evaluate. The other
        arguments are those of `train`; `valid_dataset_sink_mode` has no effect.

        Raises:
            ValueError: as for `train`, or there is a `valid_dataset` and the Model has no metrics.
        """
        check_options(
            "Model.fit",
            dataset_sink_mode=dataset_sink_mode,
            valid_dataset_sink_mode=valid_dataset_sink_mode,
        )
        if sink_size != -1 and not dataset_sink_mode:
            warn_unused("Model.fit", "sink_size")
        if valid_dataset is not None and not self._metric_fns:
            raise ArgumentValueError("Model.fit: got valid_dataset without metrics; wanted metrics")
        size = sink_size if dataset_sink_mode else -1
        self._run(
            "Model.fit", epoch, train_dataset, callbacks, initial_epoch, size, valid_dataset,
            valid_frequency,
        )  # fmt: skip

    def _check_run(
        self, epochs: int, dataset: Iterable[object], initial_epoch: int, method: str
    ) -> tuple[Cell, int]:
        """Check the arguments of a training run; return (training Cell, steps per epoch).

        `method` is the name of the method that the user called, for errors.
        """
        if isinstance(epochs, bool) or not isinstance(epochs, int):
            raise ArgumentError(f"{method}: got epoch={epochs!r}; wanted an int")
        if epochs < 1:
            raise ArgumentValueError(f"{method}: got epoch={epochs}; wanted 1 or more")
        if not 0 <= initial_epoch < epochs:
            raise ArgumentValueError(
                f"{method}: got initial_epoch={initial_epoch}; wanted 0 to {epochs - 1}"
            )
        if self._train_network is None:
            raise ArgumentValueError(
                f"{method}: the Model has a loss_fn and no optimizer; wanted both, or a network "
                "that trains itself, such as a TrainOneStepCell"
            )
        steps = batch_count(dataset)
        if steps == 0:
            raise ArgumentValueError(
                f"{method}: got a dataset without batches; wanted at least one"
            )
        return self._train_network, steps

    def _run(
        self,
        method: str,
        epochs: int,
        dataset: Iterable[object],
        callbacks: Callbacks,
        initial_epoch: int,
        sink_size: int,
        valid: Iterable[object] | None = None,
        frequency: int | Sequence[int] = 1,
    ) -> None:
        network, steps = self._check_run(epochs, dataset, initial_epoch, method)
        taken = min(steps, sink_size) if 0 < sink_size and steps > 0 else steps
        check_ranks(network.trainable_params(), taken, initial_epoch, epochs)
        if sink_size > 0:
            steps = sink_size
        p = RunParameters(
            train_network=network,
            network=self._network,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            epoch_num=epochs,
            batch_num=steps,
            mode="train",
            parallel_mode=context.get_auto_parallel_context("parallel_mode"),
            device_number=1,
            train_dataset=dataset,
            dataset_sink_mode=False,
            initial_step=0,
            loss_scale_mananger=self._loss_scale_manager,
            last_save_ckpt_step=0,
            latest_ckpt_file="",
            cur_epoch_num=initial_epoch + 1,
            cur_step_num=initial_epoch * steps,
            net_outputs=None,
            metrics={} if valid is None else self._metric_fns,
        )
        cb = CallbackList(with_progress(CallbackList(callbacks).callbacks))
        p.list_callback = cb
        run = RunContext(p)
        next_epoch = _epochs_of(dataset, sink_size)
        with cb.entered():
            cb.call("on_train_begin", run)
            try:
                for number in range(initial_epoch + 1, epochs + 1):
                    p.cur_epoch_num = number
                    cb.call("on_train_epoch_begin", run)
                    network.set_train(True)
                    self._epoch(network, next_epoch(), cb, run)
                    if valid is not None and _is_due(number, frequency):
                        p["eval_results"] = self.eval(valid, cb.for_eval())
                        network.set_train(True)
                    cb.call("on_train_epoch_end", run)
                    p.pop("eval_results", None)
                    if run.get_stop_requested():
                        break
            except BaseException:
                for one in cb:
                    if isinstance(one, ModelCheckpoint):
                        one.save_after_exception(p)
                raise
            cb.call("on_train_end", run)

    def _check_columns(self, network: Cell, batch: Sequence[object]) -> None:
        """Raise ArgumentError if the training network cannot take the columns of a batch."""
        if type(network) is not TrainOneStepCell:  # a class of the user's may take others
            return
        inner = network.network
        try:
            inspect.signature(inner.construct).bind(*batch)
        except TypeError:
            pass
        else:
            return
        net = type(self._network).__name__
        if isinstance(inner, WithLossCell):
            wanted = (
                f"2, the input of {net} and a label for the loss_fn; data.project([...]) selects "
                "columns"
            )
        else:
            names = ", ".join(inspect.signature(self._network.construct).parameters)
            wanted = (
                f"one for each input of {net}, ({names}), or a loss_fn that takes the last one: "
                f"Model(network, loss_fn, optimizer)"
            )
        raise ArgumentError(f"Model.train: got batches of {len(batch)} columns; wanted {wanted}")

    def _epoch(
        self,
        network: Cell,
        batches: Iterable[tuple[object, ...]],
        cb: CallbackList,
        run: RunContext,
    ) -> None:
        p = run.original_args()
        done = -1
        for done, batch in enumerate(batches):
            p.cur_step_num += 1
            p.train_dataset_element = batch
            cb.call("on_train_step_begin", run)
            if not done:
                self._check_columns(network, batch)
            with self._numbers_of_the_rank():
                p.net_outputs = network(*batch)
            if self._loss_scale_manager is not None and isinstance(p.net_outputs, tuple):
                self._loss_scale_manager.update_loss_scale(bool(p.net_outputs[1]))
            cb.call("on_train_step_end", run)
            if run.get_stop_requested():
                break
        if done < 0:
            raise ArgumentValueError(
                f"Model.train: got no batch in epoch {p.cur_epoch_num}; wanted a dataset, or an "
                "iterable that can be read in every epoch, such as a list instead of a generator"
            )

    def _numbers_of_the_rank(self) -> contextlib.AbstractContextManager[None]:
        """Return the context of a training step, in which random ops draw the rank's own numbers.

        Under DATA_PARALLEL each rank has its own random sequence; otherwise the context does
        nothing.
        """
        shared = get_auto_parallel_context("parallel_mode") == "data_parallel"
        if not shared or get_group_size() == 1:
            return contextlib.nullcontext()
        return micro_batch(get_rank())

    # ---- evaluation and prediction --------------------------------------------------------------

    def eval(
        self,
        valid_dataset: Iterable[object],
        callbacks: Callbacks = None,
        dataset_sink_mode: bool = False,
    ) -> dict[str, object]:
        """Evaluate the network on a dataset; return the values of the metrics by name.

        `valid_dataset` is a dataset or any iterable of batches, `callbacks` a Callback or a list of
        them. `dataset_sink_mode` has no effect except a warning.

        Raises:
            ValueError: the Model has no metrics.
        """
        check_options("Model.eval", dataset_sink_mode=dataset_sink_mode)
        if not self._metric_fns or self._eval_network is None:
            raise ArgumentValueError(
                "Model.eval: the Model has no metrics; wanted some, as in "
                "Model(network, loss_fn, metrics={'accuracy'})"
            )
        network = self._eval_network
        p = RunParameters(
            eval_network=network, network=self._network, valid_dataset=valid_dataset, mode="eval",
            batch_num=batch_count(valid_dataset), metrics=self._metric_fns, cur_step_num=0,
            cur_epoch_num=1, epoch_num=1, net_outputs=None, dataset_sink_mode=False,
        )  # fmt: skip
        inner = isinstance(callbacks, CallbackList)  # of a training run, which has entered them
        cb = (
            cast("CallbackList", callbacks)
            if inner
            else CallbackList(with_progress(CallbackList(callbacks).callbacks))
        )
        p.list_callback = cb
        run = RunContext(p)
        for metric in self._metric_fns.values():
            metric.clear()
        was_training = self._network.training
        network.set_train(False)
        try:
            with contextlib.nullcontext() if inner else cb.entered():
                return self._evaluate(network, batches_of(valid_dataset), cb, run)
        finally:
            network.set_train(was_training)

    def _evaluate(
        self,
        network: Cell,
        batches: Iterable[tuple[object, ...]],
        cb: CallbackList,
        run: RunContext,
    ) -> dict[str, object]:
        """Run the evaluation network on batches; return the values of the metrics by name."""
        p = run.original_args()
        cb.call("on_eval_begin", run)
        cb.call("on_eval_epoch_begin", run)
        for batch in batches:
            p.cur_step_num += 1
            cb.call("on_eval_step_begin", run)
            outputs = network(*batch)
            p.net_outputs = outputs
            self._update_metrics(outputs)
            cb.call("on_eval_step_end", run)
            if run.get_stop_requested():
                break
        results = {name: metric.eval() for name, metric in self._metric_fns.items()}
        p["eval_results"] = results
        cb.call("on_eval_epoch_end", run)
        cb.call("on_eval_end", run)
        return results

    def _update_metrics(self, outputs: object) -> None:
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        indexes = self._eval_indexes or [0, 1, 2]
        for metric in self._metric_fns.values():
            if metric.indexes is not None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                if indexes[0] >= 0:
                    metric.update(outputs[indexes[0]])
            elif indexes[1] < 0 or indexes[2] < 0:
                metric.update(*outputs)
            else:
                metric.update(outputs[indexes[1]], outputs[indexes[2]])

    def predict(self, *predict_data: object, backend: object = None, config: object = None) -> Any:
        """Run the prediction network on one batch in evaluation mode; return its output.

        Raises:
            ValueError: `backend` or `config` is given; they are not offered.
        """
        check_options("Model.predict", backend=backend, config=config)
        was_training = self._predict_network.training
        self._predict_network.set_train(False)
        try:
            return self._predict_network(*predict_data)
        finally:
            self._predict_network.set_train(was_training)

    def build(
        self,
        train_dataset: Iterable[object] | None = None,
        valid_dataset: Iterable[object] | None = None,
        sink_size: int = -1,
        epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:
        """Compile training and evaluation for the datasets' first batches, without running them.

        Training is not compiled if `train_dataset` is None, evaluation is not if `valid_dataset` is
        None. Outside GRAPH_MODE the method only checks the arguments. `sink_size` and `sink_mode`
        are ignored, because the first batch determines all shapes; `epoch` is only checked.

        Raises:
            ValueError: `epoch` is below 1, the training dataset has no batches, the Model has a
                loss_fn and no optimizer, or the Model has no metrics and there is a validation
                dataset.
        """
        if train_dataset is not None:
            self._compile(
                self._check_run(epoch, train_dataset, 0, "Model.build")[0], train_dataset, True
            )
        if valid_dataset is not None:
            if self._eval_network is None:
                raise ArgumentValueError("Model.build: the Model has no metrics; wanted some")
            self._compile(self._eval_network, valid_dataset, False)

    def _compile(self, network: Cell, dataset: Iterable[object], training: bool) -> None:
        """In GRAPH_MODE, compile a network for the first batch of a dataset without running it.

        `training` says whether it is compiled in training or in evaluation mode.
        """
        if context.settings.mode != context.GRAPH_MODE:
            return
        was_training = network.training
        network.set_train(training)
        try:
            network.compile(*next(batches_of(dataset)))
        finally:
            network.set_train(was_training)


def batch_count(dataset: Iterable[object]) -> int:
    """Return the number of batches in an epoch of a dataset, or 1 for an iterable without length.

    Raises:
        ArgumentError: `dataset` is neither a dataset nor an iterable.
    """
    size = getattr(dataset, "get_dataset_size", None)
    if size is not None:
        return int(size())
    if not hasattr(dataset, "__iter__"):
        raise ArgumentError(
            f"Model: got {type(dataset).__name__} as a dataset; wanted a dataset or an iterable of "
            "batches"
        )
    return len(cast("Sized", dataset)) if hasattr(dataset, "__len__") else 1


def reader(dataset: Iterable[object]) -> Iterable[object]:
    """Return an iterable that `batches_of` may read in several epochs, which a dataset counts."""
    create: Callable[[], Iterable[object]] | None = getattr(dataset, "create_tuple_iterator", None)
    return dataset if create is None else create()


def batches_of(dataset: Iterable[object]) -> Iterator[tuple[object, ...]]:
    """Yield the batches of a dataset, or of an iterable, as tuples of Tensors."""
    iterator = getattr(dataset, "create_tuple_iterator", None)
    for batch in iterator(num_epochs=1) if iterator is not None else dataset:
        items = batch.values() if isinstance(batch, dict) else batch
        if isinstance(items, Tensor) or not hasattr(items, "__iter__"):
            items = (items,)
        yield tuple(x if isinstance(x, Tensor) else Tensor(x) for x in items)


def _epochs_of(dataset: Iterable[object], size: int) -> Callable[[], Iterator[tuple[object, ...]]]:
    """Return a function that returns the batches of the next epoch each time.

    With `size` above 0 that is the number of batches of an epoch, which continues where the epoch
    before has stopped; otherwise an epoch is a pass over the dataset.
    """
    source = reader(dataset)
    if size <= 0:
        return lambda: batches_of(source)
    feed = endless(source)
    return lambda: itertools.islice(feed, size)


def endless(dataset: Iterable[object]) -> Iterator[tuple[object, ...]]:
    """Yield the batches of one pass over a dataset after another, as tuples of Tensors."""
    while True:
        empty = True
        for batch in batches_of(dataset):
            empty = False
            yield batch
        if empty:
            return


def _is_due(epoch: int, frequency: int | Sequence[int]) -> bool:
    """Return whether `fit` evaluates after epoch number `epoch`.

    `frequency` is the number of epochs between evaluations, or a list of epochs.
    """
    if isinstance(frequency, int):
        return epoch % frequency == 0
    return epoch in frequency
