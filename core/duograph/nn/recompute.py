"""Gradient checkpointing (Chen et al., 2016), also known as rematerialisation.

A checkpointed block keeps only its inputs; the backward pass runs it again to obtain its
intermediate values. User code calls `recompute`; `Cell` calls `run_again`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.custom import custom_gradient
from ..autodiff.transforms import vjp
from ..errors import ArgumentError
from ..option_checks import check_options
from ..option_table import options_of
from ..parameter import Parameter
from ..random_state import get_rng_state, set_rng_state

__all__ = ["recompute", "run_again"]


def recompute(
    block: Callable[..., Any], *args: Any, use_reentrant: bool = True, **kwargs: Any
) -> Any:
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
    return run_again(block, *args, weights=own(), **kwargs)


def run_again(
    block: Callable[..., Any], *args: Any, weights: Sequence[Parameter], **kwargs: Any
) -> Any:
    """Call `block(*args)` as one node of the autodiff tape whose backward runs the block again."""
    n = len(args)
    state = get_rng_state()

    def forward(*given: Any) -> Any:
        return block(*given[:n], **kwargs)

    def bprop(*given: Any) -> list[Any]:
        *operands, _, dout = given
        after = get_rng_state()
        set_rng_state(state)  # the same random masks as the first time
        try:
            douts = dout if isinstance(dout, tuple) else (dout,)
            found = vjp(lambda *xs: block(*xs, **kwargs), *operands[:n], weights=weights)
            grads = found[1](*douts)
        finally:
            set_rng_state(after)
        if not weights:
            return list(grads) if isinstance(grads, tuple) else [grads]
        inputs, of_weights = grads
        inputs = list(inputs) if isinstance(inputs, tuple) else [inputs]
        return [*inputs, *of_weights]

    return custom_gradient(forward, bprop, (*args, *weights), "recompute")
