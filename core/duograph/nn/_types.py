"""Type aliases for the constructor arguments that layers, losses and optimisers share.

Imported by the modules of `nn` for annotations only. It must not import `nn.cell` at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..common.initializer import Initializer
from ..dtype import DTypeLike
from ..host_arrays import Array
from ..parameter import Parameter
from ..tensor import Tensor

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "Activation", "Array", "Axis", "Decay", "DTypeLike", "Init", "Ints", "Params", "Rate",
]  # fmt: skip

Ints: TypeAlias = "int | Sequence[int]"  # one int for all spatial axes, or one per axis
Axis: TypeAlias = "int | Sequence[int] | None"
Init: TypeAlias = "Initializer | Tensor | str | float | None"
Activation: TypeAlias = "str | Callable[[Tensor], Tensor] | None"  # a Cell is callable
Params: TypeAlias = "Iterable[Parameter] | Iterable[Mapping[str, object]]"  # or parameter groups
Rate: TypeAlias = "float | Tensor | Iterable[float] | Cell"  # a Cell is a LearningRateSchedule
Decay: TypeAlias = "float | Cell"
