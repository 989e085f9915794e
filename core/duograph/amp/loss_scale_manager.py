"""Loss scale managers, which tell `Model` and `build_train_network` how to scale the loss.

Users construct them. A manager only holds numbers; training Cells in `nn.wrap` scale the loss.
"""

from __future__ import annotations

from ..nn import _check
from ..nn.cell import Cell
from ..nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell

__all__ = ["LossScaleManager", "FixedLossScaleManager", "DynamicLossScaleManager"]


class LossScaleManager:
    """Base class of objects that hold a loss scale for `Model`."""

    def get_loss_scale(self) -> float:
        """Return the current loss scale."""
        raise NotImplementedError(f"{type(self).__name__}: has no get_loss_scale()")

    def update_loss_scale(self, overflow: bool) -> None:
        """Adjust the loss scale after a step; `overflow` is true if a gradient was not finite."""
        raise NotImplementedError(f"{type(self).__name__}: has no update_loss_scale(overflow)")

    def get_update_cell(self) -> Cell | None:
        """Return the Cell that updates the loss scale during training, or None."""
        raise NotImplementedError(f"{type(self).__name__}: has no get_update_cell()")


class FixedLossScaleManager(LossScaleManager):
    """A constant loss scale (`mindspore.amp.FixedLossScaleManager`).

    Args:
        loss_scale: the scale, 1 or more.
        drop_overflow_update: whether to skip the update if a gradient overflows; if False, the
            optimiser must have the same `loss_scale`.

    Raises:
        ValueError: the scale is below 1.

    Examples:
        >>> from duograph import amp
        >>> amp.FixedLossScaleManager(1024).get_loss_scale()
        1024
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        _check.in_range("FixedLossScaleManager", "loss_scale", loss_scale, 1)
        self._loss_scale = loss_scale
        self._drop_overflow_update = _check.boolean(
            "FixedLossScaleManager", "drop_overflow_update", drop_overflow_update
        )

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return whether weight updates are skipped when a scaled gradient overflows."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Do nothing: the loss scale is constant."""

    def get_update_cell(self) -> Cell | None:
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that shrinks on overflow and grows after steps without overflow
    (`mindspore.amp.DynamicLossScaleManager`).

    Args:
        init_loss_scale: initial scale, 1 or more.
        scale_factor: factor of a change, above 0.
        scale_window: number of steps without overflow before the scale grows.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> manager = ms.amp.DynamicLossScaleManager(8, 2, 100)
        >>> manager.update_loss_scale(True); manager.get_loss_scale()
        4.0
    """

    def __init__(
        self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000
    ) -> None:
        owner = "DynamicLossScaleManager"
        _check.in_range(owner, "init_loss_scale", init_loss_scale, 1)
        self.loss_scale = init_loss_scale
        self.scale_factor = _check.positive_int(owner, "scale_factor", scale_factor)
        self.scale_window = _check.positive_int(owner, "scale_window", scale_window)
        self.increase_ratio = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """Return True: weight updates are always skipped when a scaled gradient overflows."""
        return True

    def get_update_cell(self) -> Cell | None:
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
