"""Optimizer, the base class: learning rates, weight decay, and the update loop.

A subclass implements `update` for one Parameter. User code and `TrainOneStepCell` call an optimiser
with the gradients, in the order of its `parameters`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ... import ops
from ...advice import number_hint
from ...common.initializer import initializer
from ...context import get_context
from ...dtype import float32, int32
from ...errors import ArgumentError, ArgumentValueError
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor
from .._operators import Operator
from .._types import Array, Decay, Init, Params, Rate
from ..cell import Cell
from ..learning_rate_schedule import LearningRateSchedule
from .parameter_groups import (
    GroupEntry,
    checked_decay,
    parameter_list,
    read_groups,
    unique_parameters,
)
from .sharding import Sharding, sharding_of

__all__ = ["DecoupledDecay", "Optimizer"]

Gradients: TypeAlias = "Sequence[Tensor | None]"
DecayGroups: TypeAlias = "Decay | tuple[Decay, ...]"  # one for all, or one per Parameter
DecayNow: TypeAlias = "float | Tensor | tuple[float | Tensor, ...]"  # the decay of one step


class _IteratorLearningRate(LearningRateSchedule):
    """Learning rate schedule that reads the rate of each step from a fixed list of numbers."""

    def __init__(self, rates: Array, name: str) -> None:
        super().__init__()
        self.learning_rate = Parameter(Tensor(rates), name=name)

    def construct(self, global_step: Tensor) -> Tensor:
        return ops.gather(self.learning_rate, global_step.reshape(()), 0)


class Optimizer(Cell):
    """Base class of optimisers (`mindspore.nn.Optimizer`).

    Args:
        learning_rate: number, 0-d Tensor, 1-d Tensor, list or iterable (one rate per step), or
            LearningRateSchedule.
        parameters: list, tuple or iterable of Parameters, or of groups: dictionaries with
            ``params`` and, if they differ from the common ones, ``lr``, ``weight_decay`` and
            ``grad_centralization``; one group may be ``{"order_params": ...}``, the order of the
            gradients.
        weight_decay: number, or a Cell from global_step to a number; its product with the weights
            is added to the gradient, before that is centralised. Without groups, Parameters with
            ``beta`` or ``gamma`` in their names are exempt.
        loss_scale: factor of the loss, by which gradients are divided.

    Attributes:
        parameters: ParameterTuple, in the order of the gradients.
        learning_rate: Parameter or schedule, one per Parameter if groups differ.
        global_step: int32 Parameter (1,), the number of calls.

    A subclass implements `update`, or all of `construct(gradients)`.

    Raises:
        TypeError: `parameters` are not Parameters, or an argument has the wrong type.
        ValueError: `parameters` is empty, a rate or decay is below 0, or a Parameter comes twice.
        KeyError: an unknown key in a group.

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> optimizer = ms.nn.SGD([p], 0.5)
        >>> _ = optimizer((ms.Tensor([1.0, 1.0]),))
        >>> print(p.asnumpy())
        [0.5 1.5]
    """

    sharding: Sharding | None = None  # how ranks share the state and the update; None: not
    needs_whole = ""  # why `update` cannot work on parts of Parameters; "": it can

    map_ = Operator("Map")
    map_reverse = Operator("Map", lambda c: {"reverse": True})
    hyper_map = Operator("HyperMap")
    hyper_map_reverse = Operator("HyperMap", lambda c: {"reverse": True})

    def __init__(
        self,
        learning_rate: Rate,
        parameters: Params,
        weight_decay: Decay = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        items = parameter_list(owner, parameters)
        if isinstance(loss_scale, bool) or not isinstance(loss_scale, (int, float)):
            raise ArgumentError(f"{owner}: got loss_scale={loss_scale!r}; wanted a number")
        if loss_scale <= 0:
            raise ArgumentValueError(f"{owner}: got loss_scale={loss_scale!r}; wanted above 0")
        self.loss_scale = float(loss_scale)
        self.reciprocal_scale = 1.0 / self.loss_scale
        self.global_step = Parameter(
            initializer(0, (1,), int32), name="global_step", requires_grad=False
        )
        self._one = Tensor(np.array([1], np.int32))
        common_decay = checked_decay(owner, weight_decay)
        self.is_group = isinstance(items[0], dict)
        self.is_group_lr = False
        self.is_group_params_ordered = False
        self.grad_centralization: bool | tuple[bool, ...] = False
        self._names: dict[str, Parameter] = {}
        self._decay: DecayGroups
        if self.is_group:
            self._init_groups(owner, items, learning_rate, common_decay)
        else:
            self._init_ungrouped(owner, items, learning_rate, common_decay)
        self.sharding = sharding_of(owner, self.parameters, self._whole_reason())
        self._parameters = self.parameters
        self.global_step_increase_tensor = self._one
        self.optim_filter = (True,) * len(self.parameters)  # one device updates all
        self.use_parallel, self.param_rank = False, None
        self.need_scale = self.loss_scale != 1.0
        self.param_length = len(self.parameters)
        self.dynamic_lr = any(isinstance(r, Cell) for r in self._rates())
        self._store_decay()
        for key, held in self._names.items():
            if key not in self._params:
                self._params.add_unnamed(key, held)

    def _whole_reason(self) -> str:
        """Return why this optimiser cannot update shards (1-d slices) of its Parameters.

        The result is "" if it can.
        """
        if type(self).construct is not Optimizer.construct:
            return "its `construct` takes whole gradients"
        if self._centralizes():
            return "grad_centralization takes means of whole gradients"
        return self.needs_whole

    # ---- construction ---------------------------------------------------------------------------

    def _rate(self, owner: str, rate: Rate, name: str) -> Parameter | LearningRateSchedule:
        """Convert a learning rate argument of an optimiser to a Parameter or a schedule.

        A number or a 0-d Tensor becomes a Parameter. A list or a 1-d Tensor becomes a schedule with
        a rate per step. A schedule is returned unchanged.

        Args:
            owner: the optimiser's name in messages.
            rate: the argument.
            name: name of the new Parameter, which holds the rate or, in a new schedule, all rates.
        """
        if isinstance(rate, LearningRateSchedule):
            return rate
        if isinstance(rate, Cell):
            raise ArgumentError(
                f"{owner}: got the Cell {type(rate).__name__} as learning_rate; "
                f"wanted a LearningRateSchedule"
            )
        if isinstance(rate, bool):
            raise ArgumentError(f"{owner}: got learning_rate={rate!r}; wanted a number")
        if isinstance(rate, (int, float)):
            if not rate >= 0:
                raise ArgumentValueError(f"{owner}: got learning_rate={rate!r}; wanted 0 or more")
            array = np.array(rate, np.float32)
        elif isinstance(rate, Tensor):
            if rate.ndim > 1:
                raise ArgumentValueError(
                    f"{owner}: got learning_rate of shape {rate.shape}; wanted a 0-d or 1-d Tensor"
                )
            array = rate.asnumpy().astype(np.float32)
        elif isinstance(rate, (str, bytes)) or not isinstance(rate, Iterable):
            raise ArgumentError(
                f"{owner}: got learning_rate={rate!r}; wanted a number, a Tensor, an iterable of "
                f"numbers or a LearningRateSchedule{number_hint(rate)}"
            )
        else:
            try:
                array = np.array([float(r) for r in rate], np.float32)
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"{owner}: got learning_rate={rate!r}; wanted an iterable of numbers"
                ) from None
        if array.ndim == 1 and array.size == 0:
            raise ArgumentValueError(
                f"{owner}: got an empty learning_rate; wanted at least one rate"
            )
        if array.ndim == 1:
            return _IteratorLearningRate(array, name)
        found = Parameter(Tensor(array, float32), name=name)
        self._names[name] = found
        return found

    def _init_ungrouped(
        self, owner: str, parameters: Sequence[object], learning_rate: Rate, decay: Decay
    ) -> None:
        """Set up the optimiser from Parameters without groups, which have one rate and decay.

        `owner` is the optimiser's name in messages.
        """
        ordered: list[Parameter] = []
        for p in parameters:
            if not isinstance(p, Parameter):
                raise ArgumentError(
                    f"{owner}: got {type(p).__name__} among the parameters; "
                    f"wanted Parameters or dictionaries"
                )
            ordered.append(p)
        self.learning_rate = self._rate(owner, learning_rate, "learning_rate")
        self._decay = decay
        self.decay_flags = tuple("beta" not in p.name and "gamma" not in p.name for p in ordered)
        self.parameters = unique_parameters(owner, ordered)

    def _init_groups(
        self, owner: str, groups: list[dict[str, Any]], learning_rate: Rate, decay: Decay
    ) -> None:
        """Set up the optimiser from parameter groups: its Parameters, learning rates and decays.

        Settings that a group lacks are those of the arguments. `owner` is the optimiser's name in
        messages.
        """
        common_rate = self._rate(owner, learning_rate, "learning_rate")
        rate_of = functools.partial(self._rate, owner)
        found = read_groups(owner, groups, common_rate, decay, rate_of)
        self.is_group_lr = found.own_rates
        self.is_group_params_ordered = found.ordered
        self._set_groups(owner, found.entries, common_rate)

    def _set_groups(
        self,
        owner: str,
        entries: list[GroupEntry],
        common_rate: Parameter | LearningRateSchedule,
    ) -> None:
        """Store the settings of all Parameters as tuples with one item per Parameter.

        `entries` has them in the order of the update. If no group has a rate of its own, the
        optimiser stores `common_rate` alone. `owner` is the optimiser's name in messages.
        """
        self.parameters = unique_parameters(owner, [e.parameter for e in entries])
        if self.is_group_lr:
            object.__setattr__(self, "learning_rate", tuple(e.rate for e in entries))
            for i, r in enumerate({id(r): r for r in self._rates()}.values()):
                if isinstance(r, Cell):
                    self._cells[f"learning_rate_{i}"] = r
        else:
            self.learning_rate = common_rate
        self._decay = tuple(e.decay for e in entries)
        self.decay_flags = tuple(isinstance(e.decay, Cell) or e.decay > 0 for e in entries)
        self.grad_centralization = tuple(e.centralize for e in entries)
        self.group_params = self.parameters

    def _store_decay(self) -> None:
        """Store the weight decay in the attributes that users' subclasses of Optimizer read.

        They are `weight_decay`, `dynamic_weight_decay`, `dynamic_decay_flags` and
        `exec_weight_decay`.
        """
        decay = self._decay
        decays = decay if isinstance(decay, tuple) else (decay,)
        shown = tuple(d if isinstance(d, Cell) else Tensor(d, float32) for d in decays)
        # what subclasses compute with; the optimisers here compute with numbers
        self.weight_decay = shown if isinstance(decay, tuple) else shown[0]
        self.dynamic_weight_decay = any(isinstance(d, Cell) for d in decays)
        self.dynamic_decay_flags = (
            tuple(isinstance(d, Cell) for d in decays)
            if self.is_group
            else self.dynamic_weight_decay
        )
        self.exec_weight_decay = any(isinstance(d, Cell) or d > 0 for d in decays)

    def _rates(self) -> tuple[Parameter | LearningRateSchedule, ...]:
        rate = self.learning_rate
        return rate if isinstance(rate, tuple) else (rate,)

    # ---- for subclasses -------------------------------------------------------------------------

    def get_lr(self) -> Any:
        """Return this step's learning rate: a Tensor, or a tuple with one per Parameter."""
        if self.is_group_lr:
            return tuple(r(self.global_step) if isinstance(r, Cell) else r for r in self._rates())
        rate = self.learning_rate
        return rate(self.global_step).reshape(()) if isinstance(rate, Cell) else rate

    def get_lr_parameter(self, param: Parameter | Sequence[Parameter]) -> Any:
        """Return the Parameter or schedule that holds the learning rate of a Parameter.

        For a list of Parameters, a list is returned.
        """
        if isinstance(param, (list, tuple)):
            return [self.get_lr_parameter(p) for p in param]
        if not isinstance(param, Parameter):
            raise ArgumentError(
                f"get_lr_parameter: got {type(param).__name__}; wanted a Parameter or a list of "
                "them"
            )
        rate = self.learning_rate
        for i, p in enumerate(self.parameters):
            if p is param:
                found = rate[i] if isinstance(rate, tuple) else rate
                return found.learning_rate if isinstance(found, _IteratorLearningRate) else found
        raise ArgumentValueError(f"get_lr_parameter: {param.name!r} is not among the parameters")

    def get_weight_decay(self) -> DecayNow:
        """Return this step's weight decay: a Tensor, or a tuple with one Tensor per Parameter."""
        decay = self._decay_now()
        several = decay if isinstance(decay, tuple) else (decay,)
        made = tuple(d if isinstance(d, Tensor) else Tensor(d, float32) for d in several)
        return made if isinstance(decay, tuple) else made[0]

    def _decay_now(self) -> DecayNow:
        """Return this step's weight decay, or a tuple with the weight decay of each Parameter.

        A constant decay is a Python number; one from a schedule is a Tensor.
        """
        decay = self._decay
        if isinstance(decay, tuple):
            return tuple(d(self.global_step) if isinstance(d, Cell) else d for d in decay)
        return decay(self.global_step) if isinstance(decay, Cell) else decay

    def decay_weight(self, gradients: Gradients) -> tuple[Tensor | None, ...]:
        """Return the gradients, with decay * weight * loss_scale added for Parameters that decay.

        The gradients of other Parameters are returned unchanged; a gradient that is None stays
        None.
        """
        if not self.exec_weight_decay:
            return tuple(gradients)
        decay = self._decay_now()
        decays = decay if isinstance(decay, tuple) else (decay,) * len(self.parameters)
        return tuple(
            g + self._fitting(p, g) * (d * self.loss_scale) if flag and g is not None else g
            for g, p, d, flag in zip(
                gradients, self.parameters, decays, self.decay_flags, strict=True
            )
        )

    def _fitting(self, parameter: Tensor, like: Tensor) -> Tensor:
        """Return `parameter`, or this rank's shard (1-d slice) of it if `like` is such a shard."""
        return parameter if self.sharding is None else self.sharding.fitting(parameter, like)

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients divided by the loss scale."""
        if self.loss_scale == 1.0:
            return tuple(gradients)
        return tuple(g * self.reciprocal_scale for g in gradients)

    def gradients_centralization(self, gradients: Sequence[Any]) -> tuple[Tensor, ...]:
        """Return the gradients, centralised where the group has ``grad_centralization`` set.

        To centralise a gradient is to subtract its mean over all axes but the first. Gradients with
        fewer than two axes are not changed.
        """
        centralized = self.grad_centralization
        if not isinstance(centralized, tuple):
            return tuple(gradients)
        return tuple(
            g - g.mean(tuple(range(1, g.ndim)), True) if centre and g.ndim > 1 else g
            for g, centre in zip(gradients, centralized, strict=True)
        )

    def broadcast_params(self, optim_result: object) -> object:
        """Return `optim_result` unchanged.

        MindSpore's method sends updated Parameters to the other devices; here every rank has all of
        them when `construct` ends.
        """
        return optim_result

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        """Return whether a learning rate or weight decay is computed from the step's number."""
        return self.dynamic_lr or self.dynamic_weight_decay

    def _grad_sparse_indices_deduplicate(self, gradients: Gradients) -> Gradients:
        """Return the gradients unchanged.

        MindSpore's method merges equal indices of sparse gradients; here all gradients are dense.
        """
        return gradients

    def flatten_gradients(self, gradients: Gradients) -> Gradients:
        """Return the gradients unchanged; this optimiser does not flatten weights."""
        return gradients

    def assignadd(self, target: Parameter, value: Tensor) -> Parameter:
        """Add `value` to the Parameter `target` in place; return the Parameter."""
        return target.set_data(target + value)

    # ---- the step -------------------------------------------------------------------------------

    def construct(self, gradients: Gradients) -> bool:
        """Run one optimiser step: update every Parameter from its gradient; return True.

        Raises:
            ValueError: the wrong number of gradients, or one of the wrong shape.
        """
        params = self.parameters
        self._check_gradients(gradients)
        lr = self.get_lr()
        if self._decays_before_update():
            gradients = self.decay_weight(gradients)
            decays: Any = (0.0,) * len(params)
        elif self.is_group:
            decays = self._decay
        else:
            decays = [self._decay if flag else 0.0 for flag in self.decay_flags]
        if self._centralizes():
            gradients = self.gradients_centralization(gradients)
        self.global_step.set_data(self.global_step + self._one)
        self.begin_step()
        several = isinstance(lr, tuple)
        scale = self.reciprocal_scale
        updated: list[tuple[Parameter, Tensor]] = []
        for i, p in enumerate(params):
            g = gradients[i]
            if g is None:
                continue
            target: Any = p
            if self.sharding is not None and self.sharding.sharded[i]:
                target = self.sharding.part(p)
                g = self.sharding.fitting(g, target)
                updated.append((p, target))
            self.update(i, target, g, lr[i] if several else lr, decays[i], scale)
        if self.sharding is not None:
            self.sharding.write(updated)
        return True

    def _centralizes(self) -> bool:
        """Return whether a group has ``grad_centralization`` set."""
        return isinstance(self.grad_centralization, tuple) and any(self.grad_centralization)

    def _decays_before_update(self) -> bool:
        """Return whether `construct` calls `decay_weight`, instead of passing decays to `update`.

        It does if the decay is not a number. Gradients that are centralised include it too.
        """
        return self.dynamic_weight_decay or self._centralizes()

    def begin_step(self) -> None:
        """Prepare an optimiser step, before the first Parameter update.

        Subclasses may override it.
        """

    def update(
        self, i: int, param: Parameter, grad: Tensor, lr: Tensor, decay: float, scale: float
    ) -> None:
        """Compute the new value of Parameter number `i`, and set it with `write`.

        Every subclass that does not override `construct` implements it. The gradient is still
        multiplied by the loss scale; `scale` is its reciprocal. Where the update is divided among
        ranks, `param` and `grad` are this rank's parts, 1-d Tensors.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no update and no construct")

    def write(self, param: Tensor, value: Tensor) -> None:
        """Set the new value of `param`, which `update` received as its argument.

        It is a Parameter or, if the update is sharded, this rank's shard (1-d slice) of one.
        """
        if isinstance(param, Parameter):
            param.set_data(value)
        else:
            param._rebind(value if value.dtype is param.dtype else value.astype(param.dtype))

    def _check_gradients(self, gradients: object) -> None:
        owner = type(self).__name__
        if not isinstance(gradients, (tuple, list)):
            raise ArgumentError(
                f"{owner}: got {type(gradients).__name__}; wanted a tuple of gradients, "
                "such as of `step = ms.value_and_grad(forward, None, optimizer.parameters)`: "
                "`loss, grads = step(x)`, then `optimizer(grads)`"
            )
        if len(gradients) != len(self.parameters):
            raise ArgumentValueError(
                f"{owner}: got {len(gradients)} gradients for {len(self.parameters)} parameters; "
                f"wanted one each, in the order of optimizer.parameters"
            )
        for i, (p, g) in enumerate(zip(self.parameters, gradients, strict=True)):
            if g is not None and not isinstance(g, Tensor):
                raise ArgumentError(
                    f"{owner}: got {type(g).__name__} as the gradient of {p.name!r}; wanted a "
                    "Tensor"
                )
            if g is not None and g.shape not in (p.shape, self._update_shape(i, p)):
                raise ArgumentValueError(
                    f"{owner}: got a gradient of shape {g.shape} for {p.name!r} of shape "
                    f"{p.shape}; "
                    f"wanted the same"
                )

    def _state(self, prefix: str, init: Init = "zeros", separator: str = ".") -> ParameterTuple:
        """Create a state Parameter, such as a moment, for each Parameter; return them all.

        Each has its Parameter's shape and dtype, and the name prefix + separator + name. Where the
        update is divided among ranks, it has the shape of this rank's part.
        """
        found = []
        for i, p in enumerate(self.parameters):
            made = Parameter(
                initializer(init, self._update_shape(i, p), p.dtype),
                name=f"{prefix}{separator}{p.name}",
            )
            if self.sharding is not None:
                made.part = self.sharding.stored(i, p)
            found.append(made.divided_like(p))
        return ParameterTuple(found)

    def _update_shape(self, i: int, parameter: Tensor) -> tuple[int, ...]:
        """Return the shape in which `update` gets Parameter number `i`, which is `parameter`.

        That is the shape of this rank's shard (1-d slice) if the update is sharded, else the
        Parameter's own shape.
        """
        return parameter.shape if self.sharding is None else self.sharding.shape(i, parameter)

    @property
    def unique(self) -> bool:
        """Return True.

        MindSpore's flag of this name says that sparse gradients have unique indices; here all
        gradients are dense.
        """
        return True

    @property
    def target(self) -> str:
        """Return the name of the device that runs the optimiser's updates."""
        return str(get_context("device_target"))

    def _set_base_target(self, value: str) -> None:
        """Raise ArgumentValueError unless `value` is the device that runs the updates.

        The setter of a subclass's property `target` calls it.
        """
        if value != self.target:
            raise ArgumentValueError(
                f"{type(self).__name__}.target: got {value!r}; the updates run on {self.target!r}, "
                "the device of the Parameters"
            )


class DecoupledDecay(Optimizer):
    """Base class of optimisers whose weight decay is no part of the gradients."""

    _current_decay: DecayNow = 0.0

    def decay_weight(self, gradients: Gradients) -> tuple[Tensor | None, ...]:
        """Return the gradients unchanged, and store this step's weight decay for `decay_of`."""
        self._current_decay = self._decay_now()
        return tuple(gradients)

    def _decays_before_update(self) -> bool:
        return self.dynamic_weight_decay

    def decay_of(self, i: int, decay: float) -> float | Tensor:
        """Return this step's weight decay of Parameter number `i`; `update` calls it.

        `decay` is the argument of `update`, which is 0 where the decay is not a number.
        """
        if not self.dynamic_weight_decay or not self.decay_flags[i]:
            return decay
        now = self._current_decay
        return now[i] if isinstance(now, tuple) else now
