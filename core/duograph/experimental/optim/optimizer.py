"""Optimizer, the base of optimisers with parameter groups: settings, learning rates and state.

The optimisers of `experimental.optim` and `mint.optim`, and those of users, derive from it. It
creates the Parameters of state and splits the gradients among the groups; it must not compute an
update itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...nn.cell import Cell
from ...nn.optim.sharding import sharding_of
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor

__all__ = ["Optimizer"]

ParamGroup: TypeAlias = "dict[str, Any]"  # of a user: params, lr and what the optimiser knows

# settings that every group may have: what resumes a schedule, and a name for the reader
_FREE_KEYS = ("params", "initial_lr", "name", "weight_decay")


class Optimizer(Cell):
    """Base of optimisers with parameter groups (`mindspore.experimental.optim.Optimizer`).

    Args:
        params: iterable of Parameters, or of dictionaries with ``params`` and the settings of that
            group which differ from the defaults.
        defaults: the settings of groups that do not give them; they include ``lr``.

    Attributes:
        param_groups: list of dictionaries, one for each group. ``lr`` is a Parameter; a schedule
            changes it with `ops.assign`, or replaces it by a number.
        parameters: ParameterTuple, in the order of the gradients.
        lrs: the learning rates of the groups, as Parameters.
        group_start_id: list of the indices in `parameters` at which the groups begin, followed by
            the number of Parameters.

    A subclass implements `construct(gradients)`; or it implements `update`, declares its state
    with `add_state` and checks the settings of a group in `check_group`.

    Raises:
        TypeError: something else than Parameters or dictionaries.
        ValueError: no Parameter, the same one twice, a setting out of range, or one that is
            required and missing.

    Examples:
        >>> import duograph as ms
        >>> class Descent(ms.experimental.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     def construct(self, gradients):
        ...         for start, group in zip(self.group_start_id, self.param_groups):
        ...             for i, param in enumerate(group["params"]):
        ...                 ms.ops.assign_sub(param, gradients[start + i] * group["lr"])
        ...         return True
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> Descent([p], 0.5)((ms.Tensor([1.0, 1.0]),))
        True
        >>> print(p.asnumpy())
        [0.5 1.5]
    """

    def __init__(self, params: Iterable[object], defaults: ParamGroup) -> None:
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        if isinstance(params, (Parameter, Tensor, dict, str)) or not isinstance(params, Iterable):
            raise ArgumentError(
                f"{owner}: got {type(params).__name__} for params; wanted a list of Parameters or "
                "of dictionaries"
            )
        listed = list(params)
        if not listed:
            raise ArgumentValueError(f"{owner}: got no parameters; wanted at least one")
        if not isinstance(listed[0], dict):
            listed = [{"params": listed}]
        self.defaults = defaults
        self.param_groups: list[ParamGroup] = []
        self.lrs: list[Parameter] = []
        self.group_start_id: list[int] = [0]
        self._states: dict[str, tuple[str | float, str | None, bool]] = {}
        self._state_by_id: dict[str, dict[int, Parameter]] = {}
        self.parameters = ParameterTuple(())
        for group in listed:
            self.add_param_group(cast("ParamGroup", group))
        sharding_of(owner, self.parameters, "it updates whole Parameters")  # refuses the option

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group: a dictionary with ``params`` and any of the settings.

        Raises:
            TypeError, ValueError: as in the constructor.
        """
        owner = type(self).__name__
        made = self._group(owner, param_group, self.parameters)
        rate = made["lr"]
        if isinstance(rate, bool) or not isinstance(rate, (int, float, Tensor)):
            raise ArgumentError(f"{owner}: got lr={rate!r}; wanted a number or a Tensor")
        if isinstance(rate, Tensor) and rate.ndim:
            raise ShapeError(f"{owner}: got lr of shape {rate.shape}; wanted a 0-d Tensor")
        if float(rate) < 0:
            raise ArgumentValueError(f"{owner}: got lr={rate!r}; wanted 0 or more")
        self.check_group(owner, made)
        name = f"learning_rate_group_{len(self.param_groups)}"
        made["lr"] = Parameter(Tensor(float(rate), float32), name=name, requires_grad=False)
        self.lrs.append(made["lr"])
        self.param_groups.append(made)
        self.parameters = ParameterTuple((*self.parameters, *made["params"]))
        self.group_start_id.append(len(self.parameters))
        for name in self._states:
            setattr(self, name, self._extended_state(name))

    def _group(self, owner: str, group: object, known: Sequence[Parameter]) -> ParamGroup:
        """Check a parameter group; return it with defaults for the settings that it lacks.

        `known` are the Parameters of other groups, which it may not contain.

        Raises:
            ArgumentError: the group is no dictionary with ``params``, or these are no Parameters.
            ArgumentValueError: a setting is unknown, a Parameter occurs twice, or `lr` is missing.
        """
        if not isinstance(group, dict) or "params" not in group:
            raise ArgumentError(
                f"{owner}: got a group {group!r}; wanted a dictionary with the key 'params'"
            )
        unknown = sorted(set(group) - {*_FREE_KEYS, *self.defaults})
        if unknown:
            raise ArgumentValueError(
                f"{owner}: got a group with {unknown[0]!r}; wanted params, "
                f"{', '.join(self.defaults)}"
            )
        members = group["params"]
        if isinstance(members, set):
            raise ArgumentError(f"{owner}: got a set of Parameters; wanted a list, with an order")
        members = [members] if isinstance(members, Parameter) else list(members)
        ids = {id(p) for p in known}
        for p in members:
            if not isinstance(p, Parameter):
                raise ArgumentError(f"{owner}: got {type(p).__name__}; wanted Parameters")
            if id(p) in ids:
                raise ArgumentValueError(
                    f"{owner}: got the parameter {p.name!r} twice; wanted it once"
                )
            ids.add(id(p))
        made = {"weight_decay": 0.0, **self.defaults, **group, "params": members}
        if "lr" not in made:
            raise ArgumentValueError(f"{owner}: got no lr in the defaults or the group; wanted it")
        return made

    def check_group(self, owner: str, group: ParamGroup) -> None:
        """Raise an error if a setting of a group is out of range; subclasses implement it.

        The base class has already checked `lr`; by default nothing else is checked.
        """

    def add_state(
        self, name: str, init: str | float = "zeros", *, only_if: str | None = None,
        scalar: bool = False,
    ) -> ParameterTuple:  # fmt: skip
        """Return new state: for each Parameter p one named `name` + "." + the name of p.

        Groups that are added later extend the attribute of that name.

        Args:
            name: name of the attribute to which the caller assigns the result.
            init: initial value, or the name of an initialiser.
            only_if: name of a setting; only Parameters of groups in which it is true get the state.
                None for all.
            scalar: whether the state of a Parameter is one float32 number, instead of having the
                shape and dtype of the Parameter.
        """
        self._states[name] = (init, only_if, scalar)
        self._state_by_id[name] = {}
        return self._extended_state(name)

    def _extended_state(self, name: str) -> ParameterTuple:
        """Create the state `name` for Parameters that lack it; return that of all Parameters."""
        init, only_if, scalar = self._states[name]
        known = self._state_by_id[name]
        for group in self.param_groups:
            for p in group["params"] if only_if is None or group[only_if] else ():
                if id(p) not in known:
                    shape, dtype = ((), float32) if scalar else (p.shape, p.dtype)
                    value = initializer(init, shape, dtype)
                    known[id(p)] = Parameter(value, name=f"{name}.{p.name}", requires_grad=False)
        return ParameterTuple(known.values())

    def state_of(self, name: str, param: Parameter) -> Parameter | None:
        """Return the state `name` of one Parameter; None if its group has none."""
        return self._state_by_id[name].get(id(param))

    def rate(self, group: ParamGroup) -> Tensor:
        """Return the setting `lr` of a group as a Tensor; a number becomes a float32 Tensor."""
        lr = group["lr"]
        return lr if isinstance(lr, Tensor) else Tensor(float(lr), float32)

    def _decay_weight(
        self, weight_decay: float, params: Sequence[Parameter], gradients: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """Return each gradient plus ``weight_decay`` times its Parameter."""
        if not weight_decay:
            return tuple(gradients)
        return tuple(g + p * weight_decay for p, g in zip(params, gradients, strict=True))

    def gradient(self, param: Parameter, grad: Tensor, group: ParamGroup) -> Tensor:
        """Return a gradient, negated for `maximize`, with the group's weight decay added."""
        signed = -grad if group.get("maximize") else grad
        return self._decay_weight(group["weight_decay"], (param,), (signed,))[0]

    def construct(self, gradients: Sequence[Tensor | None]) -> bool:
        """Update each Parameter from its gradient, skipping those whose gradient is None.

        Returns True. The gradients are in the order of `parameters`.

        Raises:
            TypeError: the gradients are not a tuple or list.
            ValueError: the wrong number of gradients, or one of the wrong shape.
        """
        owner, params = type(self).__name__, self.parameters
        if not isinstance(gradients, (tuple, list)):
            raise ArgumentError(
                f"{owner}: got {type(gradients).__name__}; wanted a tuple of gradients, "
                "such as of `step = ms.value_and_grad(forward, None, optimizer.parameters)`: "
                "`loss, grads = step(x)`, then `optimizer(grads)`"
            )
        if len(gradients) != len(params):
            raise ArgumentValueError(
                f"{owner}: got {len(gradients)} gradients for {len(params)} parameters; wanted one "
                "each, in the order of optimizer.parameters"
            )
        for p, g in zip(params, gradients, strict=True):
            if g is not None and g.shape != p.shape:
                raise ShapeError(
                    f"{owner}: got a gradient of shape {g.shape} for {p.name!r} of shape {p.shape}"
                )
        self.begin_step()
        for number, group in enumerate(self.param_groups):
            for i in range(self.group_start_id[number], self.group_start_id[number + 1]):
                g = gradients[i]
                if g is not None:
                    self.update(i, params[i], g, group)
        return True

    def begin_step(self) -> None:
        """Prepare a step, before the first Parameter is updated; subclasses may override it."""

    def update(self, i: int, param: Parameter, grad: Tensor, group: ParamGroup) -> None:
        """Compute and write the new value of the optimiser's Parameter number `i`.

        `group` has the settings of its group. A subclass must implement `update` unless it
        overrides `construct`.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no update")

    def extend_repr(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {number}")
            for key in sorted(group):
                if key != "params":
                    value = group[key]
                    shown = float(value) if isinstance(value, Tensor) else value
                    lines.append(f"    {key}: {shown}")
        return "\n".join(lines) + "\n"
