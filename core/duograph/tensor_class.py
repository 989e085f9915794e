"""The class of the class `Tensor`, which notices when a program replaces a method of Tensor.

`tensor` uses it as metaclass. Programs that were compiled with the old method are then checked once
(`compiler.guards`). It must add nothing to the creation or use of a tensor.
"""

from __future__ import annotations

import abc

from .runtime_state import runtime_state

__all__ = ["TensorClass"]


class TensorClass(abc.ABCMeta):
    """The class of `Tensor`, which notices when a program replaces, adds or deletes a method.

    Compiled functions then compare the methods that they use (`compiler.guards`). A comparison
    before each call would take longer than many calls. It derives from `ABCMeta` so that a subclass
    of Tensor may have abstract base classes; `isinstance` still works as for other classes, which
    is faster.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __setattr__(cls, name: str, value: object) -> None:
        super().__setattr__(name, value)
        runtime_state.settings_version = object()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        runtime_state.settings_version = object()
