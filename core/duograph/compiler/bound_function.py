"""A compiled method together with its receiver: what `a.f` is for a method `f` that `jit` compiles.

`JitFunction.__get__` makes one at each access. It is called as a bound method is, and its
`explain`, `show`, `compile` and `graph` take the arguments without the receiver. Nothing may be
kept here: programs belong to the function and its receiver. A call leaves out the lookup by the
types of plain Tensors, which finds nothing for a receiver with attributes.
"""

from __future__ import annotations

import copy
import types
from typing import TYPE_CHECKING, Any

from ..frontend.evaluation.calls import call_method
from ..frontend.evaluation.dispatch import calls
from ..frontend.types import Value
from ..pages import Page
from ..tracebacks import hide_own_frames

if TYPE_CHECKING:
    from .explain import Explanation
    from .function import JitFunction

__all__ = ["BoundFunction"]


class BoundFunction:
    """A compiled function bound to a receiver, the object that becomes `self`.

    Attributes that this class lacks are looked up in the function. `isinstance` says that it is a
    bound method, `types.MethodType`, although that class allows no subclasses.
    """

    __slots__ = ("__func__", "__self__", "__weakref__")

    __func__: JitFunction
    __self__: Value

    def __init__(self, function: JitFunction, receiver: Value) -> None:
        self.__func__ = function
        self.__self__ = receiver

    def __call__(self, /, *args: Value, **kwargs: Value) -> Value:
        try:
            return self.__func__.long_call((self.__self__, *args), kwargs)
        except Exception as error:
            hide_own_frames(error)
            raise

    def explain(self, /, *args: Value, **kwargs: Value) -> Explanation:
        """Return the report of `JitFunction.explain` on a call with this receiver."""
        return self.__func__.explain(self.__self__, *args, **kwargs)

    def show(self, /, *args: Value, **kwargs: Value) -> Page:
        """Return the page of `JitFunction.show` about a call with this receiver."""
        return self.__func__.show(self.__self__, *args, **kwargs)

    def compile(self, /, *args: Value, **kwargs: Value) -> None:
        """Compile the function for this receiver and the types of the arguments; run nothing."""
        self.__func__.compile(self.__self__, *args, **kwargs)

    def graph(self, /, *args: Value, **kwargs: Value) -> Value:
        """Return the unoptimised graph of a call with this receiver; see `JitFunction.graph`."""
        return self.__func__.graph(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return types.MethodType

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.__func__.__doc__

    @property
    def __module__(self) -> str:  # type: ignore[override]
        return self.__func__.__module__

    def __eq__(self, other: object) -> bool:
        if type(other) is not BoundFunction:
            return NotImplemented
        return self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((id(self.__func__), id(self.__self__)))

    def __repr__(self) -> str:
        return f"<bound method {self.__func__.name} of {self.__self__!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (self.__self__, self.__func__.__name__)

    def __copy__(self) -> BoundFunction:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> BoundFunction:
        return BoundFunction(self.__func__, copy.deepcopy(self.__self__, memo))


calls(BoundFunction)(call_method)
