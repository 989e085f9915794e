"""Gradient checkpointing (Chen et al., 2016), also known as rematerialisation.

A checkpointed block keeps only its inputs; the backward pass runs it again to obtain its
intermediate values. What the block writes to its Parameters, such as running statistics, it writes
once; other effects of its Python code happen in both runs. User code calls `recompute`; `Cell`
calls `run_again`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.custom import without_residuals
from ..autodiff.transforms import vjp
from ..errors import ArgumentError
from ..option_checks import check_options
from ..option_table import options_of
from ..parameter import Parameter
from ..placement import materialise
from ..random_state import get_rng_state, set_rng_state
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor

__all__ = ["recompute", "run_again"]


def recompute(
    block: Callable[..., object], *args: object, use_reentrant: bool = True, **kwargs: object
) -> object:
    """Call a Cell without keeping its intermediate values for the gradient
    (`mindspore.recompute`).

    Args:
        block: a Cell.
        args: its inputs.
        use_reentrant: True or False do the same here.

    Raises:
        TypeError: `block` is not a Cell.
        ValueError: `output_recompute` or `context_fn`, which are not offered.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        >>> x = ms.Tensor([[1.0, 2.0]])
        >>> print(ms.grad(lambda x: ms.recompute(net, x))(x))
        [[2. 2.]]
    """
    own = getattr(block, "trainable_params", None)
    if own is None:
        raise ArgumentError(f"recompute: got {type(block).__name__}; wanted a Cell")
    for option in options_of("recompute"):
        if option.name in kwargs:
            check_options("recompute", **{option.name: kwargs.pop(option.name)})
    builder = staged_builder()
    if builder is not None:
        return builder.evaluation.call_cell(block, args, kwargs, recomputed=True)
    return run_again(block, block, *args, **kwargs)


def run_again(
    block: Callable[..., object], cell: Any, /, *args: object, **kwargs: object
) -> object:
    """Call a block so that the backward pass runs it again instead of storing intermediate values.

    Returns what the block returns. Tensors among the arguments, and the trainable Parameters of
    `cell`, get gradients. The second run uses the random state and the Parameter values of the
    first.
    """
    weights = cell.trainable_params()
    n = len(args)
    names = [k for k, v in kwargs.items() if isinstance(v, Tensor)]
    inputs = (*args, *(kwargs[k] for k in names))
    state = get_rng_state()
    written: list[tuple[Parameter, Tensor]] = []  # Parameters with their values before the call

    def run(*given: object) -> object:
        return block(*given[:n], **{**kwargs, **dict(zip(names, given[n : len(inputs)]))})

    def bprop(*given: object) -> list[object]:
        *operands, _, dout = given
        after = get_rng_state()
        set_rng_state(state)  # the same random masks as the first time
        present = [(p, _present_value(p)) for p, _ in written]
        _set_values(written)
        try:
            douts = dout if isinstance(dout, tuple) else (dout,)
            found = vjp(run, *operands[: len(inputs)], weights=weights or None)
            grads = found[1](*douts)
        finally:
            set_rng_state(after)
            _set_values(present)
        if not weights:
            return list(grads)
        of_inputs, of_weights = grads
        return [*of_inputs, *of_weights]

    state_of = cell.get_parameters() if runtime_state.derivatives else ()
    before = [(p, _present_value(p)) for p in state_of]
    found = without_residuals(run, bprop, (*inputs, *weights), "recompute")
    written += [(p, value) for p, value in before if p._buf is not value._buf]
    return found


def _present_value(p: Parameter) -> Tensor:
    """Return a Parameter's present value as a Tensor that later writes do not change.

    If gradients are being recorded, the Tensor takes the place of the Parameter on the tape, so
    that its gradient is the gradient of the Parameter.
    """
    if p._type.device is None:
        materialise(p)
    made = Tensor._make(p._type, p._buf)
    if hasattr(p, "_edge"):
        made._edge = p._edge
    return made


def _set_values(values: Sequence[tuple[Parameter, Tensor]]) -> None:
    for p, value in values:
        p._rebind(value)
