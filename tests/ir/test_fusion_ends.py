"""Regions that end in sums over columns or scatters, beside products of matrices."""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.ir.verify import verify
from duograph.passes import PassContext
from duograph.passes.fusion import fuse
from ir.graphs import graph_of, shape_of

W = "float32[16, 16]"
P16 = f"%3 = matmul(%0, %1, transpose_a=False, transpose_b=False) : {W}\n"
ENDS = {
    "columns of the product are summed": (
        P16 + f"%4 = neg(%3) : {W}\n"
        "%5 = reduce_sum(%3, axis=(0,), keepdims=False) : float32[16]\nreturn %4, %5",
        ["matmul", "[neg reduce_sum]"],
    ),
    "rows are added to the product": (
        P16 + f"%4 = neg(%3) : {W}\n%5 = scatter_add(%3, %2, %4, axis=0) : {W}\nreturn %5",
        ["matmul", "[neg scatter_add]"],
    ),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_regions_with_ends_are_no_epilogues(case: tuple[str, list[str]]) -> None:
    body, want = case
    graph = graph_of(f"%0: {W}, %1: {W}, %2: int32[16]", body)
    fused = verify(fuse(graph, PassContext(epilogues=frozenset({"matmul"}))))
    assert shape_of(fused) == want


def test_numbers_of_a_product_whose_columns_are_summed() -> None:
    def f(x: ms.Tensor, w: ms.Tensor) -> Any:
        product = ms.ops.matmul(x, w)
        return product * x, product.sum(0)

    x, w = (
        ms.Tensor(np.random.default_rng(k).standard_normal((32, 32)).astype(np.float32))
        for k in (0, 1)
    )
    got, want = (ms.jit(f, jit_level=level)(x, w) for level in ("O1", "O0"))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)
