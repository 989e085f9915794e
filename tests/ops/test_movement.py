"""Both argument styles of the methods, primitive classes, in-place writes: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.types import TensorType

T = ms.Tensor
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = X[0]
V = np.array([3, 1, 2, 1], np.int32)

Call = Callable[[], Any]
STYLES: dict[str, tuple[Call, Any]] = {
    "transpose all axes": (lambda: T(X).transpose(0, 2, 1), X.transpose(0, 2, 1)),
    "transpose tuple": (lambda: T(X).transpose((2, 0, 1)), X.transpose(2, 0, 1)),
    "transpose two axes": (lambda: T(X).transpose(0, 1), X.swapaxes(0, 1)),
    "transpose two of a matrix": (lambda: T(M).transpose(0, 1), M.T),
    "transpose dim0, dim1": (lambda: T(X).transpose(dim0=0, dim1=2), X.swapaxes(0, 2)),
    "transpose axes=": (lambda: T(X).transpose(axes=(1, 0, 2)), X.transpose(1, 0, 2)),
    "transpose none": (lambda: T(X).transpose(), X.T),
    "ops.transpose input_perm": (lambda: ops.transpose(T(M), input_perm=(1, 0)), M.T),
    "T": (lambda: T(X).T, X.T),
    "permute ints": (lambda: T(X).permute(2, 0, 1), X.transpose(2, 0, 1)),
    "permute tuple": (lambda: T(X).permute((2, 0, 1)), X.transpose(2, 0, 1)),
    "reshape ints": (lambda: T(X).reshape(4, -1), X.reshape(4, -1)),
    "reshape tuple": (lambda: T(X).reshape((4, 6)), X.reshape(4, 6)),
    "reshape to 0-d": (lambda: T(X[:1, :1, :1]).reshape(()), X[0, 0, 0]),
    "view": (lambda: T(X).view(-1, 2), X.reshape(-1, 2)),
    "view dtype": (lambda: T(M).view(ms.int32), M.view(np.int32)),
    "squeeze": (lambda: T(X[:1]).squeeze(), X[0]),
    "squeeze axis": (lambda: T(X[:1]).squeeze(axis=0), X[0]),
    "squeeze dim": (lambda: T(X[:1]).squeeze(dim=0), X[0]),
    "squeeze of two": (lambda: T(X).squeeze(0), X),
    "unsqueeze": (lambda: T(M).unsqueeze(-1), M[..., None]),
    "expand_dims": (lambda: T(M).expand_dims(axis=1), M[:, None]),
    "flatten": (lambda: T(X).flatten(), X.reshape(-1)),
    "flatten start_dim": (lambda: T(X).flatten(start_dim=1), X.reshape(2, 12)),
    "flatten order": (lambda: T(M).flatten("F"), M.flatten("F")),
    "split size": (lambda: T(M).split(2, 1), [M[:, :2], M[:, 2:]]),
    "split sections": (lambda: T(M).split([1, 3], axis=1), [M[:, :1], M[:, 1:]]),
    "split dim": (lambda: T(M).split(3, dim=1), [M[:, :3], M[:, 3:]]),
    "chunk": (lambda: T(V).chunk(3), [V[:2], V[2:]]),
    "tile ints": (lambda: T(V).tile(2), np.tile(V, 2)),
    "tile tuple": (lambda: T(V).tile((2, 2)), np.tile(V, (2, 2))),
    "repeat as tile": (lambda: T(V).repeat(2, 1), np.tile(V, (2, 1))),
    "repeat of old": (lambda: T(V).repeat(2, axis=0), V.repeat(2)),
    "expand": (lambda: T(V).expand(2, -1), np.broadcast_to(V, (2, 4))),
    "broadcast_to": (lambda: T(V).broadcast_to((2, 4)), np.broadcast_to(V, (2, 4))),
    "gather by axis": (lambda: T(M).gather(T([2, 0]), 0), M[[2, 0]]),
    "gather by dim": (
        lambda: T(M).gather(1, T([[0], [1], [3]])),
        np.take_along_axis(M, np.array([[0], [1], [3]]), 1),
    ),
    "select by dim": (lambda: T(M).select(1, 2), M[:, 2]),
    "select by condition": (lambda: T(M).select(T(M > 4), 0.0), np.where(M > 4, M, 0)),
    "take flat": (lambda: T(M).take(T([0, 5])), M.reshape(-1)[[0, 5]]),
    "take axis": (lambda: T(M).take([0, 9], 1), M[:, [0, 3]]),
    "take wrap": (lambda: T(M).take([0, 5], 1, "wrap"), M[:, [0, 1]]),
    "sort": (lambda: T(V).sort(descending=True)[1], np.array([0, 2, 1, 3])),
    "sort dim": (lambda: T(M).sort(dim=0)[0], M),
    "topk": (lambda: T(M).topk(2, dim=1)[0], M[:, [3, 2]]),
    "argsort": (lambda: T(V).argsort(), np.array([1, 3, 2, 0])),
    "unique of Tensor": (lambda: T(V).unique(), np.array([1, 2, 3])),
    "ops.unique": (lambda: ops.unique(T(V))[0], np.array([3, 1, 2])),
    "tensor_split": (lambda: T(V).tensor_split((1, 3)), [V[:1], V[1:3], V[3:]]),
    "strided_slice masks": (
        lambda: ops.strided_slice(
            T(X),
            (0, 9, 1, 0),
            (0, 0, 3, 4),
            (1, 1, 1, 2),
            end_mask=1,
            new_axis_mask=2,
            shrink_axis_mask=4,
        ),
        X[0:, None, 1, 0:4:2],
    ),
    "one_hot of four": (
        lambda: ops.one_hot(T(V), 4, T(1.0), T(0.0)),
        np.eye(4, dtype=np.float32)[V],
    ),
    "index_select": (lambda: T(M).index_select(dim=1, index=T([1])), M[:, [1]]),
    "scatter_add by dim": (
        lambda: T(M).scatter_add(1, T([[0, 0]]), T([[1.0, 2.0]])),
        M + np.eye(3, 4) * [[3], [0], [0]],
    ),
    "scatter_add by rows": (
        lambda: T(M).scatter_add(T([[0, 0]]), T([3.0])),
        M + np.eye(3, 4) * [[3], [0], [0]],
    ),
    "resize": (lambda: T(V).resize(2, 3), np.array([[3, 1, 2], [1, 0, 0]])),
    "choose": (lambda: T([0, 1]).choose([T([1, 2]), T([3, 4])]), np.array([1, 4])),
    "type": (lambda: T(V).type(ms.float16), V.astype(np.float16)),
    "to other": (lambda: T(V).to(T(M)), V.astype(np.float32)),
    "float": (lambda: T(V).float(), V.astype(np.float32)),
}


def compare(got: Any, want: Any) -> None:
    if isinstance(got, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w)
        return
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("name", STYLES)
def test_styles(name: str) -> None:
    """B19: both argument styles of the methods, by position and by keyword"""
    call, want = STYLES[name]
    compare(call(), want)


PRIMITIVES: dict[str, tuple[Call, Any]] = {
    "Reshape": (lambda: ops.Reshape()(T(X), (6, -1)), X.reshape(6, -1)),
    "Transpose": (lambda: ops.Transpose()(T(X), (0, 2, 1)), X.transpose(0, 2, 1)),
    "Concat": (lambda: ops.Concat(1)((T(M), T(M))), np.concatenate([M, M], 1)),
    "Concat axis=": (lambda: ops.Concat(axis=-1)([T(M), T(M)]), np.concatenate([M, M], 1)),
    "Stack": (lambda: ops.Stack(axis=1)([T(M), T(M)]), np.stack([M, M], 1)),
    "Tile": (lambda: ops.Tile()(T(V), (2,)), np.tile(V, 2)),
    "Squeeze": (lambda: ops.Squeeze(0)(T(X[:1])), X[0]),
    "ExpandDims": (lambda: ops.ExpandDims()(T(M), -1), M[..., None]),
    "Split": (lambda: ops.Split(1, 2)(T(M)), [M[:, :2], M[:, 2:]]),
    "Unstack": (lambda: ops.Unstack(1)(T(M)), list(M.T)),
    "OneHot": (lambda: ops.OneHot()(T(V), 4, T(1.0), T(0.0)), np.eye(4, dtype=np.float32)[V]),
    "Gather": (lambda: ops.Gather()(T(M), T([1]), 1), M[:, [1]]),
    "GatherD": (lambda: ops.GatherD()(T(M), 0, T([[0, 1, 2, 0]])), M[[0, 1, 2, 0], range(4)][None]),
    "GatherNd": (lambda: ops.GatherNd()(T(M), T([[0, 1], [2, 3]])), M[[0, 2], [1, 3]]),
    "BroadcastTo": (lambda: ops.BroadcastTo((2, 4))(T(V)), np.broadcast_to(V, (2, 4))),
    "Slice": (lambda: ops.Slice()(T(M), (0, 1), (2, 2)), M[:2, 1:3]),
    "StridedSlice": (
        lambda: ops.StridedSlice(end_mask=1)(T(M), (0, 0), (0, 3), (1, 2)),
        M[0:, 0:3:2],
    ),
    "Pad": (lambda: ops.Pad(((1, 0), (0, 2)))(T(M)), np.pad(M, ((1, 0), (0, 2)))),
    "MirrorPad": (
        lambda: ops.MirrorPad("SYMMETRIC")(T(M), T([[1, 1], [2, 0]])),
        np.pad(M, ((1, 1), (2, 0)), "symmetric"),
    ),
    "ReverseV2": (lambda: ops.ReverseV2([0])(T(M)), M[::-1]),
    "TopK": (lambda: ops.TopK()(T(M), 1)[0], M[:, -1:]),
    "Sort": (lambda: ops.Sort(0, True)(T(M))[0], M[::-1]),
    "Fill": (lambda: ops.Fill()(ms.int32, (2, 2), 3), np.full((2, 2), 3)),
    "Eye": (lambda: ops.Eye()(2, 3, ms.float32), np.eye(2, 3)),
    "LinSpace": (lambda: ops.LinSpace()(T(0.0), T(1.0), 5), np.linspace(0, 1, 5, dtype=np.float32)),
    "Range": (lambda: ops.Range()(T(1), T(7), T(2)), np.arange(1, 7, 2)),
    "Meshgrid": (
        lambda: ops.Meshgrid("ij")((T(V), T(V[:2]))),
        np.meshgrid(V, V[:2], indexing="ij"),
    ),
    "ScatterNd": (lambda: ops.ScatterNd()(T([[1], [1]]), T([2.0, 3.0]), (3,)), np.array([0, 5, 0])),
    "TensorScatterUpdate": (
        lambda: ops.TensorScatterUpdate()(T(V), T([[0]]), T([9], ms.int32)),
        np.array([9, 1, 2, 1]),
    ),
    "Unique": (lambda: ops.Unique()(T(V))[1], np.array([0, 1, 2, 1])),
    "UnsortedSegmentSum": (
        lambda: ops.UnsortedSegmentSum()(T(M), T([0, 1, 0]), 2),
        np.stack([M[0] + M[2], M[1]]),
    ),
    "DepthToSpace": (
        lambda: ops.DepthToSpace(2)(T(X.reshape(1, 4, 2, 3))).reshape(-1)[:3],
        np.array([0, 6, 1]),
    ),
    "Shape": (lambda: T(list(ops.Shape()(T(X)))), np.array([2, 3, 4])),
    "InvertPermutation": (lambda: T(list(ops.InvertPermutation()((2, 0, 1)))), np.array([1, 2, 0])),
    "UnravelIndex": (lambda: ops.UnravelIndex()(T([7]), T([3, 4])), np.array([[1], [3]])),
    "IndexFill": (
        lambda: ops.IndexFill()(T(M), 1, T([0]), T(9.0)),
        np.where(np.arange(4) == 0, 9, M),
    ),
    "EmbeddingLookup": (
        lambda: ops.EmbeddingLookup()(T(M), T([0, 7]), 0),
        np.stack([M[0], 0 * M[0]]),
    ),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name: str) -> None:
    """The primitive classes take MindSpore's arguments"""
    call, want = PRIMITIVES[name]
    compare(call(), want)


def test_primitive_arguments() -> None:
    with pytest.raises(TypeError, match=r"Concat: .*depth"):
        ops.Concat(depth=1)
    assert ops.Concat(2).axis == 2


IN_PLACE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "index_add_": (
        lambda x: x.index_add_(0, T([1, 1]), T(M[:2])),
        M + np.array([0, 1, 0])[:, None] * (M[0] + M[1]),
    ),
    "index_fill_": (lambda x: x.index_fill_(1, T([0]), 7.0), np.where(np.arange(4) == 0, 7, M)),
    "index_copy_": (lambda x: x.index_copy_(0, T([2]), T(M[:1])), M[[0, 1, 0]]),
    "scatter_": (lambda x: x.scatter_(0, T([[2, 2, 2, 2]]), T(M[:1])), M[[0, 1, 0]]),
    "scatter_add_": (
        lambda x: x.scatter_add_(0, T([[0, 0, 0, 0]]), T(M[1:2])),
        M + np.array([1, 0, 0])[:, None] * M[1],
    ),
    "masked_fill_": (lambda x: x.masked_fill_(T(M > 4), 0.0), np.where(M > 4, 0, M)),
    "masked_scatter_": (
        lambda x: x.masked_scatter_(T(M < 2), T([8.0, 9.0])),
        np.where(M < 2, M + 8, M),
    ),
    "index_put_": (
        lambda x: x.index_put_((T([0, 0]), T([1, 1])), T([1.0, 2.0]), True),
        M + np.eye(3, 4, 1) * [[3], [0], [0]],
    ),
    "fill_diagonal_": (lambda x: x.fill_diagonal_(5.0), M * (1 - np.eye(3, 4)) + 5 * np.eye(3, 4)),
    "zero_": (lambda x: x.zero_(), 0 * M),
    "fill_": (lambda x: x.fill_(3), 0 * M + 3),
    "copy_": (lambda x: x.copy_(T(V)), np.broadcast_to(V, (3, 4))),
    "ops.index_add": (
        lambda x: ops.index_add(x, T([2]), T(M[:1]), 0),
        M + np.array([0, 0, 1])[:, None] * M[0],
    ),
    "ops.scatter_update": (lambda x: ops.scatter_update(x, T([2]), T(M[:1])), M[[0, 1, 0]]),
    "ops.scatter_nd_add": (
        lambda x: ops.scatter_nd_add(x, T([[0, 1], [0, 1]]), T([1.0, 2.0])),
        M + np.eye(3, 4, 1) * [[3], [0], [0]],
    ),
    "ScatterAdd": (
        lambda x: ops.ScatterAdd()(x, T([0, 0]), T(M[:2])),
        M + np.array([1, 0, 0])[:, None] * (M[0] + M[1]),
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    """In-place writes give the name another buffer: what was read before stays"""
    call, want = IN_PLACE[name]
    for x in (T(M), ms.Parameter(T(M), name="x")):
        before = x.reshape(-1)
        result = call(x)
        # functions return the new value as a Tensor, as MindSpore's do; methods return the tensor
        assert result is x or not name.endswith("_")
        np.testing.assert_allclose(result.asnumpy(), want)
        np.testing.assert_allclose(x.asnumpy(), want)
        np.testing.assert_array_equal(before.asnumpy(), M.reshape(-1))


def test_high_rank() -> None:
    shape = (2, 1, 2, 1, 2, 1, 2, 1, 2)
    x = np.arange(32, dtype=np.float32).reshape(shape)
    t = T(x)
    order = (8, 0, 7, 1, 6, 2, 5, 3, 4)
    compare(t.transpose(order), x.transpose(order))
    compare(ops.flip(t, (0, 4, 8)), np.flip(x, (0, 4, 8)))
    compare(t[..., ::-1, 0, 1], x[..., ::-1, 0, 1])
    compare(ops.concat((t, t), 6), np.concatenate((x, x), 6))


def test_sort_decomposed() -> None:
    """A backend without a sort gets a bitonic one: stable, NaN last, any length"""
    from duograph.ir.builder import trace
    from duograph.ops.sorting import sort_by

    graph = trace(sort_by.decompose_rule, [TensorType.of((5, 7), ms.float32)], False,
                  {"axis": 1, "descending": True})  # fmt: skip
    assert "sort" not in {node.op.name for node in graph.nodes}
    assert graph.types[graph.outputs[1]] is TensorType.of((5, 7), ms.int64)
