"""Primitive classes of optimiser steps with sparse gradients, such as `SparseApplyFtrl`.

Users construct them in their own optimisers. A sparse gradient consists of rows and their indices:
`grad` (n, ...) has the gradients of the rows `indices` (n,) of a Parameter; rows with the same
index are added. A call updates the Parameters among its arguments in place and returns them. The
formulas are those of `optimizer_primitives`.
"""

from __future__ import annotations

from ..dtype import int64
from ..errors import ShapeError
from ..tensor import Tensor
from .creation import fill
from .elementwise import square
from .logic import select_by
from .optimizer_formulas import (
    Locking,
    Nesterov,
    Number,
    adadelta,
    adam_delta,
    check_shapes,
    ftrl,
    proximal,
    rmsprop,
    stepped,
    wide,
    write,
)
from .powers import sqrt
from .primitive import Primitive
from .segments import unsorted_segment_sum
from .shape_primitives import reshape_to

__all__ = [
    "FusedSparseAdam", "FusedSparseFtrl", "FusedSparseLazyAdam", "FusedSparseProximalAdagrad",
    "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradV2", "SparseApplyFtrl",
    "SparseApplyFtrlV2", "SparseApplyProximalAdagrad", "SparseApplyRMSProp",
]  # fmt: skip


class _Rows:
    """A sparse gradient of a Parameter, and the rows of the Parameter that it changes.

    Attributes:
        gradient: the dense gradient, of the Parameter's shape; rows with the same index are added.
    """

    def __init__(self, name: str, var: Tensor, grad: Tensor, indices: Tensor) -> None:
        if indices.ndim != 1 or grad.shape != (indices.shape[0], *var.shape[1:]):
            raise ShapeError(
                f"{name}: got gradients of shape {grad.shape} and indices of {indices.shape} for "
                f"{var.shape}; wanted (n, ...) and (n,)"
            )
        count = var.shape[0]
        self.gradient = unsorted_segment_sum(wide(grad), indices, count)
        found = unsorted_segment_sum(fill(indices.shape, 1, int64), indices, count)
        self._touched = reshape_to(found > 0, (count, *[1] * (var.ndim - 1)))

    def of(self, new: Tensor, old: Tensor) -> Tensor:
        """Return the rows of `new` where the gradient has a row, and those of `old` elsewhere."""
        return select_by(self._touched, new, wide(old))


class SparseApplyAdadelta(Primitive):
    """Adadelta with a sparse gradient: only the rows at `indices` are updated.

    `SparseApplyAdadelta(epsilon)(var, accum, accum_update, lr, rho, grad, indices)`.
    """

    def __init__(self, epsilon: float, use_locking: bool = False) -> None:
        super().__init__()
        self.epsilon, self.use_locking = epsilon, use_locking

    def __call__(
        self, var: Tensor, accum: Tensor, accum_update: Tensor, lr: Number, rho: Number,
        grad: Tensor, indices: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update rows of var, accum and accum_update by one step of Adadelta; return all three.

        The Parameters are written in place.

            accum        = rho * accum + (1 - rho) * g**2
            step         = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * g
            accum_update = rho * accum_update + (1 - rho) * step**2
            var          = var - lr * step

        `grad` has one row for each of `indices`; only the rows at `indices` change, and g is the
        sum of the rows of `grad` for the same index. `epsilon` is an argument of the constructor.
        """
        targets = (var, accum, accum_update)
        check_shapes("SparseApplyAdadelta", *targets)
        rows = _Rows("SparseApplyAdadelta", var, grad, indices)
        new = stepped(adadelta, targets, lr, rho, self.epsilon, rows.gradient)
        return write(targets, tuple(rows.of(n, t) for n, t in zip(new, targets)))


class SparseApplyAdagradV2(Primitive):
    """Adagrad with a sparse gradient, and `epsilon` added to the root of accum.

    `SparseApplyAdagradV2(lr, epsilon)(var, accum, grad, indices)`.
    """

    def __init__(
        self, lr: float, epsilon: float, use_locking: bool = False, update_slots: bool = True
    ) -> None:
        super().__init__()
        self.lr, self.epsilon = lr, epsilon
        self.use_locking, self.update_slots = use_locking, update_slots

    def __call__(
        self, var: Tensor, accum: Tensor, grad: Tensor, indices: Tensor
    ) -> tuple[Tensor, ...]:
        """Update rows of var and accum in place by one step of Adagrad; return both Parameters.

            accum = accum + g**2
            var   = var - lr * g / (sqrt(accum) + epsilon)

        `grad` has one row for each of `indices`; only the rows at `indices` change, and g is the
        sum of the rows of `grad` for the same index. The first line applies only with
        `update_slots`; that, `lr` and `epsilon` are arguments of the constructor.
        """
        name = type(self).__name__
        check_shapes(name, var, accum)
        rows = _Rows(name, var, grad, indices)
        a = wide(accum) + square(rows.gradient) if self.update_slots else wide(accum)
        new = wide(var) - self.lr * rows.gradient / (sqrt(a) + self.epsilon)
        return write((var, accum), (rows.of(new, var), rows.of(a, accum)))


class SparseApplyAdagrad(SparseApplyAdagradV2):
    """Adagrad with a sparse gradient: only the rows at `indices` are updated.

    `SparseApplyAdagrad(lr, update_slots=True)(var, accum, grad, indices)`.
    """

    def __init__(self, lr: float, update_slots: bool = True, use_locking: bool = False) -> None:
        super().__init__(lr, 0.0, use_locking, update_slots)


class SparseApplyFtrlV2(Primitive):
    """FTRL with a sparse gradient and the additional penalty `l2_shrinkage`.

    `SparseApplyFtrlV2(lr, l1, l2, l2_shrinkage, lr_power)(var, accum, linear, grad, indices)`.
    """

    def __init__(
        self,
        lr: float,
        l1: float,
        l2: float,
        l2_shrinkage: float,
        lr_power: float,
        use_locking: bool = False,
    ) -> None:
        super().__init__()
        self.lr, self.l1, self.l2, self.lr_power = lr, l1, l2, lr_power
        self.l2_shrinkage, self.use_locking = l2_shrinkage, use_locking

    def __call__(
        self, var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, indices: Tensor
    ) -> tuple[Tensor, ...]:
        """Update rows of var, accum and linear in place by one step of FTRL; return all three.

            old    = accum ** -lr_power
            accum  = accum + g**2
            new    = accum ** -lr_power
            linear = linear + g + 2 * l2_shrinkage * var - (new - old) / lr * var
            var    = -sign(linear) * maximum(abs(linear) - l1, 0) / (new / lr + 2 * l2)

        `grad` has one row for each of `indices`; only the rows at `indices` change, and g is the
        sum of the rows of `grad` for the same index. The settings are arguments of the constructor.
        """
        name = type(self).__name__
        targets = (var, accum, linear)
        check_shapes(name, *targets)
        rows = _Rows(name, var, grad, indices)
        new = stepped(ftrl, targets, rows.gradient, self.lr, self.l1, self.l2, self.lr_power,
            self.l2_shrinkage,
        )  # fmt: skip
        return write(targets, tuple(rows.of(n, t) for n, t in zip(new, targets)))


class SparseApplyFtrl(SparseApplyFtrlV2):
    """FTRL with a sparse gradient.

    `SparseApplyFtrl(lr, l1, l2, lr_power)(var, accum, linear, grad, indices)`.
    """

    def __init__(
        self, lr: float, l1: float, l2: float, lr_power: float, use_locking: bool = False
    ) -> None:
        super().__init__(lr, l1, l2, 0.0, lr_power, use_locking)


class FusedSparseFtrl(SparseApplyFtrl):
    """FTRL with a sparse gradient; the same as `SparseApplyFtrl`.

    `FusedSparseFtrl(lr, l1, l2, lr_power)(var, accum, linear, grad, indices)`.
    """


class SparseApplyProximalAdagrad(Locking):
    """Adagrad with proximal l1 and l2 penalties and a sparse gradient.

    `SparseApplyProximalAdagrad()(var, accum, lr, l1, l2, grad, indices)`.
    """

    def __call__(
        self, var: Tensor, accum: Tensor, lr: Number, l1: Number, l2: Number, grad: Tensor,
        indices: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update rows of var and accum in place by one step of proximal Adagrad; return both.

            accum = accum + g**2
            rate  = lr / sqrt(accum)
            z     = var - rate * g
            var   = sign(z) * maximum(abs(z) - rate * l1, 0) / (1 + rate * l2)

        `grad` has one row for each of `indices`; only the rows at `indices` change, and g is the
        sum of the rows of `grad` for the same index.
        """
        name = type(self).__name__
        check_shapes(name, var, accum)
        rows = _Rows(name, var, grad, indices)
        a = wide(accum) + square(rows.gradient)
        new = proximal(wide(var), lr / sqrt(a), rows.gradient, l1, l2)
        return write((var, accum), (rows.of(new, var), rows.of(a, accum)))


class FusedSparseProximalAdagrad(SparseApplyProximalAdagrad):
    """Adagrad with l1 and l2 penalties and a sparse gradient.

    `FusedSparseProximalAdagrad()(var, accum, lr, l1, l2, grad, indices)` does the same as
    `SparseApplyProximalAdagrad`.
    """


class SparseApplyRMSProp(Primitive):
    """RMSProp with a sparse gradient: only the rows at `indices` are updated.

    `SparseApplyRMSProp(rho, momentum, epsilon)(var, ms, mom, lr, grad, indices)`.
    """

    def __init__(
        self, rho: float, momentum: float, epsilon: float, use_locking: bool = False
    ) -> None:
        super().__init__()
        self.rho, self.momentum, self.epsilon = rho, momentum, epsilon
        self.use_locking = use_locking

    def __call__(
        self, var: Tensor, ms: Tensor, mom: Tensor, lr: Number, grad: Tensor, indices: Tensor
    ) -> tuple[Tensor, ...]:
        """Update rows of var, ms and mom in place by one step of RMSProp; return these Parameters.

            ms  = rho * ms + (1 - rho) * g**2
            mom = momentum * mom + lr * g / sqrt(ms + epsilon)
            var = var - mom

        `grad` has one row for each of `indices`; only the rows at `indices` change, and g is the
        sum of the rows of `grad` for the same index. rho, momentum and epsilon are arguments of the
        constructor.
        """
        targets = (var, ms, mom)
        check_shapes("SparseApplyRMSProp", *targets)
        rows = _Rows("SparseApplyRMSProp", var, grad, indices)
        new = stepped(rmsprop, targets, lr, rows.gradient, self.rho, self.momentum, self.epsilon)
        return write(targets, tuple(rows.of(n, t) for n, t in zip(new, targets)))


class FusedSparseAdam(Nesterov):
    """Adam with a sparse gradient, which updates all rows.

    It is called with (var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
    indices). Rows that are not in `indices` have the gradient 0.
    """

    lazy = False

    def __call__(
        self, var: Tensor, m: Tensor, v: Tensor, beta1_power: Number, beta2_power: Number,
        lr: Number, beta1: Number, beta2: Number, epsilon: Number, gradient: Tensor,
        indices: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Update var, m and v in place by an Adam step with a sparse gradient; return all three.

            m    = beta1 * m + (1 - beta1) * g
            v    = beta2 * v + (1 - beta2) * g**2
            rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
            var  = var - rate * m / (sqrt(v) + epsilon)

        `gradient` has one row for each of `indices`, and g is the sum of its rows for the same
        index. Rows that are not in `indices` are updated with g = 0, or stay unchanged if the class
        attribute `lazy` is True. With the constructor's `use_nesterov`, the last line has
        `beta1 * m + (1 - beta1) * g` in place of `m`. In step t, counted from 1, `beta1_power` and
        `beta2_power` are beta1**t and beta2**t.
        """
        name = type(self).__name__
        targets = (var, m, v)
        check_shapes(name, *targets)
        rows = _Rows(name, var, gradient, indices)
        delta, m1, v1 = adam_delta(
            wide(m), wide(v), rows.gradient, beta1_power, beta2_power, lr, beta1, beta2,
            epsilon, self.use_nesterov,
        )  # fmt: skip
        new = (wide(var) + delta, m1, v1)
        if self.lazy:
            return write(targets, tuple(rows.of(n, t) for n, t in zip(new, targets)))
        return write(targets, new)


class FusedSparseLazyAdam(FusedSparseAdam):
    """Adam with a sparse gradient, which updates only the rows at `indices`.

    It is called with (var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
    indices), like `FusedSparseAdam`.
    """

    lazy = True
