"""Tensor methods take the parameter names and call forms of MindSpore's methods.

Each row has calls that must compute the same; the first is the plainest. The forms are those that
MindSpore 2.10 accepts, several per method where it has overloads.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor

F = np.float32
VALUES = {
    "x": Tensor(np.array([[0.5, -1.5, 2.0], [3.0, 0.0, -0.5]], F)),
    "y": Tensor(np.array([[1.0, 2.0, 0.5], [0.25, 4.0, 3.0]], F)),
    "s": Tensor(np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.5, 1.0, 4.0]], F)),
    "t": Tensor(np.arange(24, dtype=F).reshape(2, 3, 4)),
    "tall": Tensor(np.array([[2.0, 1.0], [1.0, 3.0], [0.5, 1.0]], F)),
    "v": Tensor(np.array([1.0, 2.0, 3.0], F)),
    "i": Tensor(np.array([[1, 2, 3], [4, 5, 6]], np.int32)),
    "k": Tensor(np.array([[0, 2, 1], [1, 0, 2]])),
    "n": Tensor(np.array([1, 2])),
    "b": Tensor(np.array([[True, False, True], [False, True, True]])),
    "c": Tensor(np.array([[True, True, False], [False, False, True]])),
    "image": Tensor(np.arange(18, dtype=F).reshape(1, 2, 3, 3)),
    "columns": Tensor(np.arange(32, dtype=F).reshape(1, 8, 4)),
}

# a row per method; indented lines continue it
SAME = """
v.addmv(s, v, beta=2, alpha=3); v.addmv(s, v, 2, 3); v.addmv(mat=s, vec=v, beta=2, alpha=3)
x.approximate_equal(y, 0.6); x.approximate_equal(other=y, tolerance=0.6)
v.broadcast_to((2, 3)); v.broadcast_to(2, 3); v.broadcast_to(shape=(2, 3));
  v.broadcast_to([2, 3])
t.flatten(1, 2); t.flatten("C", 1, 2); t.flatten("C", start_dim=1); t.flatten(start_dim=1)
t.flatten("F"); t.flatten(order="F"); t.flatten("F", 0); t.flatten("F", end_dim=-1)
y.float_power(2.0); y.float_power(other=2.0); y.float_power(exponent=2.0);
  ms.ops.float_power(y, 2.0)
x.isclose(y, 0.1, 0.6, True); x.isclose(other=y, rtol=0.1, atol=0.6);
  x.isclose(x2=y, atol=0.6, rtol=0.1)
b.logical_and(c); b.logical_and(other=c); b.logical_and(y=c)
b.logical_or(c); b.logical_or(other=c); b.logical_or(y=c)
s.matmul(s); s.matmul(other=s); s.matmul(tensor2=s); s @ s
x.multiply(y); x.multiply(value=y); x.multiply(other=y); x * y
x.new_zeros((2, 2), dtype=ms.int32); x.new_zeros((2, 2), ms.int32);
  x.new_zeros(size=(2, 2), dtype=ms.int32)
x.new_ones((2, 2), dtype=ms.int32); x.new_ones(2, 2, dtype=ms.int32);
  x.new_ones([2, 2], "int32")
x.new_empty((3,)); x.new_empty(3); x.new_empty(size=(3,)); x.new_empty(size=3)
s.ormqr(v, s, True, False); s.ormqr(input2=v, input3=s); s.ormqr(tau=v, other=s);
  ms.ops.ormqr(s, v, s)
x.permute(1, 0); x.permute((1, 0)); x.permute(dims=(1, 0)); x.permute(axis=[1, 0])
tall.qr(); tall.qr(True); tall.qr(some=True); tall.qr("reduced"); tall.qr(mode="reduced")
tall.qr(False); tall.qr(some=False); tall.qr("complete"); tall.qr(mode="complete")
x.remainder(y); x.remainder(other=y); x.remainder(divisor=y); x % y
x.remainder(2.0); x.remainder(other=2.0); x.remainder(divisor=2.0); x % 2.0
x.reshape(3, 2); x.reshape((3, 2)); x.reshape(shape=(3, 2)); x.reshape(shape=[3, -1])
i.reverse_sequence(ms.Tensor([1, 2, 2]), 0, 1);
  i.reverse_sequence(ms.Tensor([1, 2, 2]), batch_dim=1)
x.scatter(1, k, y); x.scatter(dim=1, index=k, src=y); x.scatter(axis=1, index=k, src=y);
  x.scatter(1, k, y, "none")
x.scatter(1, k, y, "add"); x.scatter(dim=1, index=k, src=y, reduce="add");
  x.scatter_add(1, k, y)
v.searchsorted(y, "right"); v.searchsorted(v=y, side="right");
  v.searchsorted(values=y, right=True)
v.searchsorted(y); v.searchsorted(v=y, side="left", sorter=None);
  ms.ops.searchsorted(v, y, out_int32=True)
x.softmax(1); x.softmax(1, ms.float32); x.softmax(axis=1, dtype=ms.float32); x.softmax(dim=1)
x.sub(y); x.sub(other=y); x.sub(y=y); x - y
x.clone().sub_(y); x.clone().sub_(other=y); x.clone().sub_(y=y)
x.tile((2, 1)); x.tile(2, 1); x.tile(dims=(2, 1)); x.tile(reps=(2, 1)); x.tile(dims=[2, 1])
x.to(ms.int32); x.to(i); x.to(other=i); x.to(other=i, non_blocking=True, copy=True);
  x.to(dtype=ms.int32)
x.view(3, 2); x.view((3, 2)); x.view(shape=(3, 2)); x.view(shape=ms.Tensor([3, 2]))
x.where(b, y); x.where(condition=b, y=y); x.where(condition=b, other=y); x.where(b, other=y)
s.addmm(s, s, beta=2, alpha=3); s.clone().addmm_(s, s, beta=2, alpha=3);
  s.clone().addmm_(mat1=s, mat2=s, beta=2, alpha=3)
ms.ops.unfold(image, 2, 1, 1, 2); image.unfold(2, 1, 1, 2);
  image.unfold(kernel_size=2, padding=1, stride=2)
ms.ops.fold(columns, (3, 3), 2); columns.fold((3, 3), 2);
  columns.fold(output_size=ms.Tensor([3, 3]), kernel_size=2)
ms.ops.col2im(columns.reshape(1, 2, 4, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1));
  columns.reshape(1, 2, 4, 4).col2im(ms.Tensor([3, 3]), kernel_size=[2, 2], dilation=[1, 1],
  padding_value=[0, 0], stride=[1, 1])
"""
ROWS = [
    [" ".join(call.split()) for call in row.split(";")]
    for row in re.split(r"\n(?! )", SAME.strip())
]


def results(call: str, function: Callable[..., object] | None = None) -> list[Tensor]:
    """Return the tensors that a call returns; `function` is the call compiled, None if eager."""
    found = eval(call, {**VALUES, "ms": ms}) if function is None else function(*VALUES.values())
    return list(found) if isinstance(found, tuple) else [found]  # type: ignore[list-item]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., object]]:
    """Return call -> compiled function of all values, from a file, which `jit` can read."""
    file = tmp_path_factory.mktemp("calls") / "method_call_forms.py"
    calls = [call for row in ROWS for call in row[1:]]
    lines = [f"def f{k}({', '.join(VALUES)}):\n    return {c}\n" for k, c in enumerate(calls)]
    file.write_text("import duograph as ms\n" + "".join(lines))
    names = runpy.run_path(str(file))
    return {c: ms.jit(names[f"f{k}"]) for k, c in enumerate(calls)}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_call_forms_compute_the_same(
    row: list[str], compiled: dict[str, Callable[..., object]]
) -> None:
    wanted = results(row[0])
    for call in row[1:]:
        for found in (results(call), results(call, compiled[call])):
            assert len(found) == len(wanted), call
            for one, other in zip(found, wanted, strict=True):
                assert one.dtype == other.dtype and one.shape == other.shape, call
                np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), 1e-5, err_msg=call)


WRONG = [
    ("x.remainder()", "remainder: got no value for 'other'"),
    ("x.remainder(y, divisor=y)", "remainder: got two values for 'other'"),
    ("x.remainder(other=y, divisor=y)", "remainder: got 'other' and 'divisor', .* one argument"),
    ("x.multiply(value=y, other=y)", "multiply: got 'other' and 'value'"),
    ("x.reshape(3, shape=(2, 3))", r"reshape: got shape=\(2, 3\) beside \(3,\); wanted .* once"),
    ("x.tile(dims=(2, 1), reps=2)", "tile: got reps=2 beside"),
    ("x.new_ones(2, size=2)", "new_ones: got size=2 beside"),
    ("t.flatten(1, 2, 3)", r"flatten: got \(1, 2, 3\); wanted at most start_dim, end_dim"),
    ("t.flatten('C', order='C')", "flatten: got 'C' and 'C' for 'order'"),
    ("t.flatten(1, start_dim=1)", "flatten: got 1 and 1 for 'start_dim'"),
    ("v.searchsorted(y, 'middle')", "searchsorted: got side='middle'"),
    ("x.where(b)", "where: .*'y'; wanted where"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[call for call, _ in WRONG])
def test_wrong_calls(call: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        results(call)


def test_bernoulli_draws_with_the_probabilities_in_the_tensor() -> None:
    share = Tensor(np.repeat(np.array([[0.0], [0.25], [1.0]], F), 4000, 1))
    for found in (share.bernoulli(), share.bernoulli(generator=ms.Generator())):
        assert np.abs(found.asnumpy().mean(1) - [0.0, 0.25, 1.0]).max() < 0.05
    assert abs(share.bernoulli(0.5).asnumpy().mean() - 0.5) < 0.05
