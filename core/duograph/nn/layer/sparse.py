"""Layers for sparse matrices: conversion to a dense Tensor, and the matmul with a dense matrix.

Users build these layers; each calls a primitive of `ops.sparse_functions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError
from ...ops.sparse_functions import SparseTensorDenseMatmul as _Matmul
from ...ops.sparse_tensors import COOTensor
from ...tensor import Tensor
from ..cell import Cell

__all__ = ["SparseTensorDenseMatmul", "SparseToDense"]


class SparseToDense(Cell):
    """Converts a COOTensor to a dense Tensor (`mindspore.nn.SparseToDense`).

    Examples:
        >>> import duograph as ms
        >>> x = ms.COOTensor(ms.Tensor([[0, 1]]), ms.Tensor([2]), (1, 3))
        >>> print(ms.nn.SparseToDense()(x))
        [[0 2 0]]
    """

    def construct(self, input_x: COOTensor) -> Tensor:
        """Return the COOTensor `input_x` as a dense Tensor."""
        if not isinstance(input_x, COOTensor):
            got = type(input_x).__name__
            raise ArgumentError(f"SparseToDense: got {got}; wanted a COOTensor")
        return input_x.to_dense()


class SparseTensorDenseMatmul(Cell):
    """Multiplies a sparse matrix, given by indices, values and shape, with a dense matrix
    (`mindspore.nn.SparseTensorDenseMatmul`).

    Args:
        adjoint_st: whether to transpose the sparse matrix.
        adjoint_dt: whether to transpose the dense matrix.

    Raises:
        TypeError: an argument that is no bool.

    Examples:
        >>> import duograph as ms
        >>> i, v = ms.Tensor([[0, 1], [1, 0]]), ms.Tensor([1.0, 2.0])
        >>> print(ms.nn.SparseTensorDenseMatmul()(i, v, (2, 2), ms.Tensor([[3.0], [4.0]])))
        [[4.]
         [6.]]
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        self.adjoint_st, self.adjoint_dt = adjoint_st, adjoint_dt
        self._matmul = _Matmul(adjoint_st, adjoint_dt)

    def construct(
        self, indices: Tensor, values: Tensor, sparse_shape: Sequence[int], dense: Tensor
    ) -> Tensor:
        """Return the product of the sparse and the dense matrix, a dense Tensor."""
        for name, part in (("indices", indices), ("values", values), ("dense", dense)):
            if not isinstance(part, Tensor):
                got = type(part).__name__
                raise ArgumentError(
                    f"SparseTensorDenseMatmul: got {got} for {name}; wanted a Tensor"
                )
        if not isinstance(sparse_shape, (tuple, list)):
            got = type(sparse_shape).__name__
            raise ArgumentError(f"SparseTensorDenseMatmul: got {got} for sparse_shape; wanted ints")
        found: Tensor = self._matmul(indices, values, sparse_shape, dense)
        return found
