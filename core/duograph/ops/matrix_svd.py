"""Singular values of matrices: svd, singular_values, and the pseudo-inverse made of them.

Users call them, as does `statistics.py` for matrix norms. The host computes the decompositions by
NumPy, so these functions need concrete values; no backend has a kernel for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.custom import custom_gradient
from ..dtype import bfloat16, float16
from ..errors import ArgumentValueError, DTypeError, MissingRuleError, ShapeError
from ..tensor import Tensor
from .comparison import less
from .creation import fill
from .linalg import matmul_of
from .logic import select_by
from .reduction import reduce_max
from .shape_primitives import reshape_to

__all__ = ["svd", "singular_values", "pinv"]


def _svd_on_host(name: str, x: Tensor, **options: bool) -> Any:
    if x.ndim < 2:
        raise ShapeError(f"{name}: got shape {x.shape}; wanted matrices (..., M, N)")
    if x.dtype is float16 or x.dtype is bfloat16:
        raise DTypeError(f"{name}: got {x.dtype.name}; wanted float32 or more: cast the tensor")
    values = x.asnumpy()
    if not np.isfinite(values).all():  # some LAPACKs never return then
        raise ArgumentValueError(
            f"{name}: got infinities or NaN in the tensor of shape {x.shape}; wanted finite values"
        )
    svd: Any = np.linalg.svd  # the type of the result depends on the options
    try:
        return svd(values, **options)
    except np.linalg.LinAlgError as error:
        raise ArgumentValueError(
            f"{name}: {error}; wanted finite values in the tensor of shape {x.shape}"
        ) from None


def singular_values(x: Tensor) -> Tensor:
    """Return the singular values of matrices, the largest first; computed on the host.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.singular_values(ms.Tensor([[3.0, 0.0], [0.0, 4.0]])))
        [4. 3.]
    """

    def forward(t: Tensor) -> Tensor:
        return Tensor(_svd_on_host("singular_values", t, compute_uv=False))

    def bprop(t: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        u, _, vh = _svd_on_host("singular_values", t, full_matrices=False)
        return (
            matmul_of(
                Tensor(u) * reshape_to(dout, (*dout.shape[:-1], 1, dout.shape[-1])), Tensor(vh)
            ),
        )

    return custom_gradient(forward, bprop, (x,), "singular_values")


def svd(input: Tensor, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Compute the singular value decomposition on the host (`mindspore.ops.svd`).

    Only the singular values have a gradient; a gradient through `u` or `v` is an error.

    Returns:
        (s, u, v) with input = u diag(s) v^T, or s alone if `compute_uv` is False.

    Raises:
        TypeError: 16-bit floats.
        ValueError: fewer than two axes, or elements that are not finite.

    Examples:
        >>> import duograph as ms
        >>> s, u, v = ms.ops.svd(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> print(s)
        [4. 3.]
    """
    if not compute_uv:
        return singular_values(input)

    def vectors(x: Tensor) -> tuple[Tensor, Tensor]:
        u, _, vh = _svd_on_host("svd", x, full_matrices=full_matrices)
        return Tensor(u), Tensor(np.ascontiguousarray(np.swapaxes(vh, -1, -2)))

    def bprop(x: Tensor, out: object, dout: object) -> tuple[Tensor]:
        raise MissingRuleError("svd with u and v")

    u, v = custom_gradient(vectors, bprop, (input,), "svd")
    return singular_values(input), u, v


def pinv(
    x: Tensor,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """Return the pseudo-inverse of matrices, by their singular values (`mindspore.ops.pinv`).

    Args:
        x: Tensor (..., m, n), floating.
        atol, rtol: singular values up to the larger one of `atol` and `rtol` times the largest
            singular value count as zero. By default `rtol` is ``max(m, n) * eps`` of the dtype,
            or 0 if `atol` is above 0.
        hermitian: whether the matrices are symmetric; then only their lower triangles are read.

    Raises:
        TypeError: integers, or 16-bit floats.
        ValueError: fewer than two axes, or elements that are not finite.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.pinv(ms.Tensor([[2.0], [0.0]])).round(decimals=3))
        [[0.5 0. ]]
    """
    if not x.dtype.is_floating:
        raise DTypeError(f"pinv: got {x.dtype.name}; wanted a floating dtype: cast the tensor")
    if hermitian:
        lower = x.tril()
        x = lower + x.tril(-1).swapaxes(-1, -2)
    s, u, v = svd(x)
    if rtol is None:
        default = max(x.shape[-2:]) * float(np.finfo(x.dtype.np).eps)
        rtol = default if atol is None or not bool((Tensor(atol) > 0).any()) else 0.0
    limit = _column(rtol) * reduce_max(s, (s.ndim - 1,), True)
    if atol is not None:
        limit = limit.maximum(_column(atol).astype(s.dtype))
    one = fill((), 1.0, s.dtype)
    large = less(limit, s)
    scaled = select_by(large, 1.0 / select_by(large, s, one), fill((), 0.0, s.dtype))
    return matmul_of(v * reshape_to(scaled, (*s.shape[:-1], 1, s.shape[-1])), u, False, True)


def _column(tolerance: float | Tensor) -> Tensor:
    """Convert a tolerance (number or Tensor) to a Tensor with an appended axis of size 1.

    It then broadcasts against the singular values (..., n).
    """
    found = tolerance if isinstance(tolerance, Tensor) else Tensor(float(tolerance))
    return found.reshape(*found.shape, 1)
