"""Reads and checks the `parameters` argument of an optimiser: Parameters, or groups of them.

`Optimizer` calls it once, when it is constructed. A group is a dictionary of Parameters and their
settings. Nothing here updates a Parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...advice import kind_of, meant, number_hint
from ...errors import ArgumentError, ArgumentValueError, UnknownNameError
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor
from .._types import Decay, Rate
from ..cell import Cell
from ..learning_rate_schedule import LearningRateSchedule

LearningRate: TypeAlias = Parameter | LearningRateSchedule


class Groups(NamedTuple):
    """The parameter groups of an optimiser after they have been read and checked.

    Attributes:
        entries: a `GroupEntry` for each Parameter, in the order of the gradients.
        own_rates: whether a group has a learning rate of its own.
        ordered: whether a group of ``order_params`` gave the order.
    """

    entries: list[GroupEntry]
    own_rates: bool
    ordered: bool


class GroupEntry(NamedTuple):
    """One Parameter of an optimiser, with the settings of its parameter group."""

    parameter: Parameter
    rate: LearningRate
    decay: Decay
    centralize: bool


_GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


def _check_group(owner: str, group: object) -> None:
    """Raise if a parameter group is not a dictionary, or if its keys are wrong.

    `owner` is the optimiser's name in messages.
    """
    if not isinstance(group, dict):
        raise ArgumentError(
            f"{owner}: got {type(group).__name__} among groups; wanted dictionaries only"
        )
    unknown = [k for k in group if k not in _GROUP_KEYS]
    if unknown:
        raise UnknownNameError(
            f"{owner}: got the key {unknown[0]!r} in a group; {meant(str(unknown[0]), _GROUP_KEYS)}"
        )
    if "order_params" in group and len(group) > 1:
        raise ArgumentValueError(
            f"{owner}: got order_params together with other keys; wanted it in a group of its own"
        )
    if "order_params" not in group and "params" not in group:
        raise UnknownNameError(f"{owner}: got a group without 'params'; wanted it")


def parameter_list(owner: str, parameters: object) -> list[Any]:
    """Return an optimiser's `parameters` argument as a non-empty list; items are not checked.

    `owner` is the optimiser's name in messages.
    """
    if isinstance(parameters, (Parameter, Tensor, str, dict)) or not isinstance(
        parameters, Iterable
    ):
        raise ArgumentError(
            f"{owner}: got {kind_of(parameters)} as parameters; wanted a list of Parameters "
            "or groups, such as net.trainable_params()"
        )
    items = list(parameters)
    if not items:
        raise ArgumentValueError(
            f"{owner}: got no parameters (an empty list); wanted at least one. "
            "net.trainable_params() is empty if the network has no layer with parameters, if all "
            "are frozen, or if its layers are in a Python list instead of nn.CellList"
        )
    return items


def unique_parameters(owner: str, parameters: Sequence[Parameter]) -> ParameterTuple:
    """Return a ParameterTuple of the Parameters.

    Raises ArgumentValueError if two of them have the same name. `owner` is the optimiser's name in
    messages.
    """
    names: set[str] = set()
    for p in parameters:
        if p.name in names:
            raise ArgumentValueError(
                f"{owner}: got two parameters named {p.name!r}; wanted unique names"
            )
        names.add(p.name)
    return ParameterTuple(parameters)


def checked_decay(owner: str, value: object) -> Decay:
    """Return the `weight_decay` argument of an optimiser after checking it.

    It must be a Cell (a schedule) or a non-negative number. `owner` is the optimiser's name in
    messages.
    """
    if isinstance(value, Cell):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(
            f"{owner}: got weight_decay={value!r}; wanted a number of 0 or more, or a Cell"
            f"{number_hint(value)}"
        )
    if value < 0:
        raise ArgumentValueError(f"{owner}: got weight_decay={value!r}; wanted 0 or more")
    return float(value)


def read_groups(
    owner: str,
    groups: Sequence[dict[str, Any]],
    common_rate: LearningRate,
    decay: Decay,
    rate_of: Callable[[Rate, str], LearningRate],
) -> Groups:
    """Return the groups of an optimiser as one entry for each Parameter.

    Args:
        owner: the optimiser's name in messages.
        groups: the dictionaries that the user gave.
        common_rate, decay: learning rate and weight decay of groups that have none of their own.
        rate_of: function that makes the Parameter or schedule of a group's rate, from the rate and
            a name.
    """
    order: list[Parameter] | None = None
    own_rates = False
    found: dict[int, GroupEntry] = {}
    for number, group in enumerate(groups):
        _check_group(owner, group)
        if "order_params" in group:
            order = list(group["order_params"])
            continue
        rate = common_rate
        members = parameter_list(owner, group["params"])
        if "lr" in group:
            own_rates = True
            rate = rate_of(group["lr"], f"learning_rate_group_{number}")
        own_decay = (
            checked_decay(owner, group["weight_decay"]) if "weight_decay" in group else decay
        )
        centralize = bool(group.get("grad_centralization", False))
        for p in members:
            if not isinstance(p, Parameter):
                raise ArgumentError(
                    f"{owner}: got {type(p).__name__} in a group's params; wanted Parameters"
                )
            if id(p) in found:
                raise ArgumentValueError(
                    f"{owner}: got the parameter {p.name!r} in two groups; wanted it in one"
                )
            found[id(p)] = GroupEntry(p, rate, own_decay, centralize)
    if not found:
        raise ArgumentValueError(f"{owner}: got groups without parameters; wanted at least one")
    entries = list(found.values()) if order is None else _ordered(owner, found, order)
    return Groups(entries, own_rates, order is not None)


def _ordered(
    owner: str, found: Mapping[int, GroupEntry], order: Sequence[Parameter]
) -> list[GroupEntry]:
    """Return the entries of `found` in the order of the Parameters in `order` (``order_params``).

    `found` maps the `id` of each Parameter to its entry. Raises ArgumentValueError, in the name of
    the optimiser `owner`, if `order` does not have exactly these Parameters.
    """
    if {id(p) for p in order} != set(found):
        raise ArgumentValueError(
            f"{owner}: got order_params with {len(order)} parameters that are not exactly the "
            f"{len(found)} of the groups; wanted the same ones"
        )
    return [found[id(p)] for p in order]
