"""Calls a Cell (network layer) whose `construct` is wrapped by casts, hooks or compilation.

`Cell.__call__` comes here under GRAPH_MODE, while a graph is being built, and for Cells that have
hooks, a cast, their own `bprop` or recomputation. It must not be on the path of a plain eager call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import call_cache
from ..autodiff.pytrees import rebuilt
from ..call_names import WRAPPER, name_cell
from ..context import GRAPH_MODE, settings
from ..dtype import DType
from ..errors import ArgumentError, DuographError
from ..parameter import Parameter
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor
from ..tracebacks import short
from . import _hooks, _sharding, _tree
from .recompute import run_again

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["call", "cast_floating", "without_super"]


def call(cell: Cell, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Call a Cell with the casts, hooks, checkpointing or compilation that wrap its `construct`.

    Returns what the Cell returns. From the inside out, the wrappers are the Cell's own `bprop`,
    recomputation, the cast of `to_float`, and hooks. A compiled graph of the Cell takes the place
    of all but the hooks, which run around it.
    """
    if "_params" not in cell.__dict__:
        raise AttributeError(without_super(type(cell)))
    if runtime_state.staging:
        builder = staged_builder()
        if builder is not None:
            return builder.evaluation.call_cell(cell, args, kwargs)
    if cell._sharding is not None:
        found = _sharding.call_divided(cell, args, kwargs)
        if found is not NotImplemented:
            return found
    hooked = bool(
        cell._forward_pre_hooks or cell._forward_hooks
        or cell._backward_hooks or cell._backward_pre_hooks
    )  # fmt: skip
    compiled = settings.mode == GRAPH_MODE or cell._compiled is not None
    if compiled and not hooked:
        found = runtime_state.load_compiler().graph_call(cell, args, kwargs)
        if found is not NotImplemented:
            return found
    _tree.check_names(cell)
    own_bprop = hasattr(type(cell), "bprop")
    if not (hooked or own_bprop or cell._recompute or cell._float_type is not None):
        cell.__dict__["_plain"] = cell._compiled is None
        return cell.construct(*args, **kwargs)
    run: Callable[..., Any] = cell.construct
    if own_bprop:
        run = lambda *a, **k: _hooks.call_with_bprop(cell, a, k)  # noqa: E731
    if cell._recompute:
        inner = run
        run = lambda *a, **k: run_again(inner, cell, *a, **k)  # noqa: E731
    if cell._float_type is not None:
        target, uncast = cell._float_type, run
        run = lambda *a, **k: _run_cast(cell, target, uncast, a, k)  # noqa: E731
    if not hooked:
        return run(*args, **kwargs)

    def inside(*a: object, **k: object) -> object:
        """Run the Cell's compiled graph if the compiler returns a result for it, else `construct`.

        In the second case `construct` runs within the Cell's other wrappers, such as casts.
        """
        found = runtime_state.load_compiler().graph_call(cell, a, k) if compiled else NotImplemented
        return run(*a, **k) if found is NotImplemented else found

    return _hooks.call_with_hooks(cell, args, kwargs, inside)


def refuse_operand(
    cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], error: Exception
) -> None:
    """Raise ArgumentError if a layer of the library failed because an input is no Tensor.

    `error` is what the failed call raised. Errors in a user's own Cell, and errors whose message
    names the cause already, are not replaced: the function then returns and the caller raises
    `error`.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if isinstance(error, TypeError):
        _count_inputs(cell, args, kwargs, error)
        _wanted_loss(cell, error)
    own = at is not None and _is_ours(at.tb_frame.f_globals.get("__name__"))
    if (
        own
        and not isinstance(error, DuographError)
        and _is_ours(getattr(cell.construct, "__module__", ""))
    ):
        try:
            call_cache.refuse_operand(type(cell).__name__, cell.construct, args, kwargs, error)
        except ArgumentError as refused:
            name_cell(refused, cell)
            raise


def _count_inputs(
    cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], error: TypeError
) -> None:
    """Name the inputs of `construct` in Python's error about a wrong number of arguments.

    `error` is changed in place. Errors from other calls are left alone.
    """
    said = str(error)
    whole = getattr(cell.construct, "__qualname__", "")
    if not said.startswith((f"{whole}() ", "construct() ")) or "; its inputs " in said:
        return
    try:
        inspect.signature(cell.construct).bind(*args, **kwargs)
    except TypeError:
        said = said.replace("construct()", f"{whole}()", said.startswith("construct()"))
    else:
        return  # another Cell's, that this one calls
    function = getattr(cell.construct, "__func__", None)
    names = list(inspect.signature(function).parameters) if function is not None else []
    if names and names[0] not in ("self", "cls") and " but " in said:
        error.args = (f"{said}; its inputs come after self: construct(self, {', '.join(names)})",)
    elif names:
        told = said.replace(" were given", " were given, self included")
        error.args = (f"{told}; its inputs are ({', '.join(names[1:])})",)


def without_super(kind: type[Cell]) -> str:
    """Return the message for a Cell whose `__init__` did not call that of its base class."""
    init = next((vars(c)["__init__"] for c in kind.__mro__ if "__init__" in vars(c)), None)
    code = getattr(init, "__code__", None)
    place = f" ({short(code.co_filename)}:{code.co_firstlineno})" if code else ""
    return (
        f"{kind.__name__}: its __init__{place} did not call super().__init__(); write this call as "
        "the first line of __init__"
    )


def _wanted_loss(cell: Cell, error: TypeError) -> None:
    """Add advice to an error from calling a wrapper Cell whose network lacks a loss.

    A wrapper such as `TrainOneStepCell` passes its inputs to a network that must return the loss.
    If `error` says that this network got a wrong number of inputs, its message then also advises to
    wrap the network in `nn.WithLossCell`. Other errors are not changed.
    """
    said = str(error)
    if cell.call_role != WRAPPER or "; its inputs are (" not in said or " wrap it" in said:
        return
    if not said.startswith((type(cell).__name__, "WithLossCell", "WithEvalCell")):
        error.args = (
            f"{said}. {type(cell).__name__} passes its inputs to the network, which returns the "
            "loss; for a network without a loss wrap it: nn.WithLossCell(net, loss_fn)",
        )


def _is_ours(module: object) -> bool:
    return str(module).split(".")[0] == "duograph"


def _run_cast(
    cell: Cell,
    target: DType,
    run: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Any:
    """Call `run` with floating inputs and the Cell's trainable Parameters cast to `target`.

    The Cell's attributes are the cast Parameters only during the call.
    """
    kept: dict[str, Parameter] = {}
    for name, p in cell._params.items():
        if p is not None and p.requires_grad and p.dtype.is_floating and p.dtype is not target:
            kept[name] = p
            cell.__dict__[name] = p.astype(target)
    try:
        return run(*cast_floating(args, target), **cast_floating(kwargs, target))
    finally:
        cell.__dict__.update(kept)


def cast_floating(value: object, target: DType) -> Any:
    """Cast the floating Tensors of nested tuples, lists and dictionaries to the dtype `target`."""
    if isinstance(value, Tensor):
        return (
            value.astype(target) if value.dtype.is_floating and value.dtype is not target else value
        )
    if isinstance(value, (tuple, list)):
        return rebuilt(value, [cast_floating(v, target) for v in value])
    if isinstance(value, dict):
        return {k: cast_floating(v, target) for k, v in value.items()}
    return value
