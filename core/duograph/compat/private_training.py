"""Private names of MindSpore about mixed precision, checkpoints and logging.

Programs import them by MindSpore's paths, as in `from mindspore.train.amp import _auto_black_list`,
which `paths.PATHS` maps to this module; nothing in duograph imports it. Each name does what
published packages need of it.
"""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from .. import amp, context, ops
from ..amp.precision import _BLACK as AMP_BLACK_LIST
from ..amp.precision import _WHITE as AMP_WHITE_LIST
from ..amp.precision import _cast_all_but, _cast_cells
from ..dtype import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..errors import ArgumentValueError, CheckpointError, UnsupportedOpError
from ..log import logger
from ..nn import Cell
from ..nn._calls import cast_floating
from ..parameter import Parameter
from ..runtime_state import thread_state
from ..tensor import Tensor
from ..train.serialization.files import _problem, _without_prefix, _write

__all__ = ["AMP_BLACK_LIST", "AMP_WHITE_LIST"]

number_type = (
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16,
    complex64, complex128,
)  # fmt: skip


# ---- modes and logging -------------------------------------------------------------------------


def _get_mode() -> int:
    """Return the execution mode: 0 for GRAPH_MODE, 1 for PYNATIVE_MODE."""
    return int(context.get_context("mode"))


def _get_logger() -> logging.Logger:
    """Return the logger of duograph."""
    return logger


def _is_role_sched() -> bool:
    """Return False: duograph has no process that schedules parameter servers."""
    return False


class _no_grad(contextlib.ContextDecorator):
    """Context manager and decorator that MindSpore has for code without gradients.

    Outside `grad` and similar functions no operations are recorded, so it has no effect there.
    Inside them it is not supported.

    Raises:
        NotImplementedError: it is entered inside a function whose gradient is being taken.
    """

    def __enter__(self) -> None:
        if thread_state.derivative_depth:
            raise UnsupportedOpError(
                "_no_grad inside a function whose gradient is taken is not supported; use "
                "ops.stop_gradient for values that get no gradient"
            )

    def __exit__(self, *_: object) -> None:
        pass


# ---- mixed precision ---------------------------------------------------------------------------


class AmpLevel(enum.Enum):
    """The levels of automatic mixed precision, O0 to O3 and auto, as MindSpore's private module
    names them; packages pass its members to functions of that module.
    """

    AmpO0 = 0
    AmpO1 = 1
    AmpO2 = 2
    AmpO3 = 3
    AmpAuto = 4


def mixed_precision_cast(dst_dtype: DType, x: object) -> object:
    """Return `x` with its floating-point Tensors cast to `dst_dtype`.

    Tuples, lists and dicts are rebuilt, at any depth; other objects are returned unchanged.
    """
    return cast_floating(x, dst_dtype)


def _auto_black_list(network: Cell, black_list: Sequence[type[Cell]], dtype: DType) -> Cell:
    """Make a network compute in `dtype`, except layers of the listed classes; return the network.

    Layers of the listed classes compute in float32.
    """
    _cast_all_but(network, tuple(black_list), dtype)
    return network


def _auto_mixed_precision_rewrite(
    network: Cell,
    dtype: DType,
    *,
    white_list: Sequence[type[Cell]] | None = None,
    black_list: Sequence[type[Cell]] | None = None,
) -> Cell:
    """Make layers of a network compute in `dtype`; return a Cell that calls the network.

    The network itself is changed. The Cell that is returned casts float16 and bfloat16 results of
    the network to float32.

    Args:
        network: the network.
        dtype: the type, such as float16.
        white_list: the classes of the layers that compute in `dtype`; a layer for which a dtype was
            set before keeps it.
        black_list: the classes of the layers that compute in float32; all others compute in
            `dtype`.

    Raises:
        ValueError: both lists are given, or none.
    """
    if white_list is not None and black_list is None:
        _cast_cells(network, tuple(white_list), dtype)
    elif black_list is not None and white_list is None:
        _cast_all_but(network, tuple(black_list), dtype)
    else:
        raise ArgumentValueError(
            "_auto_mixed_precision_rewrite: wanted one of white_list and black_list"
        )
    return amp.precision._OutputTo32(network)


# ---- checkpoints and callbacks -----------------------------------------------------------------


def _update_param(param: Parameter, new_param: object, strict_load: bool) -> None:
    """Write `new_param`, a value of a checkpoint, into the Parameter `param`.

    `strict_load` refuses a value of another dtype. Otherwise a float is cast to another float type,
    and an integer to another integer type.

    Raises:
        ValueError: the value is no Tensor, or its shape or dtype does not fit.
    """
    problem = _problem(param.name, param, new_param, strict_load)
    if problem is not None or not isinstance(new_param, Tensor):
        raise CheckpointError(f"load_param_into_net: {problem}")
    _write(param, new_param)


def _load_dismatch_prefix_params(
    net: Cell,
    parameter_dict: dict[str, Parameter | str],
    param_not_load: list[str],
    strict_load: bool,
) -> None:
    """Load Parameters from checkpoint entries that are named PREFIX + the Parameter's name.

    PREFIX is a text that ends with a dot, such as "backbone."; it is found from the names. Nothing
    is loaded unless one prefix leads to an entry for every name in `param_not_load`.

    Args:
        net: the network with the Parameters.
        parameter_dict: the checkpoint's entries by name.
        param_not_load: names of Parameters that have no entry of their own name; the names that
            this function loads are removed from the list.
        strict_load: whether the dtypes of an entry and its Parameter must be equal. If False, a
            float may be cast to another float type, and an integer to another integer type.

    Raises:
        ValueError: an entry has another shape than its Parameter, or a dtype that does not fit.
    """
    found = _without_prefix(param_not_load, parameter_dict, {})
    for param in net.get_parameters():
        if param.name in found:
            _update_param(param, found[param.name], strict_load)
            param_not_load.remove(param.name)


def _handle_loss(loss: object) -> object:
    """Return a loss for printing: the mean of a Tensor as a float.

    Of a tuple or list that begins with a Tensor, this first item is returned, as a Tensor. Any
    other object is returned unchanged.
    """
    if isinstance(loss, (tuple, list)):
        return loss[0] if isinstance(loss[0], Tensor) else loss
    return float(np.mean(loss.asnumpy())) if isinstance(loss, Tensor) else loss


def set_cur_net(net: Cell) -> None:
    """Do nothing; MindSpore's function records the network whose checkpoints will be saved."""
    del net


class _Function:
    """Base class of user-defined functions with their own gradient, which are not supported.

    Subclasses can be defined, but their `apply` raises an error.
    """

    @classmethod
    def apply(cls, *_: object, **__: object) -> NoReturn:
        """Raise an error, because user-defined functions with their own gradient are not supported.

        Raises:
            NotImplementedError: always.
        """
        raise UnsupportedOpError(
            f"{cls.__name__}.apply: _Function is not built; write a Cell with a `bprop` method"
        )


# ---- amp ---------------------------------------------------------------------------------------


def _grad_scale_map(scale_value: Tensor, inputs: object) -> object:
    """Return `inputs`, a tuple of Tensors or of such tuples, with each Tensor times a scale.

    Each product has the dtype of the Tensor, to which `scale_value` is cast.
    """
    return ops.HyperMap()(lambda grad: grad * ops.cast(scale_value, grad.dtype), inputs)


def _grad_unscale_map(scale_value: Tensor, inputs: object) -> object:
    """Return `inputs`, a tuple of Tensors or of such tuples, with each Tensor divided by a scale.

    Each quotient has the dtype of the Tensor, to which `scale_value` is cast.
    """
    return ops.HyperMap()(lambda grad: grad / ops.cast(scale_value, grad.dtype), inputs)
