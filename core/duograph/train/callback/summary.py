"""The callback that writes loss, learning rate, weights, inputs and metrics to event files.

Users pass it to `Model.train`; `train.summary` writes the files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import cast

from ...errors import ArgumentError, ArgumentValueError
from ...nn import _check
from ...nn.optim.optimizer import Optimizer
from ...option_checks import check_options, warn_unused
from ...parameter import Parameter
from ...tensor import Tensor
from ..summary import SummaryRecord
from ._callback import Callback, RunContext, RunParameters
from .monitors import loss_of

__all__ = ["SummaryCollector"]

# What is collected if the user says nothing else.
_DEFAULTS: dict[str, bool | str | None] = {
    "collect_metric": True,
    "collect_input_data": True,
    "histogram_regular": None,
}
# What MindSpore's own viewer shows; asking for it warns.
_FOREIGN = (
    "collect_graph", "collect_train_lineage", "collect_eval_lineage", "collect_dataset_graph",
    "collect_landscape",
)  # fmt: skip
_FIRST_WEIGHTS = 5


class SummaryCollector(Callback):
    """Writes event files of a training run, which TensorBoard shows
    (`mindspore.train.SummaryCollector`).

    It writes the scalars ``loss/auto`` and ``learning_rate/auto``, the image ``input_data/auto``,
    the histogram ``NAME/auto`` of weights, and after an evaluation the scalar ``eval/NAME`` of each
    metric. Needs `pip install duograph[summary]`.

    Args:
        summary_dir: the directory of the file.
        collect_freq: number of steps between two collections; the first step is always collected.
        num_process: accepted and ignored; one process writes.
        collect_specified_data: a dict with "collect_metric" (bool), "collect_input_data" (bool: the
            first column, if it is an image) and "histogram_regular" (a regular expression for names
            of weights; None collects the first five). Graphs, lineages and landscapes are not
            written.
        keep_default_action: whether data that the dict does not name are collected.
        custom_lineage_data: a dict from names to strings and numbers, written as ``custom/KEY`` at
            step 0.
        collect_tensor_freq: accepted and ignored; a network collects no tensors.
        max_file_size, export_options: see `SummaryRecord`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a key is unknown, or tensorboardX is not installed.

    Examples:
        >>> import tempfile
        >>> from duograph.train import SummaryCollector
        >>> callback = SummaryCollector(tempfile.mkdtemp(), collect_freq=100)
    """

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: Mapping[str, bool | str | None] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: dict[str, str | int | float] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: dict[str, str | None] | None = None,
    ) -> None:
        self._collect_freq = _check.positive_int("SummaryCollector", "collect_freq", collect_freq)
        check_options("train.SummaryCollector", num_process=num_process,
                      collect_tensor_freq=collect_tensor_freq)  # fmt: skip
        self._data = _specified(collect_specified_data, keep_default_action)
        self._custom = _custom(custom_lineage_data)
        self._open = functools.partial(
            SummaryRecord, summary_dir, max_file_size=max_file_size, export_options=export_options
        )
        self._record = self._open()
        self.summary_dir = self._record.log_dir
        self._training = False
        self._first = True
        self._step = 0

    def __exit__(self, *_: object) -> None:
        self._record.close()

    def on_train_begin(self, run_context: RunContext) -> None:
        """Write the user's `custom_lineage_data`, as step 0."""
        self._training = True
        self._record = self._open()
        for key, value in self._custom.items():
            if isinstance(value, str):
                self._record.add_text(f"custom/{key}", value)
            else:
                self._record.add_value("scalar", f"custom/{key}", Tensor(float(value)))
        if self._custom:
            self._record.record(0)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Write the values of a step, if it is the first one or a multiple of `collect_freq`."""
        found = run_context.original_args()
        step = self._step = int(found.get("cur_step_num") or 0)
        if not self._first and step % self._collect_freq:
            return
        self._first = False
        if self._data.get("collect_metric"):
            loss = loss_of(found)
            if loss is not None:
                self._record.add_value("scalar", "loss/auto", Tensor(float(loss)))
            optimizer = _optimizer_of(found)
            if optimizer is not None:
                rate = optimizer.get_lr()
                rate = rate[0] if isinstance(rate, (tuple, list)) else rate
                self._record.add_value("scalar", "learning_rate/auto", Tensor(float(rate)))
        if self._data.get("collect_input_data"):
            self._add_image(found.get("train_dataset_element"))
        if "histogram_regular" in self._data:
            optimizer, network = _optimizer_of(found), found.get("train_network")
            if optimizer is not None:  # the network also has the optimizer's own Parameters
                self._add_histograms(list(optimizer.parameters))
            elif network is not None:
                self._add_histograms(network.trainable_params())
        self._record.record(step)

    def _add_image(self, element: object) -> None:
        """Record the first column of a batch if it has the shape of images, (N, 1 or 3, H, W)."""
        first = element[0] if isinstance(element, (tuple, list)) and element else element
        if isinstance(first, Tensor) and first.ndim == 4 and first.shape[1] in (1, 3):
            self._record.add_value("image", "input_data/auto", first)

    def _add_histograms(self, weights: list[Parameter]) -> None:
        """Record histograms of the weights whose names match the user's pattern.

        Without a pattern, it records those of the first few weights.
        """
        pattern = self._data["histogram_regular"]
        if pattern is None:
            weights = weights[:_FIRST_WEIGHTS]
        else:
            weights = [p for p in weights if re.match(cast("str", pattern), p.name)]
        for p in weights:
            self._record.add_value("histogram", f"{p.name}/auto", p)

    def on_train_end(self, run_context: RunContext) -> None:
        """Close the file; a later evaluation writes a new file."""
        self._training = False
        self._record.close()

    def on_eval_end(self, run_context: RunContext) -> None:
        """Write the metrics of an evaluation that are single numbers.

        Nothing is written if the user has switched `collect_metric` off.
        """
        found = run_context.original_args()
        metrics = found.get("eval_results") or {}
        if not self._data.get("collect_metric") or not isinstance(metrics, dict):
            return
        if not self._training:
            self._record = self._open()
        for name, value in metrics.items():
            if isinstance(value, (int, float)) or getattr(value, "size", 0) == 1:
                self._record.add_value("scalar", f"eval/{name}", Tensor(float(value)))
        self._record.record(self._step)
        if not self._training:
            self._record.close()


def _specified(
    given: Mapping[str, bool | str | None] | None, keep: bool
) -> dict[str, bool | str | None]:
    """Check the argument `collect_specified_data`; return which data to collect, by key.

    Keys that the user left out get their defaults if `keep` is true or the whole argument is None;
    otherwise their data are not collected.
    """
    if given is not None and not isinstance(given, dict):
        raise ArgumentError(
            f"SummaryCollector: got {type(given).__name__} for collect_specified_data; wanted a "
            "dict"
        )
    found = dict(_DEFAULTS) if keep or given is None else {}
    for key, value in (given or {}).items():
        if key not in _DEFAULTS and key not in _FOREIGN:
            known = ", ".join((*_DEFAULTS, *_FOREIGN))
            raise ArgumentValueError(f"SummaryCollector: got the key {key!r}; wanted {known}")
        if key == "histogram_regular":
            if value is not None and not isinstance(value, str):
                raise ArgumentError(f"SummaryCollector: got {value!r} for {key}; wanted a pattern")
        elif key != "collect_landscape" and not isinstance(value, bool):
            raise ArgumentError(f"SummaryCollector: got {value!r} for {key}; wanted a bool")
        if key in _FOREIGN and value:
            warn_unused(
                "train.SummaryCollector",
                "collect_specified_data",
                f"asks for {key}, which only MindSpore's own viewer shows; it is not written",
            )
        found[key] = value
    return found


def _custom(given: dict[str, str | int | float] | None) -> dict[str, str | int | float]:
    """Check the argument `custom_lineage_data`, a dict from strings to strings and numbers.

    Return a copy, which is empty for None.
    """
    found = {} if given is None else given
    if not isinstance(found, dict) or not all(
        isinstance(k, str) and isinstance(v, (str, int, float)) for k, v in found.items()
    ):
        raise ArgumentError(
            f"SummaryCollector: got custom_lineage_data={given!r}; wanted a dict from texts to "
            "texts and numbers"
        )
    return dict(found)


def _optimizer_of(found: RunParameters) -> Optimizer | None:
    """Return the optimiser of a run, or None if it has none; `found` is the state of the run."""
    optimizer = found.get("optimizer")
    if optimizer is None:
        optimizer = getattr(found.get("train_network"), "optimizer", None)
    return optimizer if isinstance(optimizer, Optimizer) else None
