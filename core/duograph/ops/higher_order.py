"""Higher-order functions: HyperMap, Map, MultitypeFuncGraph, partial, get_grad and linearize.

Users call them with functions of their own. They are plain Python, which a compiled function
unrolls during compilation, so they must not depend on the values of tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from ..autodiff.bprop_registry import binop_grad_common, bprop_getters
from ..autodiff.jacobian import jacfwd, jacrev
from ..autodiff.taylor import derivative, jet
from ..autodiff.transforms import GradOperation, grad, jvp, value_and_grad, vjp
from ..autodiff.vmap import vmap
from ..dtype import DType, Type
from ..errors import ArgumentError
from ..option_checks import check_options
from ..parameter import Parameter
from ..tensor import Tensor

__all__ = [
    "GradOperation", "grad", "value_and_grad", "vjp", "jvp", "jacrev", "jacfwd", "jet",
    "derivative", "vmap", "bprop_getters", "binop_grad_common", "HyperMap", "Map",
    "MultitypeFuncGraph", "Partial",
    "partial", "constexpr", "get_grad", "linearize",
]  # fmt: skip

Function: TypeAlias = Callable[..., Any]  # a user's function
F = TypeVar("F", bound=Function)
R = TypeVar("R")


def constexpr(
    fn: Function | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Function:
    """Mark a Python function to be evaluated at compile time (`mindspore.ops.constexpr`).

    Outside compiled code it is called like any function.

    Examples:
        >>> import duograph as ms
        >>> @ms.ops.constexpr
        ... def half(n):
        ...     return n // 2
        >>> half(7)
        3
    """
    check_options(
        "constexpr", get_instance=get_instance, name=name, reuse_result=reuse_result, check=check
    )
    if fn is None:
        return lambda f: constexpr(f)
    if not callable(fn):
        raise ArgumentError(f"constexpr: got {type(fn).__name__}; wanted a function")
    fn.is_constexpr = True  # type: ignore[attr-defined]
    return fn


def partial(function: Callable[..., R], /, *args: object, **kwargs: object) -> Callable[..., R]:
    """Return `function` with its first arguments bound (`mindspore.ops.partial`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.partial(max, 3)(2)
        3
    """
    if not callable(function):
        raise ArgumentError(f"partial: got {type(function).__name__}; wanted a function")
    return functools.partial(function, *args, **kwargs)


class Partial:
    """Primitive form of `partial`: `Partial()(function, *args)`."""

    def __call__(
        self, function: Callable[..., R], /, *args: object, **kwargs: object
    ) -> Callable[..., R]:
        return partial(function, *args, **kwargs)


def _of_class(name: str) -> Callable[[object], bool]:
    """Return a predicate: whether an object's class or a base of it is called `name`.

    Names are compared because sparse tensors are defined in a module that is imported later.
    """
    return lambda v: any(c.__name__ == name for c in type(v).__mro__)


# Tests for the type names in `MultitypeFuncGraph.register("Tensor", "Number")`.
_BY_NAME: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "TensorType": lambda v: isinstance(v, Tensor),
    "Parameter": lambda v: isinstance(v, Parameter),
    "Number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "Int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "Float": lambda v: isinstance(v, float),
    "Bool": lambda v: isinstance(v, bool),
    "String": lambda v: isinstance(v, str),
    "Tuple": lambda v: isinstance(v, tuple),
    "List": lambda v: isinstance(v, list),
    "Dictionary": lambda v: isinstance(v, dict),
    "Dict": lambda v: isinstance(v, dict),
    "NoneType": lambda v: v is None,
    "None": lambda v: v is None,
    "Function": callable,
    "Func": callable,
    "Slice": lambda v: isinstance(v, slice),
    "Ellipsis": lambda v: v is Ellipsis,
    "Set": lambda v: isinstance(v, set),
    "UInt": lambda v: False,  # no Python number is unsigned
    **{name: _of_class(name) for name in ("COOTensor", "CSRTensor", "RowTensor", "MapTensor")},
    "RowTensorInner": _of_class("RowTensor"),
}


def _accepts(pattern: object, value: object) -> bool:
    if isinstance(pattern, str):
        known = _BY_NAME.get(pattern)
        return known is not None and known(value)
    if isinstance(pattern, Type):
        return _accepts(pattern.name, value)
    if isinstance(pattern, DType):
        if isinstance(value, Tensor):
            return value.dtype is pattern
        return (pattern.kind in "iu" and value.__class__ is int) or (
            pattern.kind == "f" and value.__class__ is float
        )
    if isinstance(pattern, type):
        return isinstance(value, pattern)
    return False


class MultitypeFuncGraph:
    """A function overloaded by the types of its arguments (`mindspore.ops.MultitypeFuncGraph`).

    Examples:
        >>> import duograph as ms
        >>> double = ms.ops.MultitypeFuncGraph("double")
        >>> @double.register("Number")
        ... def _(x):
        ...     return 2 * x
        >>> @double.register("Tensor")
        ... def _(x):
        ...     return x + x
        >>> double(4)
        8
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        check_options("ops.MultitypeFuncGraph", read_value=read_value)
        if not isinstance(name, str):
            raise ArgumentError(f"MultitypeFuncGraph: got name={name!r}; wanted a string")
        self.name = name
        self.entries: list[tuple[tuple[object, ...], Function]] = []

    def register(self, *type_names: object) -> Callable[[F], F]:
        """Return a decorator that registers a function for the given argument types.

        A type is a name such as "Tensor", a dtype or a class.
        """
        for pattern in type_names:
            if isinstance(pattern, str) and pattern not in _BY_NAME:
                raise ArgumentError(
                    f"{self.name}: register got the type {pattern!r}; "
                    f"wanted one of {', '.join(_BY_NAME)}, a dtype or a class"
                )

        def decorate(function: F) -> F:
            self.entries.append((type_names, function))
            return function

        return decorate

    def find(self, args: Sequence[object]) -> Function:
        """Return the last registered function whose argument types match these arguments.

        Raises:
            TypeError: no registered function accepts the arguments.
        """
        for patterns, function in reversed(self.entries):
            if len(patterns) == len(args) and all(map(_accepts, patterns, args)):
                return function
        got = ", ".join(type(a).__name__ for a in args)
        known = "; ".join("(" + ", ".join(map(str, p)) + ")" for p, _ in self.entries)
        raise ArgumentError(
            f"{self.name}: got arguments ({got}); registered are: {known or 'none'}"
        )

    def __call__(self, *args: object) -> Any:
        return self.find(args)(*args)


def _items(value: Iterable[object]) -> list[object]:
    return list(value.values()) if isinstance(value, dict) else list(value)


class Map:
    """Apply a function to the items of sequences, one level deep (`mindspore.ops.Map`).

    Args:
        ops: the function; by default the first argument of the call.
        reverse: process the items from last to first; the result keeps their order.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Map()(lambda x, y: x + y, (1, 2), (10, 20))
        (11, 22)
    """

    deep = False

    def __init__(self, ops: Function | None = None, reverse: bool = False) -> None:
        if ops is not None and not callable(ops):
            raise ArgumentError(
                f"{type(self).__name__}: got {type(ops).__name__}; wanted a function"
            )
        self.ops = ops
        self.reverse = reverse

    def __call__(self, *args: Any) -> Any:
        function = self.ops
        if function is None:
            function, *rest = args
            args = tuple(rest)
        if not callable(function):
            raise ArgumentError(
                f"{type(self).__name__}: got {type(function).__name__}; wanted a function first"
            )
        if not args:
            raise ArgumentError(f"{type(self).__name__}: got no sequences; wanted at least one")
        if not any(isinstance(a, (tuple, list, dict)) for a in args):
            if self.deep:
                return function(*args)
            got = ", ".join(type(a).__name__ for a in args)
            raise ArgumentError(f"{type(self).__name__}: got {got}; wanted tuples, lists or dicts")
        return self._mapped(function, args)

    def _mapped(self, function: Function, args: Sequence[Any]) -> object:
        lengths = [len(a) for a in args]
        if len(set(lengths)) > 1:
            raise ArgumentError(
                f"{type(self).__name__}: got sequences of lengths {lengths}; wanted one length"
            )
        rows = list(zip(*[_items(a) for a in args], strict=True))
        order = range(len(rows))
        found: list[object] = [None] * len(rows)
        for i in reversed(order) if self.reverse else order:
            row = rows[i]
            nested = self.deep and all(isinstance(x, (tuple, list, dict)) for x in row)
            found[i] = self._mapped(function, row) if nested else function(*row)
        first = args[0]
        if isinstance(first, dict):
            return dict(zip(first, found, strict=True))
        return found if isinstance(first, list) else tuple(found)


class HyperMap(Map):
    """Apply a function to the leaves of nested sequences (`mindspore.ops.HyperMap`).

    The constructor takes the arguments of `Map`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.HyperMap(lambda x: x * x)(((1, 2), (3,)))
        ((1, 4), (9,))
    """

    deep = True


def get_grad(gradients: Any, identifier: int | Parameter | str) -> Tensor:
    """Return one gradient of a result of `grad(..., return_ids=True)` (`mindspore.get_grad`).

    Args:
        gradients: nested tuples of pairs (position or name of a Parameter, gradient).
        identifier: the position, the Parameter, or its name.

    Raises:
        TypeError: `gradients` holds no such pairs.
        KeyError: there is no gradient with that identifier.

    Examples:
        >>> import duograph as ms
        >>> found = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)
        >>> print(ms.get_grad(found(ms.Tensor(2.0), ms.Tensor(3.0)), 1))
        2.0
    """
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier
    if not isinstance(gradients, tuple):
        raise ArgumentError(
            f"get_grad: got {type(gradients).__name__}; wanted the result of "
            "grad(..., return_ids=True)"
        )
    pending: list[Any] = [gradients]
    while pending:
        item = pending.pop()
        if len(item) == 2 and isinstance(item[0], (int, str)) and isinstance(item[1], Tensor):
            if item[0] == wanted:
                return item[1]
        else:
            pending += [part for part in item if isinstance(part, tuple)]
    raise KeyError(f"get_grad: no gradient of {wanted!r}")


def linearize(fn: Function, inputs: Any) -> tuple[Any, Function]:
    """Return the value of a function at a point, and its derivative there as a function
    (`mindspore.ops.functional.linearize`).

    Args:
        fn: function or Cell of Tensors.
        inputs: a Tensor, or a tuple of the arguments.

    Returns:
        (``fn(*inputs)``, derivative). The derivative is a function of a direction (a Tensor, or a
        tuple with one for each argument) that returns the change of the result.

    Examples:
        >>> import duograph as ms
        >>> value, change = ms.ops.linearize(lambda x: x * x, ms.Tensor([3.0]))
        >>> print(value, change(ms.Tensor([1.0])))
        [9.] [6.]
    """
    point = inputs if isinstance(inputs, tuple) else (inputs,)

    def change(v: object) -> object:
        return jvp(fn, inputs, v)[1]

    return fn(*point), change
