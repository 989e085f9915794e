"""Checks of gradient rules that users and plugins register, in debug mode.

The reverse sweep calls `check_op` and `custom_gradient` calls `check_function`. The first use of a
rule with new operand types compares it with finite differences, at random values of small operands.
Rules of the framework's own ops are compared by the conformance suite instead. A check must leave
the tape and the random state unchanged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..backend import registry
from ..dtype import DType, complex128, float64
from ..errors import GradientError
from ..op import Op
from ..op_calls import dispatch
from ..placement import commit
from ..random_state import get_rng_state, set_rng_state
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import Device, HostType, TensorType, ValueType
from .finite_differences import Comparison, compare, precision_of, random_like

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["check_function", "check_op", "install_vjp"]

# vjp(function, *tensors) -> (value, pullback)
Vjp: TypeAlias = Callable[..., tuple[Any, ...]]

# The most elements of all operands with which a rule is checked; each costs two evaluations.
MOST_ELEMENTS = 1000
# Ranges of random operands; they are tried in turn until the function has a finite value.
_RANGES = ((0.2, 0.8), (1.2, 1.8), (-0.8, -0.2))

_checked: set[Hashable] = set()
_vjp: Vjp | None = None


def install_vjp(vjp: Vjp) -> None:
    """Set the function (`transforms.vjp`) with which the checks compute gradients.

    `transforms` calls this when it is imported, because this module must not import `transforms`.
    """
    global _vjp
    _vjp = vjp


def check_op(
    op: Op, operands: Sequence[ValueType | None], attributes: Mapping[str, object]
) -> None:
    """Compare an op's gradient rule with finite differences; raise an error if it is wrong.

    This is done once for each combination of operand types and attributes, and only if the operands
    have at most MOST_ELEMENTS elements in all.

    Args:
        op: the op, whose rule a user or plugin registered.
        operands: types of the operands; the check draws random values of these types.
        attributes: attributes of the op.

    Raises:
        GradientError: the gradient differs from the finite difference by more than the tolerance.
    """
    types = [t for t in operands if not isinstance(t, HostType)]
    key = (op, op.bprop_rule, runtime_state.rules_version, op.key(types, attributes))
    if key in _checked or sum(t.size for t in types if t is not None) > MOST_ELEMENTS:
        return

    def function(*operands: Tensor | None) -> object:
        return dispatch(op, operands, dict(attributes))

    found = _at_samples(key, function, types)
    if found is None or found.error <= 1:
        return
    names = [p.name for p in op.parameters if p.kind != "attribute"]
    name = names[min(found.operand, len(names) - 1)]
    which = f"{name}[{found.operand}]" if op.variadic else name
    raise GradientError(
        f"{op.name}: its gradient rule is wrong for the operand {which!r}: it gave {found} "
        "(set_context(debug=True) compares registered rules)"
    )


def check_function(
    name: str,
    rule: object,
    function: Callable[..., object],
    inputs: Sequence[object],
    n_checked: int | None = None,
) -> None:
    """Compare a user's `bprop` with finite differences of the function; warn if they differ.

    Each combination of a rule and input types is compared only once. Inputs with more than
    MOST_ELEMENTS elements in all are not compared. A difference is no error, because some rules
    deliberately differ from the derivative.

    Args:
        name: name of the function, for the warning.
        rule: the `bprop`, which identifies the check.
        function: the function with that `bprop`.
        inputs: the arguments of a call, Tensors and others; or their types, for random values.
        n_checked: how many of the first inputs the `bprop` has gradients for; None means all.
    """
    given = [x if isinstance(x, TensorType) else getattr(x, "_type", None) for x in inputs]
    types = [None if t is None else t.plain for t in given]
    key = (rule, tuple(types))
    if key in _checked or sum(t.size for t in types if t is not None) > MOST_ELEMENTS:
        return

    def with_others(*tensors: Tensor | None) -> object:
        return function(*[x if t is None else t for t, x in zip(tensors, inputs, strict=True)])

    at = None
    if not any(isinstance(x, TensorType) for x in inputs):
        at = [np.array(x._values()) if isinstance(x, Tensor) else None for x in inputs]
    found = _at_samples(key, with_others, types, at, n_checked)
    if found is not None and found.error > 1:
        warnings.warn(
            f"{name}: its bprop differs from the derivative by input {found.operand}: it gave "
            f"{found} (set_context(debug=True) compares them; ignore this if it is meant)",
            RuntimeWarning,
            stacklevel=2,
        )


def _at_samples(
    key: Hashable,
    function: Callable[..., object],
    types: Sequence[TensorType | None],
    at: Sequence[Array | None] | None = None,
    n_checked: int | None = None,
) -> Comparison | None:
    """Compare a function's gradient with finite differences at given or random values.

    The gradient is computed in float64 if the function and the device support it.

    Args:
        key: identifies the check in the set of finished checks.
        function: the function.
        types: types of its arguments; None for an argument that is not a tensor.
        at: the values of the arguments; None stands for random values.
        n_checked: how many of the first arguments are compared; None means all.

    Returns:
        the comparison of the element that differs most; None if at every set of values the function
            raises an error, has results that are not finite, or has nothing to differentiate.

    Raises:
        GradientError: raised by the function or its gradient rule.
    """
    device = registry.current_device()
    state = get_rng_state()
    before = thread_state.builder, thread_state.derivative_depth, thread_state.recorded_writes
    # the check is no part of the derivative, or the graph, that is being made
    thread_state.builder, thread_state.derivative_depth, thread_state.recorded_writes = None, 0, {}
    _checked.add(key)  # the check itself uses the rule
    right = False
    try:
        for wide in (True, False):
            for low, high in _RANGES:
                inputs = _drawn(types, low, high) if at is None else list(at)
                if wide:
                    inputs = [_widened(a, device) for a in inputs]
                try:
                    found = _compared(function, inputs, device, state, n_checked)
                except GradientError:
                    raise
                except Exception:  # noqa: BLE001 (code of the user's)
                    continue  # the function does not take these values, or this dtype
                if found is not None:
                    right = found.error <= 1
                    return found
        right = True  # the rule passed, or no values were found to check it at
    finally:
        if not right:
            _checked.discard(key)
        thread_state.builder, thread_state.derivative_depth, thread_state.recorded_writes = before
        set_rng_state(state)
    return None


def _drawn(types: Sequence[TensorType | None], low: float, high: float) -> list[Array | None]:
    """Return an array of each type: random floats between `low` and `high`, zeros, or True.

    Integer arrays consist of zeros, bool arrays of True. The item for a type None is None.
    """
    rng = np.random.default_rng(5)
    found: list[Array | None] = []
    for t in types:
        if t is None:
            found.append(None)
        elif t.dtype.kind in "fc":
            found.append(rng.uniform(low, high, t.shape).astype(t.dtype.np))
        else:
            found.append(np.full(t.shape, t.dtype.kind == "b", t.dtype.np))
    return found


def _widened(array: Array | None, device: Device) -> Array | None:
    """Return an array as float64 or complex128 if the device has that dtype, else unchanged."""
    if array is None or array.dtype.kind in "biu":
        return array
    wide: DType = complex128 if array.dtype.kind == "c" else float64
    if wide not in registry.backend(device.name).dtypes:
        return array
    return array.astype(wide.np)


def _compared(
    function: Callable[..., object],
    inputs: Sequence[Array | None],
    device: Device,
    state: Tensor,
    n_checked: int | None,
) -> Comparison | None:
    """Compare a function's gradient with finite differences at the given input values.

    Returns the element that differs most. Returns None if results are not finite, if they differ
    between two calls, or if no compared input or no result is floating. `state` is the state to
    which the random generator is set before each call; `n_checked` is how many of the first inputs
    are compared; None means all.
    """
    inexact = [i for i, a in enumerate(inputs) if a is not None and a.dtype.kind not in "biu"]
    wrt = [i for i in inexact if n_checked is None or i < n_checked]
    arrays = [inputs[i] for i in wrt]

    def call(*tensors: Tensor) -> list[Tensor]:
        given: list[Tensor | None] = [None if a is None else _tensor(a, device) for a in inputs]
        for i, t in zip(wrt, tensors, strict=True):
            given[i] = t
        set_rng_state(state)
        found = function(*given)
        several = found if isinstance(found, (tuple, list)) else (found,)
        return [t for t in several if t.dtype.kind in "fc"]

    def results(moved: Sequence[Array]) -> list[Array]:
        return [t._values() for t in call(*[_tensor(a, device) for a in moved])]

    known = [a for a in arrays if a is not None]
    outs = results(known)
    if not outs or not all(np.isfinite(np.asarray(o, np.complex128)).all() for o in outs):
        return None
    again = results(known)
    if not all(np.array_equal(a, b) for a, b in zip(outs, again, strict=True)):
        return None  # not a function of its inputs alone
    rng = np.random.default_rng(3)
    weights = [random_like(rng, o) for o in outs]
    assert _vjp is not None
    _, pull = _vjp(call, *[_tensor(a, device) for a in known])
    found = pull(*[_tensor(w, device) for w in weights])
    gradients = [t._values() for t in found]
    worst = compare(results, gradients, weights, known, precision_of([*known, *outs]))
    if worst is None:
        return None
    return Comparison(wrt[worst.operand], worst.index, worst.got, worst.wanted, worst.error)


def _tensor(array: Array, device: Device) -> Tensor:
    made = Tensor(array)
    commit(made, device)
    return made
