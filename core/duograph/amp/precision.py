"""Makes networks compute in 16-bit floats, and builds training steps in mixed precision.

User code and `Model` call it. The module only marks Cells with a dtype; a marked Cell casts its
inputs and weights when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from ..autodiff.pytrees import rebuilt
from ..call_errors import explaining
from ..dtype import DType, bfloat16, float16, float32
from ..errors import ArgumentError, ArgumentValueError
from ..nn.cell import Cell
from ..nn.layer import basic, conv, normalization
from ..nn.optim.optimizer import Optimizer
from ..nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from ..nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from ..option_checks import check_options
from ..tensor import Tensor
from .loss_scale_manager import DynamicLossScaleManager, LossScaleManager

__all__ = [
    "auto_mixed_precision", "custom_mixed_precision", "build_train_network", "get_white_list",
    "get_black_list",
]  # fmt: skip

_WHITE: list[type[Cell]] = [
    basic.Dense, conv.Conv1d, conv.Conv2d, conv.Conv3d, conv.Conv1dTranspose, conv.Conv2dTranspose,
    conv.Conv3dTranspose,
]  # fmt: skip
_BLACK: list[type[Cell]] = [
    normalization.BatchNorm1d, normalization.BatchNorm2d, normalization.BatchNorm3d,
    normalization.LayerNorm,
]  # fmt: skip


class _OutputTo32(Cell):
    """Cell (network layer) that calls another Cell and casts its 16-bit results to float32."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *args: object, **kwargs: object) -> Any:
        return _to_32(self._backbone(*args, **kwargs))


def _to_32(value: object) -> object:
    """Return a nested result with its tensors of 16-bit floats cast to float32."""
    if isinstance(value, Tensor):
        return ops.cast(value, float32) if value.dtype in (float16, bfloat16) else value
    if isinstance(value, (tuple, list)):
        return rebuilt(value, [_to_32(v) for v in value])
    if isinstance(value, dict):
        return {k: _to_32(v) for k, v in value.items()}
    return value


def get_white_list() -> list[type[Cell]]:
    """Return a new list of the layers that level O1 runs in a 16-bit float
    (`mindspore.amp.get_white_list`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Conv2d in ms.amp.get_white_list()
        True
    """
    return list(_WHITE)


def get_black_list() -> list[type[Cell]]:
    """Return a new list of the layers that level O2 keeps in float32
    (`mindspore.amp.get_black_list`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.BatchNorm2d in ms.amp.get_black_list()
        True
    """
    return list(_BLACK)


def _cast_cells(network: Cell, chosen: tuple[type[Cell], ...], dtype: DType) -> None:
    """Mark the Cells (layers) of the chosen classes in a network to compute in `dtype`.

    A Cell that is marked with a dtype already keeps it.
    """
    for _, cell in network.cells_and_names():
        if isinstance(cell, chosen) and cell._float_type is None:
            cell.to_float(dtype)


def _cast_all_but(network: Cell, kept: tuple[type[Cell], ...], dtype: DType) -> None:
    """Mark a network to compute in `dtype`, but its layers of the `kept` classes in float32."""
    network.to_float(dtype)
    for _, cell in network.cells_and_names():
        if isinstance(cell, kept):
            cell.to_float(float32)


@explaining
def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: DType = float16) -> Cell:
    """Run part of a network in a 16-bit float type (`mindspore.amp.auto_mixed_precision`).

    Args:
        network: Cell; it is modified in place.
        amp_level: the part to cast. ``"O0"``: nothing; ``"O1"`` and ``"auto"``: the layers of the
            white list; ``"O2"``: all but those of the black list; ``"O3"``: everything. Results
            are cast to float32, except with ``"O0"``.
        dtype: float16 or bfloat16.

    Raises:
        TypeError: `network` is not a Cell.
        ValueError: an unknown level or type.

    Examples:
        >>> import duograph as ms
        >>> net = ms.amp.auto_mixed_precision(ms.nn.Dense(2, 2), "O1")
        >>> net(ms.ops.ones((1, 2), ms.float32)).dtype
        duograph.float32
    """
    if not isinstance(network, Cell):
        raise ArgumentError(f"auto_mixed_precision: got {type(network).__name__}; wanted a Cell")
    if dtype not in (float16, bfloat16):
        raise ArgumentValueError(
            f"auto_mixed_precision: got dtype={dtype!r}; wanted float16 or bfloat16"
        )
    levels = ("O0", "O1", "O2", "O3", "auto")
    if amp_level not in levels:
        raise ArgumentValueError(
            f"auto_mixed_precision: got amp_level={amp_level!r}; wanted one of {', '.join(levels)}"
        )
    if amp_level == "O0":
        return network
    if amp_level in ("O1", "auto"):
        _cast_cells(network, tuple(_WHITE), dtype)
    elif amp_level == "O2":
        _cast_all_but(network, tuple(_BLACK), dtype)
    else:
        network.to_float(dtype)
    return _OutputTo32(network)


@explaining
def custom_mixed_precision(
    network: Cell,
    *,
    white_list: Sequence[type[Cell]] | None = None,
    black_list: Sequence[type[Cell]] | None = None,
    dtype: DType = float16,
) -> Cell:
    """Run layers of given classes, or all others, of a network in a 16-bit float type
    (`mindspore.amp.custom_mixed_precision`).

    Args:
        network: Cell; it is modified in place.
        white_list: the Cell classes to cast; None if `black_list` is given.
        black_list: the Cell classes to keep in float32, while all others are cast; None if
            `white_list` is given.
        dtype: float16 or bfloat16.

    Raises:
        ValueError: not exactly one of the two lists.
        TypeError: an item of the list is not a Cell class.

    Examples:
        >>> import duograph as ms
        >>> net = ms.amp.custom_mixed_precision(ms.nn.Dense(2, 2), white_list=[ms.nn.Dense])
        >>> net(ms.ops.ones((1, 2), ms.float32)).dtype
        duograph.float32
    """
    if (white_list is None) == (black_list is None):
        raise ArgumentValueError(
            "custom_mixed_precision: wanted exactly one of white_list and black_list"
        )
    chosen: Sequence[type[Cell]] = (white_list if black_list is None else black_list) or ()
    if not all(isinstance(c, type) and issubclass(c, Cell) for c in chosen):
        raise ArgumentError("custom_mixed_precision: wanted a list of Cell classes")
    if black_list is None:
        _cast_cells(network, tuple(chosen), dtype)
    else:
        _cast_all_but(network, tuple(chosen), dtype)
    return _OutputTo32(network)


@explaining
def build_train_network(
    network: Cell,
    optimizer: Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: object,
) -> Cell:
    """Return a Cell that runs a training step in mixed precision
    (`mindspore.amp.build_train_network`).

    Args:
        network: Cell; without `loss_fn`, its result is the loss.
        optimizer: Optimizer.
        loss_fn: Cell or function of (predictions, labels).
        level: see `auto_mixed_precision`.
        loss_scale_manager: keyword; by default a dynamic one with O2, none otherwise.
        keep_batchnorm_fp32: keyword; with O3, whether to keep batch and layer normalisation in
            float32.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an unknown level.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> step = ms.amp.build_train_network(
        ...     net, ms.nn.SGD(net.trainable_params(), 0.1), ms.nn.MSELoss()
        ... )
    """
    check_options("build_train_network", boost_level=boost_level, **kwargs)
    if not isinstance(network, Cell):
        raise ArgumentError(f"build_train_network: got {type(network).__name__}; wanted a Cell")
    keep = kwargs.get("keep_batchnorm_fp32")
    if level == "O3" and keep:
        level = "O2"
    network = auto_mixed_precision(network, level)
    if loss_fn is not None:
        network = WithLossCell(network, loss_fn)
    manager = kwargs.get("loss_scale_manager")
    if manager is None and level == "O2":
        manager = DynamicLossScaleManager()
    if manager is not None:
        if not isinstance(manager, LossScaleManager):
            raise ArgumentError(
                f"build_train_network: got loss_scale_manager={manager!r} "
                f"({type(manager).__name__}); wanted a LossScaleManager, such as "
                "ms.amp.FixedLossScaleManager(1024)"
            )
        update = manager.get_update_cell()
        if update is not None:
            return TrainOneStepWithLossScaleCell(network, optimizer, update).set_train()
        return TrainOneStepCell(network, optimizer, manager.get_loss_scale()).set_train()
    return TrainOneStepCell(network, optimizer).set_train()
