"""Embedding layers of recommendation models: EmbeddingLookup and MultiFieldEmbeddingLookup.

`nn` exports them. The options for dividing a table among processes have no effect: each process has
the whole table.
"""

from __future__ import annotations

import math

from ... import ops
from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentValueError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import DTypeLike, Init
from ..cell import Cell

__all__ = ["EmbeddingLookup", "MultiFieldEmbeddingLookup"]

_SLICES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")


class EmbeddingLookup(Cell):
    """Rows of a table, and zeros for indices past its end (`mindspore.nn.EmbeddingLookup`).

    Args:
        vocab_size: number of rows.
        embedding_size: length of a row.
        param_init: initial table: name, Initializer, number, or Tensor of (vocab_size,
            embedding_size).
        target: ``"CPU"`` or ``"DEVICE"``; both use the current device.
        slice_mode: ``"batch_slice"``, ``"field_slice"``, ``"table_row_slice"`` or
            ``"table_column_slice"``: how several processes would divide the table.
        manual_shapes: tuple with the number of rows of each process; required by ``"field_slice"``.
        max_norm: largest norm of a row that is looked up; None for no limit.
        sparse: must be True for the target ``"CPU"``.
        dtype: dtype of the table.

    Inputs: integers of any shape. Outputs: that shape followed by (embedding_size,).

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: a size below 1, another target or mode, or `sparse` False for the CPU.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.EmbeddingLookup(4, 2, param_init="ones")
        >>> print(layer(ms.Tensor([[1, 7]])))
        [[[1. 1.]
          [0. 0.]]]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Init = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: tuple[int, ...] | None = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.vocab_size = _check.positive_int(owner, "vocab_size", vocab_size)
        self.embedding_size = _check.positive_int(owner, "embedding_size", embedding_size)
        self.target = _check.one_of(owner, "target", target, ("CPU", "DEVICE"))
        self.slice_mode = _check.one_of(owner, "slice_mode", slice_mode, _SLICES)
        if not _check.boolean(owner, "sparse", sparse) and target != "DEVICE":
            raise ArgumentValueError(f"{owner}: got sparse=False for the target 'CPU'; wanted True")
        self.sparse = sparse
        if slice_mode == "field_slice":
            _check.instance(owner, "manual_shapes", manual_shapes, tuple)
        self.max_norm = (
            None
            if max_norm is None
            else _check.in_range(owner, "max_norm", max_norm, 0, open_low=True)
        )
        self.embedding_table = Parameter(
            initializer(param_init, (vocab_size, embedding_size), dtype), name="embedding_table"
        )

    def _rows(self, indices: Tensor) -> Tensor:
        inside = ops.logical_and(indices >= 0, indices < self.vocab_size)
        found = ops.gather(self.embedding_table, ops.where(inside, indices, 0), 0)
        found = ops.where(ops.expand_dims(inside, -1), found, 0.0)
        if self.max_norm is None:
            return found
        norm = ops.sqrt(ops.square(found).sum(-1, keepdims=True))
        return ops.where(norm > self.max_norm, found * (self.max_norm / norm), found)

    def construct(self, indices: Tensor) -> Tensor:
        return self._rows(indices)


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Weighted rows of a table, combined within each field
    (`mindspore.nn.MultiFieldEmbeddingLookup`).

    The result of a field is zero if all its weights are zero.

    Args:
        vocab_size, embedding_size, param_init, target, max_norm, sparse, dtype: as for
            `EmbeddingLookup`.
        field_size: number of fields.
        slice_mode: as for `EmbeddingLookup`, without ``"field_slice"``.
        feature_num_list: not used.
        operator: ``"SUM"``, ``"MEAN"`` (divided by the sum of the weights) or ``"MAX"`` (over the
            entries whose weight is not 0).

    Inputs: indices, weights and fields, all (batch, length). Outputs: (batch, field_size,
    embedding_size).

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: as for `EmbeddingLookup`, and for another operator or inputs of other shapes.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.MultiFieldEmbeddingLookup(10, 2, 2, param_init="ones")
        >>> weights = ms.Tensor([[1.0, 2.0, 1.0]])
        >>> print(layer(ms.Tensor([[2, 4, 6]]), weights, ms.Tensor([[0, 1, 1]])))
        [[[1. 1.]
          [3. 3.]]]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        field_size: int,
        param_init: Init = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        feature_num_list: tuple[int, ...] | None = None,
        max_norm: float | None = None,
        sparse: bool = True,
        operator: str = "SUM",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            vocab_size, embedding_size, param_init, target, slice_mode, feature_num_list, max_norm,
            sparse, dtype,
        )  # fmt: skip
        owner = "MultiFieldEmbeddingLookup"
        self.field_size = _check.positive_int(owner, "field_size", field_size)
        self.operator = _check.one_of(owner, "operator", operator, ("SUM", "MEAN", "MAX"))

    def construct(  # type: ignore[override]  # MindSpore's subclass takes more inputs
        self, input_indices: Tensor, input_values: Tensor, field_ids: Tensor
    ) -> Tensor:
        shapes = {input_indices.shape, input_values.shape, field_ids.shape}
        if len(shapes) != 1 or input_indices.ndim != 2:
            raise ShapeError(
                f"MultiFieldEmbeddingLookup: got inputs of shapes {sorted(shapes)}; wanted "
                "(batch, length) for all three"
            )
        fields = ops.arange(self.field_size).reshape(1, 1, -1)
        member = ops.equal(ops.expand_dims(field_ids, -1), fields)  # (batch, length, fields)
        weighted = self._rows(input_indices) * ops.expand_dims(input_values, -1)
        share = ops.where(member, ops.expand_dims(input_values, -1), 0.0)
        empty = ops.expand_dims(ops.equal(ops.abs(share).sum(1), 0), -1)
        if self.operator == "MAX":
            used = ops.expand_dims(ops.logical_and(member, ops.not_equal(share, 0)), -1)
            found = ops.amax(ops.where(used, ops.expand_dims(weighted, 2), -math.inf), 1)
            return ops.where(empty, 0.0, found)
        found = ops.matmul(member.astype(weighted.dtype).swapaxes(1, 2), weighted)
        if self.operator == "MEAN":
            total = ops.expand_dims(share.sum(1), -1)
            found = found / ops.where(ops.equal(total, 0), 1.0, total)
        return ops.where(empty, 0.0, found)
