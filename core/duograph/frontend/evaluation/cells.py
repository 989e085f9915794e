"""Evaluates calls of Cells: their hooks, `construct`, custom `bprop`, and casts.

`calls` and `evaluator` call this module. A Cell's `construct` is evaluated like any function, and
so are the forward hooks of Cells inside the outermost one; those of the outermost Cell run in
Python, before and after the compiled call. A backward hook of an inner Cell needs gradients, which
the graph does not compute; a function that calls a Cell with such a hook runs uncompiled. New
Parameters are refused, because compiled code cannot create state.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...call_errors import refuse_data
from ...call_names import Link, key_of, name_cell
from ...errors import DuographError, RefusedError, UnsupportedSyntaxError
from ...ir.values import GraphObject
from ...nn import _tree
from ...nn._calls import cast_floating, refuse_operand, without_super
from ...nn._hooks import FORWARD, FORWARD_KW, PRE, PRE_KW, check_hook
from ...nn.cell import Cell
from ...op import Op
from ...parameter import Parameter
from ...runtime_state import without_builder
from ..libraries import in_classes, is_framework, is_user_function
from ..state.captures import entries_of, hooks_of
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.nested import depends_on_graph
from .custom_bprops import call_with_bprop
from .dispatch import call, calls
from .spans import inside_call, internal_span


def no_hooks(construct: str) -> RefusedError:
    """Return the error for a hook that compiled code registers on a Cell or Tensor.

    `construct` is the name of the registering method or class, for the message.
    """
    return RefusedError(
        f"{construct}: hooks inside jit are not supported: a compiled function cannot call them",
        construct=construct,
        remedy="Use it outside the compiled function, or run the function line by line",
    )


# Methods of Cells and of containers of Cells that change the Cell.
_CELL_MUTATORS = {
    "add_flags", "add_flags_recursive", "append", "clear", "extend", "init_parameters_data",
    "insert", "insert_child_to_cell", "insert_param_to_cell", "load_state_dict", "pop", "recompute",
    "register_buffer", "set_inputs", "set_jit_config", "shard", "to_float", "update",
    "update_parameters_name",
}  # fmt: skip
_FLAGS = {"set_train": "training", "set_grad": "requires_grad"}


def check_changes_no_cell(
    ev: Evaluation, cell: Cell, method: str, args: Args, kwargs: Kwargs
) -> None:
    """Raise if tracing a framework method would change a Cell made outside the compiled function.

    `method` is the name of the method of `cell` that the traced code calls.
    Setting a flag to the value that it already has is allowed, such as `set_train(True)` for a Cell
    in training.

    Raises:
        UnsupportedSyntaxError: the method would change the Cell.
    """
    if id(cell) in ev.owned.objects:
        return
    flag = _FLAGS.get(method)
    if flag is not None:
        wanted = [*args, *kwargs.values(), True][0]
        cells = [c for _, c in _tree.walk_cells(cell)] if flag == "training" else [cell]
        for c in cells:
            present = getattr(c, flag)
            ev.captures.add("attribute", c, flag, present, f"{type(c).__name__}.{flag}", exact=True)
        if all(getattr(c, flag) is wanted for c in cells):
            return
    elif method not in _CELL_MUTATORS:
        return
    raise UnsupportedSyntaxError(
        f"{method}: got a change of a {type(cell).__name__} inside jit, which would happen while "
        "compiling",
        construct=method,
        remedy="Call it outside the compiled function",
    )


def make_cell(ev: Evaluation, cls: Value, args: Args, kwargs: Kwargs) -> Value:
    """Construct a Cell of class `cls` at compile time and return it.

    An `__init__` that the user wrote is evaluated.

    Raises:
        UnsupportedSyntaxError: the Cell has Parameters, or an argument is known only at run time.
    """
    if depends_on_graph(args) or depends_on_graph(kwargs):
        if is_framework(cls.__module__):
            refuse_data(cls, args, kwargs)
        raise UnsupportedSyntaxError(
            f"{cls.__name__}: got an argument that is known only when the compiled function runs",
            construct=cls.__name__,
            remedy="Make the Cell in __init__, outside the compiled function",
        )
    for name in ("__new__", "__init__"):
        ev.captures.class_attribute(cls, name)
    if is_user_function(cls.__init__) and not is_user_function(cls.__new__):
        made = ev.owned.add(cls.__new__(cls))
        call(ev, cls.__init__, (made, *args), kwargs)
    else:
        with without_builder():
            made = cls(*args, **kwargs)
    own = next(made.get_parameters(), None)
    if own is not None:
        raise UnsupportedSyntaxError(
            f"{cls.__name__}: got a layer with Parameters ({own.name}) made inside jit",
            construct=cls.__name__,
            remedy="Make it outside, in __init__ or before the function, and call it inside",
        )
    ev.owned.add(made)
    ev.keep.append(made)
    return made


def capture_attributes(ev: Evaluation, cell: Cell) -> None:
    """Record all public attributes of a framework Cell as constants to compare before each call."""
    if (
        not is_framework(type(cell).__module__)
        or id(cell) in ev.owned.objects
        or id(cell) in ev.captures.cells
    ):
        return
    ev.captures.cells[id(cell)] = cell
    name = type(cell).__name__
    for key, value in cell.__dict__.items():
        if key.startswith("_") or isinstance(value, Op):
            continue
        exact = isinstance(value, (Parameter, Cell)) or key in ("training", "requires_grad")
        ev.captures.add("attribute", cell, key, value, f"{name}.{key}", exact=exact)
        for group in (value, *value) if key == "param_groups" else ():  # an optimiser has these
            ev.captures.add("entries", group, None, entries_of(group), f"{name}.{key}", exact=True)
    for i, child in enumerate(cell._cells.values()):
        if child is not None and str(i) in cell._cells:
            ev.captures.add("attribute", cell, str(i), child, f"{name}[{i}]", exact=True)


def capture_asked(ev: Evaluation, cell: Cell, method: str) -> None:
    """Record what a method of the framework reads of a Cell: its options, or buffers in its tree.

    `method` is the name of the method that is about to be called.
    """
    name = type(cell).__name__
    if method == "get_flags":
        ev.captures.add("entries", cell._flags, None, entries_of(cell._flags), f"flags of {name}")
    if method in ("buffers", "named_buffers", "state_dict"):
        for _, each in _tree.walk_cells(cell):
            held: Value = each._buffers
            label = f"buffers of {type(each).__name__}"
            ev.captures.add("entries", held, None, entries_of(held), label)


@calls(Cell)
def call_cell(
    ev: Evaluation, cell: Cell, args: Args, kwargs: Kwargs, through_super: bool = False
) -> Value:
    """Trace a call of a Cell and return its result: its `construct`, or its own `bprop`.

    The Cell's members and hooks are recorded as constants, to compare before each later call. Hooks
    of the outermost Cell are not traced, because they run around the compiled function. If the
    user's class of another Cell defines `__call__`, that method is traced in place of `construct`,
    unless the method itself made this call through `super()`.

    Args:
        ev: the evaluation.
        cell: the Cell.
        args, kwargs: the arguments.
        through_super: whether the call is `super().__call__(...)`.

    Raises:
        UnsupportedSyntaxError: a Cell inside the outermost one has hooks that compiled code cannot
            run.
    """
    if "_params" not in cell.__dict__:
        raise AttributeError(without_super(type(cell)))
    inside = bool(ev.calls.frames) or bool(ev.calls.open_cells)
    if inside:
        ev.captures.class_attribute(type(cell), "__call__")
        own = in_classes(type(cell), "__call__")  # the user's, also if given to a class of ours
        if is_user_function(own) and not through_super:
            return call(ev, own, (cell, *args), kwargs)
        label = f"hooks of {type(cell).__name__}"
        ev.captures.add("hooks", cell, None, hooks_of(cell), label, exact=True)
    if id(cell) not in ev.owned.objects:
        ev.captures.members(cell)
    outer = ev.calls.open_cells[-1] if ev.calls.open_cells else None
    key = "" if outer is None else key_of(outer._cells, id(cell))
    ev.calls.open_cells.append(cell)
    stage = ev.calls.stage
    if cell._pipeline_stage is not None:
        ev.calls.stage = cell._pipeline_stage
    span = ev.builder.span
    if span is None and (ev.calls.stage is not None or ev.calls.part is not None):
        ev.builder.span = internal_span(cell)
    try:
        with inside_call(ev, Link(type(cell).__name__, cell.call_role, key)):
            if inside:
                return _call_with_hooks(ev, cell, args, kwargs)
            return _call_construct(ev, cell, args, kwargs)
    except DuographError as error:
        name_cell(error, cell)
        raise
    except (AttributeError, TypeError) as error:
        refuse_operand(cell, args, kwargs, error)
        raise
    finally:
        ev.calls.open_cells.pop()
        ev.calls.stage = stage
        ev.builder.span = span


def _call_with_hooks(ev: Evaluation, cell: Cell, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of a Cell between its forward hooks; return the result.

    The rules are those of `nn._hooks`, which calls the hooks in uncompiled code.

    Raises:
        UnsupportedSyntaxError: the Cell has backward hooks, or hooks that must run after an error.
    """
    backward = cell._backward_hooks or cell._backward_pre_hooks
    if backward or cell._forward_hooks_always:
        raise UnsupportedSyntaxError(
            f"{type(cell).__name__}: got a Cell with "
            f"{'backward hooks' if backward else 'hooks registered with always_call=True'} inside "
            "jit; a compiled function cannot call these hooks",
            construct="hook",
            remedy="Remove the hooks, or run the Cell line by line (PYNATIVE_MODE, without jit)",
        )
    for hook, with_kwargs in list(cell._forward_pre_hooks.values()):
        given = (cell, args, ev.owned.add(dict(kwargs))) if with_kwargs else (cell, args)
        changed = _hook_result(ev, hook, PRE_KW if with_kwargs else PRE, given)
        if changed is not None and with_kwargs:
            args, kwargs = changed
        elif changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    output = _call_construct(ev, cell, args, kwargs)
    for hook, with_kwargs in list(cell._forward_hooks.values()):
        more = (ev.owned.add(dict(kwargs)),) if with_kwargs else ()
        given = (cell, args, *more, output)
        changed = _hook_result(ev, hook, FORWARD_KW if with_kwargs else FORWARD, given)
        if changed is not None:
            output = changed
    return output


def _hook_result(ev: Evaluation, hook: Value, form: str, given: Args) -> Value:
    """Trace a call of a hook; return its result: None, a Tensor or a tuple of Tensors.

    Args:
        ev: the evaluation.
        hook: the hook function of a Cell.
        form: how hooks of this kind are called, for messages: "register_forward_hook: hook(...)".
        given: the positional arguments of the call.

    Raises:
        ArgumentError: the hook does not take as many arguments as `given` has.
        UnsupportedSyntaxError: Python code computes the result when the graph runs, so that it is
            unknown while compiling whether the result is None.
    """
    try:
        changed = call(ev, hook, given, {})
    except TypeError as error:
        check_hook(hook, form, given, error)
        raise
    if isinstance(changed, GraphObject):
        raise UnsupportedSyntaxError(
            "hook: got a result that Python computes when the compiled function runs",
            construct="hook",
            remedy="Return a Tensor or None",
        )
    return changed


def _call_construct(ev: Evaluation, cell: Cell, args: Args, kwargs: Kwargs) -> Value:
    """Trace a Cell's `construct` or own `bprop`, and return the result.

    If the user set them for the Cell, the casts of `to_float` and the recomputation of `recompute`
    are applied to the call.
    """
    _tree.check_names(cell)
    capture_attributes(ev, cell)
    ev.captures.method(cell, "construct", cell.construct)
    run: Callable[..., Value] = lambda *a, **k: call(ev, cell.construct, a, k)  # noqa: E731
    ev.captures.class_attribute(type(cell), "bprop")
    if hasattr(type(cell), "bprop"):
        ev.captures.method(cell, "bprop", getattr(cell, "bprop"))  # noqa: B009
        run = lambda *a, **k: call_with_bprop(ev, cell, a, k)  # noqa: E731
    whole: Callable[[], Value] = functools.partial(run, *args, **kwargs)
    if cell._float_type is not None:
        whole = functools.partial(_run_cast, ev, cell, run, args, kwargs)
    return without_effects(ev, cell, whole) if cell._recompute else whole()


def without_effects(ev: Evaluation, cell: Cell, run: Callable[[], Value]) -> Value:
    """Trace a call of a recomputed Cell by calling `run`; raise if its Python code has effects.

    In uncompiled code, a derivative runs such a Cell twice, and its effects happen twice. In the
    graph, they would happen once.

    Raises:
        UnsupportedSyntaxError: Python code of the Cell has effects.
    """
    before = ev.python_effects
    found = run()
    if ev.python_effects > before:
        raise UnsupportedSyntaxError(
            f"{type(cell).__name__}: got effects of Python code inside jit in a Cell that is "
            "recomputed, which a derivative runs twice",
            construct="recompute",
            remedy="Move the effects out of the Cell, or call recompute() on a Cell inside it",
        )
    return found


def _run_cast(
    ev: Evaluation, cell: Cell, run: Callable[..., Value], args: Args, kwargs: Kwargs
) -> Value:
    """Trace a call of a Cell whose inputs and trainable Parameters are cast by `to_float`.

    The rule is the same as that of `nn._calls._run_cast`.

    Args:
        ev: the evaluation.
        cell: the Cell.
        run: function that calls the Cell with given arguments, and returns the result.
        args, kwargs: the arguments before the cast.
    """
    target = cell._float_type
    assert target is not None
    cast = []
    for name, p in cell._params.items():
        if p is not None and p.requires_grad and p.dtype.is_floating and p.dtype is not target:
            cast.append((("attribute", id(cell), name), name, p))
    if is_framework(type(cell).__module__):  # its code reads the attributes directly
        for _, name, p in cast:
            cell.__dict__[name] = p.astype(target)
        try:
            return run(*cast_floating(args, target), **cast_floating(kwargs, target))
        finally:
            for _, name, p in cast:
                cell.__dict__[name] = p
    for key, _, p in cast:
        ev.journal.set_item(ev.outside.values, key, p.astype(target))
    try:
        return run(*cast_floating(args, target), **cast_floating(kwargs, target))
    finally:
        for key, _, _ in cast:
            ev.journal.touch("item", ev.outside.values, key)
            ev.outside.values.pop(key, None)
