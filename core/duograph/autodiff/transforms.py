"""Functions of functions: grad, value_and_grad, vjp, jvp and GradOperation, over the tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..backend import registry
from ..errors import ArgumentError, ArgumentValueError, GradientError, ShapeError
from ..ir.basic_ops import cast_to, fill, zeros_of
from ..parameter import Parameter
from ..runtime_state import runtime_state, staged_builder, thread_state
from ..tensor import Tensor, commit
from .tape import Leaf, Node, PythonPlan, backward, edge_of, handle_of, next_sequence, recording

__all__ = ["grad", "value_and_grad", "vjp", "jvp", "GradOperation"]


# ---- structures ---------------------------------------------------------------------------------


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors of a nest of tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_of(v)


def mapped(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """The same nest with every tensor replaced."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        items = [mapped(v, function) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [mapped(v, function) for v in value]
    if isinstance(value, dict):
        return {k: mapped(v, function) for k, v in value.items()}
    return value


def detached(t: Tensor) -> Tensor:
    """The same value, recorded by nobody."""
    type_ = t._type
    if not type_.level and type(t) is Tensor:
        return t
    if type_.device is None:
        return t
    return Tensor._make(type_.on(type_.device), t._buf)


# ---- one derivative -----------------------------------------------------------------------------


class _Recorded:
    """What a forward run under the tape left: output tensors with edges, leaves, where it started."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.leaves: list[Any] = []
        self.leaf_types: list[Any] = []
        self.outputs: list[Tensor] = []
        self.result: Any = None

    def add_leaf(self, edge: Any, type_: Any) -> None:
        self.leaves.append(edge)
        self.leaf_types.append(type_)

    def pull(self, seeds: Sequence[Tensor | None]) -> list[Tensor]:
        """Gradients of the leaves for these cotangents of the outputs (None: ones)."""
        create_graph = thread_state.derivative_depth >= 1
        pairs = []
        for out, seed in zip(self.outputs, seeds, strict=True):
            type_ = out._type
            if not type_.level:
                continue
            cot = ones_of(out) if seed is None else seed
            if create_graph:
                if cot._type.device is None:
                    commit(cot, type_.place)
                if cot._type.dtype is not type_.dtype:
                    cot = cast_to(cot, type_.dtype)
                pairs.append((out._edge, cot))
            else:
                pairs.append((out._edge, handle_of(cot, type_)))
        found = backward(pairs, self.leaves, create_graph, self.start)
        result = []
        for value, type_ in zip(found, self.leaf_types, strict=True):
            plain = type_.on(type_.device)
            if value is None:
                value = zeros_of(plain)
                if value._type.device is not plain.device:
                    value = value.move_to(repr(plain.device))
                result.append(value)
            else:
                result.append(value if create_graph else Tensor._make(plain, value))
        return result


def ones_of(out: Tensor) -> Tensor:
    one: Any = True if out._type.dtype.kind == "b" else 1
    made = fill(out._type.shape, one, out._type.dtype)
    if made._type.device is not out._type.device:
        made = made.move_to(repr(out._type.device))
    return made


def _alias(t: Tensor, level: int) -> Tensor:
    """A recorded second name of `t`, from which a derivative starts."""
    if t._type.device is None:
        commit(t, registry.current_device())
    type_ = t._type
    made = Tensor._make(type_.on(type_.device, level), t._buf)
    made._edge = _start_edge(t)
    hooks = getattr(t, "_hooks", None)
    if hooks and not type_.level:
        made._edge.hooks = hooks
    return made


def _start_edge(t: Tensor) -> Any:
    type_ = t._type
    if (
        type_.level and runtime_state.derivatives > 1
    ):  # an outer derivative records it: stay joined to that one
        plan = PythonPlan(
            lambda create_graph, dout: (dout,),
            (type_.plain,),
            (type_.plain,),
            type_.place,
            "alias",
        )
        return Node(plan, (edge_of(t),), (), True)
    return Leaf(type_.on(type_.device))


@contextmanager
def _recorded_weights(weights: Sequence[Parameter], level: int) -> Iterator[list[Any]]:
    """Parameters as leaves while the forward runs; yields their edges."""
    edges: list[Any] = []
    before: list[tuple[Parameter, Any, Any]] = []
    try:
        for p in weights:
            if p._type.device is None:
                commit(p, registry.current_device())
            old_type = p._type
            old_edge = getattr(p, "_edge", None)
            nested = old_type.level and level > 1
            if nested:
                edge = _start_edge(p)
            else:
                edge = p.__dict__.get("_leaf")
                if edge is None or edge.type.plain is not old_type.plain:
                    edge = p.__dict__["_leaf"] = Leaf(old_type.on(old_type.device))
                    edge.hooks = getattr(p, "_hooks", None)
                edge.seq = next_sequence()  # part of this derivative
                if hasattr(p, "_hooks"):
                    edge.hooks = p._hooks
                p._recording += 1
            before.append((p, old_type if nested else None, old_edge))
            p._edge = edge
            p._type = old_type.on(old_type.device, level)
            runtime_state.bindings_version = object()
            edges.append(edge)
        yield edges
    finally:
        for (p, outer_type, outer_edge), edge in zip(before, edges, strict=False):
            if outer_type is not None:
                if p._edge is edge:
                    p._type, p._edge = outer_type, outer_edge
                    runtime_state.bindings_version = object()
                continue
            p._recording -= 1
            if p._recording == 0:
                p._type = p._type.on(p._type.device)
                runtime_state.bindings_version = object()
                if hasattr(p, "_edge"):
                    del p._edge


def _record(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    positions: Sequence[int],
    weights: Sequence[Parameter],
    has_aux: bool,
) -> _Recorded:
    """Run `fn` with the chosen inputs and weights recorded."""
    builder = staged_builder()
    if builder is not None:  # inside compiled code the derivative is part of the graph
        recorded: Any = builder.evaluation.record(fn, args, kwargs, positions, weights, has_aux)
        return recorded
    start = next_sequence()
    run = _Recorded(start)
    with recording() as d:
        level = 1 if d == 1 else 2
        given = list(args)
        for i in positions:

            def enter(t: Tensor) -> Tensor:
                made = _alias(t, level)
                run.add_leaf(made._edge, made._type)
                return made

            given[i] = mapped(given[i], enter)
        with _recorded_weights(weights, level) as edges:
            for p, edge in zip(weights, edges, strict=True):
                run.add_leaf(edge, p._type)
            result = fn(*given, **kwargs)
            main = result
            if has_aux:
                if not isinstance(result, tuple) or len(result) < 2:
                    raise ArgumentError(
                        f"has_aux: got {type(result).__name__} from the function; wanted a tuple "
                        f"of the value to differentiate and at least one more item"
                    )
                main = result[0]
            # a parameter that is returned loses its edge below: keep what it is now
            run.outputs = [as_result(t) for t in tensors_of(main)]
            if not run.outputs:
                raise GradientError(
                    f"grad: the function returned {type(main).__name__} without a Tensor; "
                    f"wanted at least one Tensor to differentiate"
                )
            outermost = d == 1
            run.result = mapped(result, detached) if outermost else result
    return run


def as_result(t: Tensor) -> Tensor:
    made = Tensor._make(t._type, t._buf)
    if t._type.level:
        made._edge = t._edge
    elif t._type.device is None:
        commit(t, registry.current_device())
        made = Tensor._make(t._type, t._buf)
    return made


# ---- public functions ---------------------------------------------------------------------------


def _positions(grad_position: Any) -> tuple[tuple[int, ...], bool]:
    """Positions as a tuple, and whether one bare gradient was asked for."""
    if grad_position is None:
        return (), False
    if isinstance(grad_position, bool) or not isinstance(grad_position, (int, tuple, list)):
        raise ArgumentError(
            f"grad: got grad_position={grad_position!r}; wanted an int, a tuple of ints or None"
        )
    found = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)
    for i in found:
        if isinstance(i, bool) or not isinstance(i, int):
            raise ArgumentError(f"grad: got {i!r} in grad_position; wanted ints")
        if i < 0:
            raise ArgumentValueError(f"grad: got grad_position {i}; wanted 0 or more")
    if len(set(found)) != len(found):
        raise ArgumentValueError(f"grad: got grad_position={grad_position!r} with one twice")
    return found, isinstance(grad_position, int)


def _weights(weights: Any) -> tuple[list[Parameter], bool]:
    """Weights as a list, and whether one bare Parameter was given."""
    if weights is None:
        return [], False
    if isinstance(weights, Parameter):
        return [weights], True
    try:
        found = list(weights)
    except TypeError:
        found = [weights]  # refused below
    for w in found:
        if not isinstance(w, Parameter):
            raise ArgumentError(
                f"grad: got {type(w).__name__} among the weights; wanted Parameters"
            )
    return found, False


def _check_callable(name: str, fn: Any) -> None:
    if not callable(fn):
        raise ArgumentError(f"{name}: got {type(fn).__name__}; wanted a function or a Cell")


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """A function that returns the value of `fn` and its gradient (`mindspore.value_and_grad`).

    Args:
        fn: a function or Cell returning Tensors. Several are differentiated as their sum.
        grad_position: which inputs: an int gives one gradient, a tuple a tuple, None none.
        weights: Parameter, or list or ParameterTuple of them: gradients with respect to these as
        well.
        has_aux: only the first item of the result is differentiated; the others are passed on.
        return_ids: pair each gradient with its position or the parameter's name.
        sens_param: the last argument of the returned function is the cotangent of the result
        instead of ones.

    Returns:
        A function of the arguments of `fn` that returns (value, gradients): gradients of the
        inputs, of the weights, or the pair of both when both were asked for.

    Raises:
        ValueError: neither inputs nor weights were asked for.

    Examples:
        >>> import duograph as ms
        >>> ms.value_and_grad(lambda x: x * x)(ms.Tensor(3.0))
        (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 6))
    """
    _check_callable("value_and_grad", fn)
    positions, single = _positions(grad_position)
    params, one_weight = _weights(weights)
    if not positions and weights is None:
        raise ArgumentValueError(
            "value_and_grad: got grad_position=None and weights=None; wanted at least one of them"
        )

    def run(*args: Any, **kwargs: Any) -> Any:
        sens = None
        if sens_param:
            if not args:
                raise ArgumentError(
                    "grad: got no arguments with sens_param=True; wanted the cotangent of the "
                    "result as the last one"
                )
            *args, sens = args  # type: ignore[assignment]
        for i in positions:
            if i >= len(args):
                raise ArgumentValueError(
                    f"grad: got grad_position {i} and {len(args)} positional arguments; "
                    f"wanted a position below {len(args)}"
                )
        recorded = _record(fn, args, kwargs, positions, params, has_aux)
        found = recorded.pull(_seeds(recorded.outputs, sens))
        n_inputs = len(found) - len(params)
        inputs = iter(found[:n_inputs])
        by_position = []
        for i in positions:
            if any(True for _ in tensors_of(args[i])):
                g = mapped(args[i], lambda _: next(inputs))
                by_position.append((i, g) if return_ids else g)
        by_weight: list[Any] = found[n_inputs:]
        if return_ids:
            by_weight = [(p.name, g) for p, g in zip(params, by_weight, strict=True)]
        of_inputs: Any = None
        if positions:
            if single and not by_position:
                raise GradientError(
                    f"grad: argument {positions[0]} is {type(args[positions[0]]).__name__}; "
                    f"wanted a Tensor to differentiate with respect to"
                )
            of_inputs = by_position[0] if single else tuple(by_position)
        of_weights: Any = by_weight[0] if one_weight else tuple(by_weight)
        if weights is None:
            grads = of_inputs
        elif not positions:
            grads = of_weights
        else:
            grads = (of_inputs, of_weights)
        return recorded.result, grads

    return run


def _seeds(outputs: Sequence[Tensor], sens: Any) -> list[Tensor | None]:
    if sens is None:
        return [None] * len(outputs)
    if isinstance(sens, (int, float, np.ndarray, np.generic)):
        sens = Tensor(sens)
    given = list(tensors_of(sens))
    if len(given) != len(outputs):
        what = f"{len(given)} Tensors as" if given else f"{type(sens).__name__} without a Tensor as"
        raise ArgumentError(
            f"grad: got {what} cotangents of {len(outputs)} results; wanted one Tensor each"
        )
    seeds: list[Tensor | None] = []
    for s, out in zip(given, outputs, strict=True):
        if s.shape != out.shape:
            if s.size != 1:
                raise ShapeError(
                    f"grad: got a cotangent of shape {s.shape} for a result of shape {out.shape}; "
                    f"wanted the result's shape"
                )
            s = ones_of(out) * s
        seeds.append(s)
    return seeds


def grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """A function that returns the gradient of `fn` (`mindspore.grad`); arguments as
    `value_and_grad`.

    With `has_aux` it returns (gradients, aux...).

    Examples:
        >>> import duograph as ms
        >>> cube = lambda x: x * x * x
        >>> ms.grad(ms.grad(cube))(ms.Tensor(2.0))
        Tensor(shape=[], dtype=Float32, value= 12)
    """
    _check_callable("grad", fn)
    if grad_position is None and weights is None:
        raise ArgumentValueError(
            "grad: got grad_position=None and weights=None; wanted at least one of them"
        )
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids, sens_param)

    def run(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        if has_aux:
            aux = value[1:]
            return grads, aux[0] if len(aux) == 1 else tuple(aux)
        return grads

    return run


def vjp(
    fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False
) -> tuple[Any, ...]:
    """Value of `fn` and its pullback (`mindspore.vjp`).

    Args:
        fn: function or Cell.
        inputs: its arguments; tensors among them are differentiated.
        weights: Parameters to differentiate with respect to as well.
        has_aux: the first item of the result is differentiated; the rest is returned as it is.

    Returns:
        (value, pullback), or (value, pullback, aux) with `has_aux`. `pullback(*cotangents)` gives
        the cotangents of the inputs (one bare for one input; with weights the pair of both tuples)
        and may be called again.

    Examples:
        >>> import duograph as ms
        >>> value, pull = ms.vjp(lambda x, y: x * y, ms.Tensor(2.0), ms.Tensor(3.0))
        >>> pull(ms.Tensor(1.0))
        (Tensor(shape=[], dtype=Float32, value= 3), Tensor(shape=[], dtype=Float32, value= 2))
    """
    _check_callable("vjp", fn)
    params, one_weight = _weights(weights)
    positions = [i for i, x in enumerate(inputs) if any(True for _ in tensors_of(x))]
    if not positions and weights is None:
        raise ArgumentError("vjp: got no Tensor among the inputs; wanted at least one, or weights")
    recorded = _record(fn, inputs, {}, positions, params, has_aux)

    def pullback(*cotangents: Any) -> Any:
        found = recorded.pull(_seeds(recorded.outputs, cotangents))
        n_inputs = len(found) - len(params)
        items = iter(found[:n_inputs])
        of_inputs = tuple(mapped(inputs[i], lambda _: next(items)) for i in positions)
        shown: Any = of_inputs[0] if len(of_inputs) == 1 else of_inputs
        if weights is None:
            return shown
        of_weights: Any = found[n_inputs] if one_weight else tuple(found[n_inputs:])
        return (shown, of_weights) if positions else of_weights

    value = recorded.result
    if has_aux:
        rest = value[1:]
        return value[0], pullback, rest[0] if len(rest) == 1 else tuple(rest)
    return value, pullback


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of `fn` and its derivative in the direction `v` (`mindspore.jvp`).

    It is the vjp of the vjp: the pullback is linear in its cotangent, so pulling `v` back through
    it gives the push-forward.

    Args:
        fn: function or Cell.
        inputs: a Tensor, or a tuple of them.
        v: directions, as `inputs`.
        has_aux: as in `vjp`.

    Returns:
        (value, tangent), or (value, tangent, aux).

    Examples:
        >>> import duograph as ms
        >>> ms.jvp(lambda x: x * x, ms.Tensor(3.0), ms.Tensor(1.0))[1]
        Tensor(shape=[], dtype=Float32, value= 6)
    """
    _check_callable("jvp", fn)
    args = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    directions = v if isinstance(v, (tuple, list)) else (v,)
    if len(args) != len(directions):
        raise ArgumentError(
            f"jvp: got {len(args)} inputs and {len(directions)} directions; wanted one each"
        )
    for x, d in zip(args, directions, strict=True):
        if not isinstance(x, Tensor) or not isinstance(d, Tensor):
            raise ArgumentError(
                f"jvp: got {type(x).__name__} and its direction {type(d).__name__}; wanted Tensors"
            )
        if x.shape != d.shape:
            raise ShapeError(
                f"jvp: got an input of shape {x.shape} and a direction of shape {d.shape}; "
                f"wanted the same"
            )
    kept: list[Any] = []

    def pulled(*cotangents: Any) -> Any:
        found = vjp(fn, *args, has_aux=has_aux)
        kept.append(found)
        return found[1](*cotangents)

    first = vjp(fn, *args, has_aux=has_aux)
    outputs = list(tensors_of(first[0]))
    zeros = [ones_of(t) * 0 for t in outputs]
    _, push = vjp(pulled, *zeros)
    tangents = push(*directions)
    items = iter(tangents if isinstance(tangents, tuple) else (tangents,))
    tangent = mapped(first[0], lambda _: next(items))
    return (first[0], tangent, *first[2:])


class GradOperation:
    """Gradient as a higher-order object (`mindspore.ops.GradOperation`).

    Args:
        get_all: gradients of all inputs as a tuple; else of the first input, bare.
        get_by_list: gradients of parameters, given as the second argument when it is applied.
        sens_param: the last argument of the gradient function is the cotangent of the result.

    Tensors are differentiated, other inputs are skipped. With both options the result is
    ((inputs...), (parameters...)).

    Examples:
        >>> import duograph as ms
        >>> f = lambda x, y: x * y
        >>> ms.ops.GradOperation(get_all=True)(f)(ms.Tensor(2.0), ms.Tensor(3.0))
        (Tensor(shape=[], dtype=Float32, value= 3), Tensor(shape=[], dtype=Float32, value= 2))
    """

    def __init__(
        self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        for key, value in (
            ("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param),
        ):  # fmt: skip
            if not isinstance(value, bool):
                raise ArgumentError(f"GradOperation: got {key}={value!r}; wanted True or False")
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        _check_callable("GradOperation", fn)
        if self.get_by_list and weights is None:
            own = getattr(fn, "trainable_params", None)
            if own is None:
                raise ArgumentError(
                    "GradOperation: got get_by_list=True without weights; wanted a ParameterTuple "
                    "as the second argument"
                )
            weights = own()

        def run(*args: Any, **kwargs: Any) -> Any:
            n = len(args) - (1 if self.sens_param else 0)
            tensors = tuple(i for i in range(n) if any(True for _ in tensors_of(args[i])))
            position: Any
            if self.get_all:
                position = tensors
            elif self.get_by_list:
                position = None
            else:
                position = tensors[0] if tensors else 0
            chosen = weights if self.get_by_list else None
            return grad(fn, position, chosen, sens_param=self.sens_param)(*args, **kwargs)

        return run
