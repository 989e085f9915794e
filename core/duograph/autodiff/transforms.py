"""Function transforms of the public API: grad, value_and_grad, vjp, jvp and GradOperation.

They check arguments and arrange results; `recording` runs the function and computes gradients. The
same functions work inside a compiled function, where `recording` calls the front end. Nothing here
touches the tape itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, ArgumentValueError, GradientError, ShapeError
from ..parameter import Parameter
from ..runtime_state import staged_builder
from ..tensor import Tensor
from .pytrees import class_name, mapped, tensors_of
from .recording import Recording, differentiable_pullbacks, ones_of, record
from .rule_checks import install_vjp

__all__ = ["GradOperation", "grad", "jvp", "value_and_grad", "vjp"]

Position: TypeAlias = "int | Sequence[int] | None"
Weights: TypeAlias = "Parameter | Iterable[Parameter] | None"


def positions_of(grad_position: object, name: str = "grad") -> tuple[tuple[int, ...], bool]:
    """Return `grad_position` as a tuple of positions, and whether it was a single int.

    The result for None is (). `name` is the name of the public function, for messages.

    Raises:
        ArgumentError: `grad_position` is neither an int, nor a tuple or list of ints, nor None.
        ArgumentValueError: a position is negative or occurs twice.
    """
    if grad_position is None:
        return (), False
    if isinstance(grad_position, bool) or not isinstance(grad_position, (int, tuple, list)):
        raise ArgumentError(
            f"{name}: got grad_position={grad_position!r}; wanted an int, a tuple of ints or None"
        )
    found = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)
    for i in found:
        if isinstance(i, bool) or not isinstance(i, int):
            raise ArgumentError(f"{name}: got {i!r} in grad_position; wanted ints")
        if i < 0:
            raise ArgumentValueError(f"{name}: got grad_position {i}; wanted 0 or more")
    if len(set(found)) != len(found):
        raise ArgumentValueError(f"{name}: got grad_position={grad_position!r} with one twice")
    return found, isinstance(grad_position, int)


def _weights(weights: Weights, name: str = "grad") -> tuple[list[Parameter], bool]:
    """Return `weights` as a list of Parameters, and whether it was a single Parameter.

    The list is empty for None. `name` is the name of the public function, for messages.

    Raises:
        ArgumentError: an item is not a Parameter.
    """
    if weights is None:
        return [], False
    if isinstance(weights, Parameter):
        return [weights], True
    try:
        found = list(weights)
    except TypeError:
        found = [weights]  # type: ignore[list-item]  # refused below
    for w in found:
        if not isinstance(w, Parameter):
            builder = staged_builder()
            if builder is not None:
                builder.evaluation.ask_class(w, name)
            found_kind = "Tensor" if isinstance(w, Tensor) else type(w).__name__
            raise ArgumentError(
                f"{name}: got {found_kind} among the weights; wanted Parameters, such as "
                "net.trainable_params()"
            )
    return found, False


def _check_callable(name: str, fn: object) -> None:
    if not callable(fn):
        raise ArgumentError(f"{name}: got {type(fn).__name__}; wanted a function or a Cell")


def value_and_grad(
    fn: Callable[..., object],
    grad_position: Position = 0,
    weights: Weights = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes `fn` and its gradient (`mindspore.value_and_grad`).

    Args:
        fn: a function or Cell returning Tensors. Several are differentiated as their sum.
        grad_position: the inputs to differentiate by: an int for one gradient, a tuple for a tuple
            of gradients, None for none.
        weights: Parameter, or list or ParameterTuple of them, to differentiate by as well.
        has_aux: only the first item of the result is differentiated; the others are passed on.
        return_ids: pair each gradient with its position or the parameter's name.
        sens_param: the last argument of the returned function is the cotangent of the result;
            otherwise it is ones.

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
    return _value_and_grad(
        "value_and_grad", fn, grad_position, weights, has_aux, return_ids, sens_param
    )


def _value_and_grad(
    name: str,
    fn: Callable[..., Any],
    grad_position: Position,
    weights: Weights,
    has_aux: bool,
    return_ids: bool,
    sens_param: bool,
) -> Callable[..., Any]:
    """Return the function that `value_and_grad` returns for the same arguments.

    `name` is the name of the public function that the user called, for messages.
    """
    _check_callable(name, fn)
    positions, single = positions_of(grad_position, name)
    params, one_weight = _weights(weights, name)
    if not positions and weights is None:
        raise ArgumentValueError(
            f"{name}: got grad_position=None and weights=None; wanted at least one of them"
        )

    def run(*args: object, **kwargs: object) -> object:
        cotangent = None
        if sens_param:
            if not args:
                raise ArgumentError(
                    f"{name}: got no arguments with sens_param=True; wanted the cotangent of the "
                    "result as the last one"
                )
            args, cotangent = args[:-1], args[-1]
        for i in positions:
            if i >= len(args):
                raise ArgumentValueError(
                    f"{name}: got grad_position {i} and {len(args)} positional arguments; "
                    f"wanted a position below {len(args)}"
                )
        recorded = record(fn, args, kwargs, positions, params, has_aux)
        found = recorded.pull(_cotangents(recorded.outputs, cotangent, name))
        n_inputs = len(found) - len(params)
        by_weight: list[object] = list(found[n_inputs:])
        if return_ids:
            by_weight = [(p.name, g) for p, g in zip(params, by_weight, strict=True)]
        of_weights = by_weight[0] if one_weight else tuple(by_weight)
        if not positions:
            return recorded.result, of_weights
        by_position = _by_position(args, positions, iter(found[:n_inputs]), return_ids)
        if single and not by_position:
            raise GradientError(
                f"{name}: argument {positions[0]} is {type(args[positions[0]]).__name__}; "
                f"wanted a Tensor to differentiate with respect to (grad_position chooses the "
                "argument)"
            )
        of_inputs = by_position[0] if single else tuple(by_position)
        return recorded.result, of_inputs if weights is None else (of_inputs, of_weights)

    return run


def _by_position(
    args: Sequence[object], positions: Sequence[int], gradients: Iterator[Tensor], return_ids: bool
) -> list[object]:
    """Return the gradients of the arguments at `positions`.

    Each gradient is a nested structure of tensors like its argument. `gradients` yields one tensor
    for each tensor in these arguments. Arguments without tensors are left out. With `return_ids`
    each item is a pair (position, gradient).
    """
    found: list[object] = []
    for i in positions:
        if has_tensor(args[i]):
            gradient = mapped(args[i], lambda _: next(gradients))
            found.append((i, gradient) if return_ids else gradient)
    return found


def has_tensor(value: object) -> bool:
    """Return whether a pytree has a tensor among its leaves."""
    return any(True for _ in tensors_of(value))


def _cotangents(
    outputs: Sequence[Tensor], given: object, name: str = "grad"
) -> list[Tensor | None]:
    """Return the cotangents that the user passed, as a list with one item per output.

    If the user passed no cotangents, all items are None, which stands for tensors of ones. A
    cotangent of one element is broadcast to the shape of its output. `name` is the name of the
    public function, for messages.

    Raises:
        ArgumentError: the numbers of cotangents and outputs differ.
        ShapeError: the shapes of a cotangent and its output differ.
    """
    if given is None:
        return [None] * len(outputs)
    if isinstance(given, (int, float, np.ndarray, np.generic)):
        given = Tensor(given)
    tensors = list(tensors_of(given))
    if len(tensors) != len(outputs):
        what = (
            f"{len(tensors)} Tensors as"
            if tensors
            else f"{type(given).__name__} without a Tensor as"
        )
        raise ArgumentError(
            f"{name}: got {what} cotangents of {len(outputs)} results; wanted one Tensor each"
        )
    found: list[Tensor | None] = []
    for s, out in zip(tensors, outputs, strict=True):
        if s.shape != out.shape:
            if s.size != 1:
                raise ShapeError(
                    f"{name}: got a cotangent of shape {s.shape} for a result of shape "
                    f"{out.shape}; wanted the result's shape"
                )
            s = ones_of(out) * s
        found.append(s)
    return found


def grad(
    fn: Callable[..., object],
    grad_position: Position = 0,
    weights: Weights = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `fn` (`mindspore.grad`).

    The arguments are those of `value_and_grad`. With `has_aux` it returns (gradients, (aux, ...)).

    Examples:
        >>> import duograph as ms
        >>> cube = lambda x: x * x * x
        >>> ms.grad(ms.grad(cube))(ms.Tensor(2.0))
        Tensor(shape=[], dtype=Float32, value= 12)
    """
    both = _value_and_grad("grad", fn, grad_position, weights, has_aux, return_ids, sens_param)

    def run(*args: object, **kwargs: object) -> object:
        value, grads = both(*args, **kwargs)
        if has_aux:
            return grads, tuple(value[1:])
        return grads

    return run


def vjp(
    fn: Callable[..., object], *inputs: object, weights: Weights = None, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of `fn` and its pullback (`mindspore.vjp`).

    Args:
        fn: function or Cell. inputs: its arguments; tensors among them are differentiated. weights:
        Parameters to differentiate with respect to as well. has_aux: only the first item of the
        result is differentiated; the rest is returned unchanged.

    Returns:
        (value, pullback), or (value, pullback, aux) with `has_aux`. `pullback(*cotangents)` returns
        the cotangents of the inputs as a tuple, or the pair of that tuple and those of the
        weights. It may be called again.

    Examples:
        >>> import duograph as ms
        >>> value, pull = ms.vjp(lambda x, y: x * y, ms.Tensor(2.0), ms.Tensor(3.0))
        >>> pull(ms.Tensor(1.0))
        (Tensor(shape=[], dtype=Float32, value= 3), Tensor(shape=[], dtype=Float32, value= 2))
    """
    _check_callable("vjp", fn)
    params, one_weight = _weights(weights, "vjp")
    positions = [i for i, x in enumerate(inputs) if has_tensor(x)]
    if not positions and weights is None:
        raise ArgumentError("vjp: got no Tensor among the inputs; wanted at least one, or weights")
    recorded: Recording = record(fn, inputs, {}, positions, params, has_aux)

    def pullback(*cotangents: object) -> object:
        found = recorded.pull(_cotangents(recorded.outputs, cotangents, "vjp"))
        n_inputs = len(found) - len(params)
        items = iter(found[:n_inputs])
        of_inputs = tuple(mapped(inputs[i], lambda _: next(items)) for i in positions)
        if weights is None:
            return of_inputs
        of_weights: object = found[n_inputs] if one_weight else tuple(found[n_inputs:])
        return (of_inputs, of_weights) if positions else of_weights

    value = recorded.result
    if has_aux:
        rest = value[1:]
        return value[0], pullback, rest[0] if len(rest) == 1 else tuple(rest)
    return value, pullback


def jvp(
    fn: Callable[..., object], inputs: object, v: object, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of `fn` and its derivative in the direction `v` (`mindspore.jvp`).

    Computed as the vjp of the vjp: the pullback is linear in its cotangent, so its own pullback
    applied to `v` is the push-forward. `fn` is called once.

    Args:
        fn: function or Cell.
        inputs: a Tensor, or a tuple of them.
        v: the directions, one for each of `inputs`.
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
                f"jvp: got {class_name(x)} and its direction {class_name(d)}; wanted Tensors"
            )
        if x.shape != d.shape:
            raise ShapeError(
                f"jvp: got an input of shape {x.shape} and a direction of shape {d.shape}; "
                "wanted the same"
            )
    found, (push,) = linearized(fn, args, has_aux, [range(len(args))])
    items = iter(push(*directions))
    tangent = mapped(found[0], lambda _: next(items))
    return (found[0], tangent, *found[2:])


def linearized(
    fn: Callable[..., object],
    args: Sequence[object],
    has_aux: bool,
    choices: Sequence[Sequence[int]],
) -> tuple[tuple[Any, ...], list[Callable[..., tuple[Tensor, ...]]]]:
    """Return what `vjp(fn, *args)` returns, and push-forwards of `fn`, which is called once.

    There is one push-forward for each of `choices`, which are positions of arguments. It maps their
    tangents to one tangent per Tensor in the value; other arguments are constants.
    """
    with differentiable_pullbacks() as finished:
        found = vjp(fn, *args, has_aux=has_aux)
        zeros = [ones_of(t) * 0 for t in tensors_of(found[0])]

        def push_forward(positions: Sequence[int]) -> Callable[..., tuple[Tensor, ...]]:
            def pulled(*cotangents: object) -> object:
                of_args = found[1](*cotangents)
                return tuple([of_args[i] for i in positions])

            push: Callable[..., tuple[Tensor, ...]] = vjp(pulled, *zeros)[1]
            return push

        pushes = [push_forward(positions) for positions in choices]
    return finished(found), pushes


class GradOperation:
    """A gradient transform with options (`mindspore.ops.GradOperation`).

    Args:
        get_all: whether to return the gradients of all inputs, as a tuple; else that of the first.
        get_by_list: whether to return gradients of parameters, the second argument of a call.
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

    def __call__(self, fn: Callable[..., object], weights: Weights = None) -> Callable[..., Any]:
        _check_callable("GradOperation", fn)
        if self.get_by_list and weights is None:
            own = getattr(fn, "trainable_params", None)
            if own is None:
                raise ArgumentError(
                    "GradOperation: got get_by_list=True without weights; wanted a ParameterTuple "
                    "as the second argument"
                )
            weights = own()

        def run(*args: object, **kwargs: object) -> object:
            n = len(args) - (1 if self.sens_param else 0)
            tensors = tuple(i for i in range(n) if has_tensor(args[i]))
            position: Position
            if self.get_all:
                position = tensors
            elif self.get_by_list:
                position = None
            else:
                position = tensors[0] if tensors else 0
            chosen = weights if self.get_by_list else None
            return grad(fn, position, chosen, sens_param=self.sens_param)(*args, **kwargs)

        return run


install_vjp(vjp)
