"""AnomalyMonitor, the callback that finds the origin of a loss that is not finite.

Users pass it to `Model.train` and `fit`; `detect_anomaly` does the search.
"""

from __future__ import annotations

import collections
from typing import NamedTuple

import numpy as np

from ...autodiff.anomaly import detect_anomaly
from ...errors import AnomalyError
from ...nn import _check
from ...parameter import Parameter
from ...random_state import get_rng_state, set_rng_state
from ...tensor import Tensor
from ._callback import Callback, RunContext, RunParameters
from .monitors import loss_of

__all__ = ["AnomalyMonitor"]

# The NaN of a loss may come from the gradients of the step before.
_STEPS = 2


class _Step(NamedTuple):
    """The state at the start of a training step: values of the Parameters, random state, batch."""

    values: list[tuple[Parameter, Tensor]]
    random: Tensor
    batch: tuple[object, ...]


class AnomalyMonitor(Callback):
    """Stops training at the first loss that is NaN or infinite; the error names its op and line.

    Training runs at full speed, compiled or not. When a loss is not finite, the last two steps are
    repeated under `detect_anomaly`, with the same Parameters, random numbers and batches. For this
    purpose the values of the Parameters at the start of the last two steps are kept, which needs
    memory for two more copies of the Parameters.

    Args:
        check_inf: whether an infinity in the forward or backward pass is an anomaly as well; see
            `detect_anomaly`.

    Raises:
        TypeError: `check_inf` is not a bool.
        AnomalyError: while training, when a loss is not finite.

    Examples:
        >>> from duograph.train import AnomalyMonitor
        >>> callback = AnomalyMonitor()
    """

    def __init__(self, check_inf: bool = True) -> None:
        self.check_inf = _check.boolean("AnomalyMonitor", "check_inf", check_inf)
        self._steps: collections.deque[_Step] = collections.deque(maxlen=_STEPS)

    def on_train_begin(self, run_context: RunContext) -> None:
        del run_context
        self._steps.clear()

    def on_train_end(self, run_context: RunContext) -> None:
        del run_context
        self._steps.clear()

    def on_train_step_begin(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        values = [(q, _value_of(q)) for q in p.train_network.get_parameters()]
        self._steps.append(_Step(values, get_rng_state(), tuple(p.train_dataset_element)))

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        loss = loss_of(p)
        if isinstance(loss, float) and not np.isfinite(loss):
            self._explain(p, loss)

    def _explain(self, p: RunParameters, loss: float) -> None:
        """Repeat the recorded last steps under `detect_anomaly`, and always raise AnomalyError.

        Before each repeated step, Parameters and random state get back the values recorded at its
        start. The error names the op and line found, or says that the repeated steps had finite
        values only. `p` is the state of the run, and `loss` the loss that is not finite.
        """
        where = f"epoch: {p.cur_epoch_num} step: {(p.cur_step_num - 1) % p.batch_num + 1}"
        for step in self._steps:
            for parameter, value in step.values:
                parameter.set_data(value)
            set_rng_state(step.random)
            try:
                with detect_anomaly(check_inf=self.check_inf):
                    p.train_network(*step.batch)
            except AnomalyError as error:
                raise AnomalyError(f"{where}: the loss is {loss}. {error}", error.anomaly) from None
        raise AnomalyError(
            f"{where}: the loss is {loss}; the last {len(self._steps)} steps, repeated line by "
            "line, had finite values only: the compiled step rounds differently. Lower the "
            "learning rate, or set_context(jit_level='O0')"
        )


def _value_of(parameter: Parameter) -> Tensor:
    """Return a tensor that keeps the present value of a Parameter when the Parameter changes."""
    if parameter._type.device is None:
        return parameter.clone()
    return Tensor._make(parameter._type, parameter._buf)
