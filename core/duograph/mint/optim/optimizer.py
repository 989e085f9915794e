"""The base of the optimisers of `duograph.mint.optim`: parameter groups and their settings.

The optimisers derive from it. It creates the Parameters of state and of learning rates and splits
the gradients among the groups; it never computes an update itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...nn.cell import Cell
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor

__all__ = ["GroupedOptimizer"]


class GroupedOptimizer(Cell):
    """Base of optimisers with parameter groups (`mindspore.experimental.optim.Optimizer`).

    Args:
        params: iterable of Parameters, or of dictionaries with ``params`` and the settings of that
            group which differ from the defaults.
        defaults: the settings of groups that do not give them.

    Attributes:
        param_groups: list of dictionaries, one for each group. ``lr`` is a Parameter; a schedule
            changes it with `ops.assign`, or replaces it by a number.
        parameters: ParameterTuple, in the order of the gradients.

    A subclass checks the settings of a group in `check_group` and implements `update`.

    Raises:
        TypeError: something else than Parameters or dictionaries.
        ValueError: no Parameter, the same one twice, a setting out of range, or one that is
            required and missing.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
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
        self.param_groups: list[dict[str, Any]] = []
        self._bounds: list[int] = [0]
        found: list[Parameter] = []
        for group in listed:
            made = self._group(owner, group, found)
            self.param_groups.append(made)
            found += made["params"]
            self._bounds.append(len(found))
        self.parameters = ParameterTuple(found)

    def _group(self, owner: str, group: Any, known: list[Parameter]) -> dict[str, Any]:
        """Return a parameter group with all settings; `known` are the Parameters of others."""
        if not isinstance(group, dict) or "params" not in group:
            raise ArgumentError(
                f"{owner}: got a group {group!r}; wanted a dictionary with the key 'params'"
            )
        unknown = sorted(set(group) - {"params", *self.defaults})
        if unknown:
            raise ArgumentValueError(
                f"{owner}: got a group with {unknown[0]!r}; wanted params, "
                f"{', '.join(self.defaults)}"
            )
        members = group["params"]
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
        made = {**self.defaults, **group, "params": members}
        rate = made["lr"]
        if isinstance(rate, bool) or not isinstance(rate, (int, float, Tensor)):
            raise ArgumentError(f"{owner}: got lr={rate!r}; wanted a number or a Tensor")
        if float(rate) < 0:
            raise ArgumentValueError(f"{owner}: got lr={rate!r}; wanted 0 or more")
        self.check_group(owner, made)
        name = f"learning_rate_group_{len(self.param_groups)}"
        made["lr"] = Parameter(Tensor(float(rate), float32), name=name, requires_grad=False)
        return made

    def check_group(self, owner: str, group: dict[str, Any]) -> None:
        """Raise an error if a setting of a group is out of range; `lr` has been checked."""
        raise NotImplementedError(f"{owner}: has no check_group")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refuse a further group: the state of an optimiser is created with it.

        Raises:
            ValueError: always.
        """
        raise ArgumentValueError(
            f"{type(self).__name__}: got a group of {len(param_group)} settings after its "
            "creation; pass all groups to the constructor"
        )

    def state_of(self, prefix: str, members: Sequence[Parameter]) -> list[Parameter]:
        """Return a state Parameter of zeros, named ``prefix.name``, for each Parameter."""
        return [
            Parameter(
                initializer("zeros", p.shape, p.dtype), name=f"{prefix}.{p.name}",
                requires_grad=False,
            )
            for p in members
        ]  # fmt: skip

    def construct(self, gradients: Sequence[Tensor | None]) -> bool:
        """Update every Parameter from its gradient; return True.

        Raises:
            TypeError: the gradients are not a tuple or list.
            ValueError: another number of gradients, or one of another shape.
        """
        owner, params = type(self).__name__, self.parameters
        if not isinstance(gradients, (tuple, list)):
            raise ArgumentError(
                f"{owner}: got {type(gradients).__name__}; wanted a tuple of gradients"
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
            for i in range(self._bounds[number], self._bounds[number + 1]):
                g = gradients[i]
                if g is not None:
                    self.update(i, params[i], g, group)
        return True

    def begin_step(self) -> None:
        """Prepare a step, before the first Parameter is updated."""

    def update(self, i: int, param: Parameter, grad: Tensor, group: dict[str, Any]) -> None:
        """Compute and write the new value of the optimiser's Parameter number `i`."""
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
