"""The table of calls of duograph.mint that tests compare with values of PyTorch.

A row is a source text that is evaluated with `mint` (the package, or PyTorch when the values are
recorded) and the tensors of `inputs`. `record_mint_values.py` writes the values to `values.json`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _wave(*shape: int, shift: float = 0.0) -> NDArray[np.float32]:
    """Return different floats in (-2, 2) without a pattern, for any shape."""
    n = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (2 * np.sin(n * 12.9898 + 1.5 + shift)).astype(np.float32).reshape(shape)


def inputs() -> dict[str, NDArray[np.generic]]:
    """Return the operands by the names that the rows use; floating ones get gradients."""
    nan = np.array([1.0, np.nan, -np.inf, np.inf, 0.0, -2.5], np.float32)
    return {
        "x": _wave(2, 3), "y": _wave(2, 3, shift=1.0), "z": _wave(3, shift=2.0),
        "p": np.abs(_wave(2, 3, shift=3.0)) + 0.125, "u": _wave(2, 3, shift=4.0) * 0.45,
        "v": _wave(4), "w": _wave(4, shift=1.0), "s": np.float32(1.25).reshape(()),
        "e": np.zeros((0, 3), np.float32), "one": np.array([[0.75]], np.float32),
        "d": _wave(2, 3).astype(np.float64), "nan": nan,
        "m": _wave(3, 4), "k": _wave(4, 2), "sq": _wave(3, 3) + 3 * np.eye(3, dtype=np.float32),
        "b3": _wave(2, 2, 3), "c3": _wave(2, 3, 2, shift=1.0),
        "seq": _wave(2, 4, 5), "img": _wave(1, 2, 4, 5), "big": _wave(2, 4, 6, 6),
        "vol": _wave(1, 2, 4, 4, 4), "k1": _wave(2, 4, 3), "k2": _wave(4, 2, 3, 3),
        "kg": _wave(4, 2, 3, 3, shift=1.0), "k3": _wave(3, 2, 2, 2, 2), "bias2": _wave(2),
        "bias4": _wave(4, shift=2.0), "grid": _wave(1, 3, 2, 2) * 0.6,
        "table": _wave(5, 3), "logits": _wave(4, 3), "probs": 1 / (1 + np.exp(-_wave(4, 3))),
        "soft": np.full((4, 3), 1 / 3, np.float32),
        "i": np.array([[1, 5, 2], [4, 0, 7]], np.int32),
        "j": np.array([[2, 3, 2], [1, 2, 5]], np.int32),
        "neg": np.array([[-7, 5, -2], [4, 0, 7]], np.int64),
        "t": np.array([True, False, True]),
        "f": np.array([[True, False, False], [True, True, True]]),
        "ix": np.array([[0, 2], [1, 1]], np.int64), "iv": np.array([1, 0, 1], np.int64),
        "once": np.array([[0, 2], [1, 0]], np.int64),
        "labels": np.array([0, 2, 1, 2], np.int64), "ids": np.array([[1, 4], [0, 1]], np.int64),
        "rep": np.array([3, 1, 1, 3, 2, 2, 2], np.int64),
        "sign": np.array([1, -1, 1, -1], np.int64),
        "wt": np.array([0.5, 2.0, 1.0], np.float32), "flo": np.float32([-1.6, 0.75, 2.9]),
    }  # fmt: skip


CONSTANTS = ("wt", "flo", "nan")  # floating operands without a gradient

CREATION = """
mint.zeros((2, 3))
mint.zeros(3, dtype=int32)
mint.ones((2,))
mint.ones((0, 2), dtype=float64)
mint.full((2, 2), 7)
mint.full((2,), 1.5)
mint.full((2,), True)
mint.full((2,), 3, dtype=float16)
mint.zeros_like(i)
mint.ones_like(x, dtype=int64)
mint.full_like(x, 2)
mint.arange(5)
mint.arange(1, 2, 0.25)
mint.arange(6, 0, -2)
mint.arange(3, dtype=float32)
mint.linspace(0, 1, 5)
mint.linspace(-1.0, 2.0, 1)
mint.eye(3)
mint.eye(2, 3, dtype=int32)
mint.meshgrid(z, v, indexing="ij")
mint.meshgrid(z, v, indexing="xy")
mint.polar(p, y)
mint.empty_like(e)
mint.tril(x)
mint.triu(x, 1)
mint.triu(m, diagonal=-1)
mint.tril(b3, diagonal=1)
mint.diag(v)
mint.diag(v, 1)
mint.diag(m, diagonal=-1)
mint.clone(x)
"""

ELEMENTWISE = """
mint.abs(x)
mint.acos(u)
mint.acosh(p + 1)
mint.add(x, y)
mint.add(x, z)
mint.add(i, j, alpha=2)
mint.add(x, 2, alpha=0.5)
mint.add(i, 1.5)
mint.add(x, i, alpha=0.5)
mint.sub(x, i, alpha=0.5)
mint.add(i, x, alpha=0.5)
mint.add(x, s)
mint.add(x, d)
mint.add(e, 1)
mint.addcdiv(x, y, p, value=0.5)
mint.addcmul(x, y, z, value=2)
mint.arccos(u)
mint.arccosh(p + 1)
mint.arcsin(u)
mint.arcsinh(x)
mint.arctan(x)
mint.arctan2(x, y)
mint.arctanh(u)
mint.asin(u)
mint.asinh(x)
mint.atan(x)
mint.atan2(x, y)
mint.atanh(u)
mint.bitwise_and(i, j)
mint.bitwise_not(i)
mint.bitwise_not(t)
mint.bitwise_or(i, 1)
mint.bitwise_xor(i, j)
mint.ceil(x)
mint.clamp(x, -0.5, 0.5)
mint.clamp(x, min=0.25)
mint.clamp(x, max=z)
mint.clamp(i, 2, 4)
mint.clip(x, 1, -1)
mint.cos(x)
mint.cosh(x)
mint.div(x, p)
mint.div(i, j)
mint.div(x, 2, rounding_mode="floor")
mint.div(neg, 2, rounding_mode="trunc")
mint.div(neg, 2, rounding_mode="floor")
mint.divide(x, p)
mint.eq(i, j)
mint.eq(x, 1)
mint.erf(x)
mint.erfc(x)
mint.erfinv(u)
mint.exp(x)
mint.exp(i)
mint.exp2(x)
mint.expm1(x)
mint.fix(x)
mint.float_power(i, 2)
mint.floor(x)
mint.floor(neg)
mint.floor_divide(neg, 2)
mint.floor_divide(flo, 0.75)
mint.fmod(x, 0.75)
mint.fmod(neg, 3)
mint.frac(x)
mint.gcd(i, j)
mint.gcd(neg, ix.sum())
mint.ge(x, y)
mint.greater(i, j)
mint.greater_equal(i, j)
mint.gt(x, 0)
mint.isclose(x, x + 1e-6)
mint.isclose(nan, nan, equal_nan=True)
mint.isfinite(nan)
mint.isinf(nan)
mint.isnan(nan)
mint.isneginf(nan)
mint.le(x, y)
mint.lerp(x, y, 0.25)
mint.lerp(x, y, p)
mint.less(i, j)
mint.less_equal(i, j)
mint.log(p)
mint.log10(p)
mint.log1p(p)
mint.log2(p)
mint.logaddexp(x, y)
mint.logaddexp2(x, y)
mint.logical_and(t, iv)
mint.logical_not(i)
mint.logical_or(t, iv)
mint.logical_xor(t, iv)
mint.lt(x, y)
mint.maximum(x, y)
mint.minimum(x, z)
mint.mul(x, z)
mint.mul(i, 2.5)
mint.nan_to_num(nan)
mint.nan_to_num(nan, 1.0, 2.0, 3.0)
mint.ne(i, j)
mint.neg(x)
mint.negative(i)
mint.not_equal(i, 2)
mint.pow(p, 1.5)
mint.pow(p, x)
mint.pow(2, x)
mint.pow(i, 2)
mint.reciprocal(p)
mint.remainder(x, 0.75)
mint.remainder(neg, 3)
mint.round(x)
mint.round(x, decimals=1)
mint.rsqrt(p)
mint.sigmoid(x)
mint.sign(x)
mint.sign(neg)
mint.sin(x)
mint.sin(i)
mint.sinc(x)
mint.sinh(x)
mint.sqrt(p)
mint.square(x)
mint.sub(x, y, alpha=2)
mint.sub(i, 1)
mint.tan(u)
mint.tanh(x)
mint.trunc(x)
mint.where(x > 0, x, y)
mint.where(x > 0, x, 0.5)
mint.where(x > 0)
mint.xlogy(x, p)
mint.xlogy(p, 2.0)
mint.real(x)
mint.special.erfc(x)
mint.special.exp2(x)
mint.special.expm1(x)
mint.special.log1p(p)
mint.special.log_softmax(x, 1)
mint.special.round(x)
mint.special.sinc(x)
"""

REDUCTIONS = """
mint.sum(x)
mint.sum(i)
mint.sum(f)
mint.sum(x, 1)
mint.sum(x, (0, 1), keepdim=True)
mint.sum(x, dim=-1, dtype=float64)
mint.sum(e, 0)
mint.mean(x)
mint.mean(x, 0, True)
mint.mean(i, dtype=float32)
mint.mean(b3, (0, 2))
mint.prod(x)
mint.prod(i, 1)
mint.prod(x, 0, True)
mint.nansum(nan[:2])
mint.all(f)
mint.all(f, 1)
mint.all(x, 0, True)
mint.any(f, 0)
mint.any(i)
mint.max(x)
mint.max(x, 1)
mint.max(i, 0, True)
mint.max(x, y)
mint.min(x)
mint.min(x, dim=0, keepdim=True)
mint.min(x, y)
mint.amax(x)
mint.amax(x, (0, 1))
mint.amin(x, 1, True)
mint.argmax(x)
mint.argmax(x, 1, True)
mint.argmin(x, dim=0)
mint.median(x)
mint.median(x, 1)
mint.median(v, 0, True)
mint.var(x)
mint.var(x, 1, correction=0)
mint.var(x, dim=(0, 1), keepdim=True)
mint.std(x, 0)
mint.std(x, 1, correction=2, keepdim=True)
mint.var_mean(x, 1)
mint.std_mean(x)
mint.logsumexp(x, 1)
mint.logsumexp(x, (0, 1), True)
mint.count_nonzero(i)
mint.count_nonzero(i, 1)
mint.cumsum(x, 1)
mint.cumsum(i, 0)
mint.cumsum(f, 1)
mint.cumprod(x, 0)
mint.cumprod(i, dim=1)
mint.cummax(x, 1)
mint.cummin(x, 0)
mint.softmax(x, 1)
mint.softmax(i, 0, dtype=float32)
mint.norm(x)
mint.norm(x, 1)
mint.norm(x, 3, 1, True)
mint.norm(x, float("inf"), 0)
mint.norm(x, "nuc")
mint.norm(x, dim=1)
mint.linalg.norm(x)
mint.linalg.norm(v, 3)
mint.linalg.norm(x, "fro", (0, 1), True)
mint.linalg.norm(x, 1)
mint.linalg.vector_norm(x)
mint.linalg.vector_norm(x, 3, 1)
mint.linalg.vector_norm(x, 0)
mint.linalg.matrix_norm(x)
mint.linalg.matrix_norm(b3, 1, keepdim=True)
mint.linalg.matrix_norm(x, float("inf"))
mint.linalg.matrix_norm(b3, 2)
mint.trace(sq)
"""

MOVEMENT = """
mint.broadcast_to(z, (2, 3))
mint.broadcast_to(z, (2, -1))
mint.cat((x, y))
mint.cat([x, y], dim=1)
mint.cat((x, i), 0)
mint.concat((x, x, y), -1)
mint.chunk(seq, 3, 1)
mint.chunk(v, 3)
mint.diff(x)
mint.diff(x, 1, 0)
mint.diff(v, 2)
mint.diff(v, prepend=z, append=z)
mint.dstack((x, y))
mint.flatten(b3)
mint.flatten(b3, 1)
mint.flatten(b3, 0, 1)
mint.flatten(s)
mint.flip(x, (0, 1))
mint.flip(x, [1])
mint.hstack((x, y))
mint.narrow(x, 1, 1, 2)
mint.narrow(x, 1, -2, 1)
mint.permute(b3, (2, 0, 1))
mint.permute(b3, (-1, 0, 1))
mint.ravel(x)
mint.repeat_interleave(x, 2)
mint.repeat_interleave(x, 2, dim=1)
mint.repeat_interleave(z, iv)
mint.reshape(x, (3, 2))
mint.reshape(x, (-1,))
mint.roll(x, 1)
mint.roll(x, (1, 2), (0, 1))
mint.roll(x, 1, 1)
mint.select(x, 1, 2)
mint.select(x, 0, -1)
mint.split(seq, 2, 1)
mint.split(seq, [1, 4], dim=2)
mint.squeeze(one, 0)
mint.squeeze(x, 0)
mint.squeeze(one, (0, 1))
mint.stack((x, y))
mint.stack([x, y], dim=-1)
mint.swapaxes(b3, 0, 2)
mint.t(x)
mint.t(v)
mint.tile(x, (2,))
mint.tile(x, (2, 1, 2))
mint.transpose(b3, 0, 1)
mint.transpose(x, -1, 0)
mint.unbind(x)
mint.unbind(x, 1)
mint.unsqueeze(x, 0)
mint.unsqueeze(x, -1)
"""

INDEXING = """
mint.argsort(x)
mint.argsort(x, 0, True)
mint.bincount(rep)
mint.bincount(rep, minlength=6)
mint.gather(x, 1, ix)
mint.gather(m, 0, ix)
mint.histc(wt, 4)
mint.histc(wt, bins=3, min=0, max=3)
mint.index_add(x, 0, iv, sq)
mint.index_add(x, 1, iv, y, alpha=2)
mint.index_select(x, 1, iv)
mint.index_select(m, 0, iv)
mint.kthvalue(x, 2)
mint.kthvalue(x, 1, 0, True)
mint.masked_select(x, f)
mint.nonzero(i)
mint.nonzero(t, as_tuple=True)
mint.scatter(x, 1, once, y[:, :2])
mint.scatter(x, 1, ix, 9.0)
mint.scatter_add(x, 1, ix, y[:, :2])
mint.searchsorted(mint.sort(v)[0], w)
mint.searchsorted(mint.sort(v)[0], w, right=True, out_int32=True)
mint.sort(x)
mint.sort(x, dim=0, descending=True)
mint.sort(i, stable=True)
mint.take(x, ix)
mint.topk(x, 2)
mint.topk(x, 1, 0, largest=False)
mint.unique(rep)
mint.unique(rep, return_inverse=True, return_counts=True)
mint.unique(ix, dim=0)
mint.unique_consecutive(rep)
mint.unique_consecutive(rep, return_inverse=True, return_counts=True)
"""

MATRICES = """
mint.addbmm(sq[:2, :2], b3, c3, beta=2, alpha=0.5)
mint.addmm(y[:, :2], x, c3[0])
mint.addmm(s, x, m, beta=0.5, alpha=2)
mint.addmv(v[:2], x, z, beta=2)
mint.baddbmm(s, b3, c3, beta=2, alpha=0.5)
mint.bmm(b3, c3)
mint.cdist(x, y)
mint.cdist(b3, b3 + 1, p=1.0)
mint.cross(x, y)
mint.cross(x, y, dim=1)
mint.dot(v, w)
mint.einsum("ij,jk->ik", x, m)
mint.einsum("bij->bji", b3)
mint.einsum(x, [0, 1], m, [1, 2], [0, 2])
mint.einsum(v, [..., 1], w, [..., 2], [..., 1, 2])
mint.einsum(x, [0, 1])
mint.inverse(sq)
mint.linalg.inv(sq)
mint.linalg.qr(sq)
mint.matmul(x, m)
mint.matmul(b3, c3)
mint.matmul(v, k)
mint.mm(x, m)
mint.mv(x, z)
mint.outer(v, z)
mint.triangular_solve(m, sq)
mint.triangular_solve(m, sq, upper=False, transpose=True)
mint.triangular_solve(m, sq, unitriangular=True)
mint.vdot(v, w)
mint.conv_tbc(b3, mint.reshape(seq[0, :3, :4], (2, 3, 2)), bias2, pad=1)
"""

FUNCTIONAL = """
F.adaptive_avg_pool1d(seq, 2)
F.adaptive_avg_pool2d(img, (2, 3))
F.adaptive_avg_pool2d(img, (None, 2))
F.adaptive_avg_pool3d(vol, 2)
F.adaptive_max_pool1d(seq, 2)
F.adaptive_max_pool2d(img, 2, return_indices=True)
F.avg_pool1d(seq, 2)
F.avg_pool1d(seq, 3, 1, 1, count_include_pad=False)
F.avg_pool2d(img, 2)
F.avg_pool2d(img, (2, 3), stride=(2, 1), padding=1)
F.avg_pool2d(img, 3, 2, 1, True, False)
F.avg_pool2d(img, 2, divisor_override=3)
F.avg_pool3d(vol, 2, 2, 1, False, False)
F.batch_norm(big, None, None, bias4, bias4, True)
F.binary_cross_entropy(probs, soft)
F.binary_cross_entropy(probs, soft, wt, reduction="sum")
F.binary_cross_entropy_with_logits(logits, soft)
F.binary_cross_entropy_with_logits(logits, soft, reduction="none", pos_weight=wt)
F.conv1d(seq, k1, bias2)
F.conv1d(seq, k1, padding="same", dilation=2)
F.conv2d(img, k2, bias4)
F.conv2d(img, k2, None, (2, 1), (1, 2), 1)
F.conv2d(big, kg, bias4, padding="same", groups=2)
F.conv3d(vol, k3, z, stride=2, padding=1)
F.conv_transpose2d(big, k2, bias2, 2, 1, 1)
F.conv_transpose2d(big, kg, bias4, stride=2, groups=2)
F.cosine_embedding_loss(logits, logits[[1, 0, 3, 2]], sign, margin=0.25)
F.cross_entropy(logits, labels)
F.cross_entropy(logits, labels, weight=wt, ignore_index=2, reduction="sum")
F.cross_entropy(logits, soft, label_smoothing=0.25)
F.cross_entropy(logits, labels, reduction="none", label_smoothing=0.1)
F.dropout(x, 0.5, training=False)
F.elu(x, 0.5)
F.embedding(ids, table)
F.embedding(ids, table, padding_idx=1)
F.fold(mint.reshape(big[:, :, :2, :2], (2, 4, 4)), (4, 4), 2, stride=2)
F.gelu(x)
F.gelu(x, approximate="tanh")
F.glu(v)
F.glu(seq, 1)
F.grid_sample(img, grid)
F.grid_sample(img, grid, "nearest", "border", True)
F.grid_sample(img, grid, padding_mode="reflection", align_corners=False)
F.group_norm(big, 2, bias4, bias4)
F.hardshrink(x)
F.hardsigmoid(x)
F.hardswish(x)
F.hardtanh(x, -0.5, 0.25)
F.interpolate(img, scale_factor=2)
F.interpolate(img, (3, 7), mode="bilinear", align_corners=True)
F.interpolate(img, scale_factor=1.5, mode="bilinear")
F.interpolate(seq, 7, mode="linear")
F.kl_div(F.log_softmax(logits, 1), soft, reduction="batchmean")
F.kl_div(logits, logits[[1, 0, 3, 2]], reduction="sum", log_target=True)
F.kl_div(logits, z, log_target=True)
F.l1_loss(x, y)
F.layer_norm(x, (3,), z, z)
F.layer_norm(b3, (2, 3))
F.leaky_relu(x)
F.leaky_relu(x, 0.25)
F.linear(x, table)
F.linear(x, table[:4], w)
F.log_softmax(x)
F.log_softmax(b3)
F.logsigmoid(x)
F.max_pool2d(img, 2)
F.max_pool2d(img, 3, 1, 1, 1, True, True)
F.max_pool2d(img, 2, dilation=2)
F.max_unpool2d(*F.max_pool2d(big, 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(img, 2, return_indices=True), 2, output_size=(4, 5))
F.mish(x)
F.mse_loss(x, y, reduction="sum")
F.nll_loss(logits, labels)
F.nll_loss(logits, labels, wt, reduction="none")
F.normalize(x)
F.normalize(x, p=1.0, dim=0)
F.one_hot(labels)
F.one_hot(ids, 6)
F.pad(x, (1, 2))
F.pad(x, (1, 0, -1, 1), value=2.5)
F.pad(img, (1, 1, 2, 0), "reflect")
F.pad(seq, (1, 1), mode="replicate")
F.pad(seq, (2, 1), "circular")
F.pixel_shuffle(big, 2)
F.prelu(big, bias4)
F.relu(x)
F.relu6(x * 4)
F.selu(x)
F.sigmoid(x)
F.silu(x)
F.smooth_l1_loss(x, y)
F.smooth_l1_loss(x, y, reduction="none", beta=0.5)
F.smooth_l1_loss(x, y, reduction="sum", beta=0)
F.soft_margin_loss(v, sign)
F.softmax(x)
F.softmax(v)
F.softmax(b3)
F.softmax(x, 0, dtype=float64)
F.softplus(x)
F.softplus(x, 2, 1)
F.softshrink(x)
F.tanh(x)
F.threshold(x, 0.1, 20)
F.unfold(img, 2)
F.unfold(img, (2, 3), padding=1, stride=2)
F.upsample(img, scale_factor=2, mode="bilinear", align_corners=True)
"""

# tensors without axes, without elements, and with NaN
EDGES = """
mint.sum(s)
mint.max(s)
mint.max(s, 0)
mint.argmax(s)
mint.cumsum(s, 0)
mint.softmax(s, 0)
mint.var(s[None], correction=0)
mint.unsqueeze(s, 0)
mint.stack((s, s))
mint.broadcast_to(s, (2, 2))
mint.repeat_interleave(s, 2)
mint.tile(s, (2,))
mint.kthvalue(s, 1)
mint.sort(s)
mint.ravel(s)
mint.permute(s, ())
mint.transpose(s, 0, -1)
mint.norm(s)
mint.median(s)
mint.amax(s)
mint.index_select(s, 0, iv[1])
mint.gather(s, 0, iv[1])
mint.narrow(v, 0, 4, 0)
mint.mean(e)
mint.prod(e, 0)
mint.std(e)
mint.any(e)
mint.all(e, 0)
mint.sum(e, 1, True)
mint.cat((e, x))
mint.chunk(e, 2, 1)
mint.roll(e, 1)
mint.flip(e, (0, 1))
mint.matmul(e, sq)
mint.outer(e[:, 0], z)
mint.norm(e)
mint.linalg.vector_norm(e, dim=0)
mint.reshape(e, (3, 0))
mint.flatten(e)
mint.transpose(e, 0, 1)
mint.argsort(e)
mint.cumsum(e, 0)
mint.sort(e, dim=0)
mint.index_select(e, 1, iv)
mint.count_nonzero(e)
mint.where(e > 0, e, 1.0)
mint.bmm(b3[:0], c3[:0])
mint.einsum("ij,kj->ik", e, x)
mint.repeat_interleave(e, 2, 0)
mint.logsumexp(e, 1)
mint.diff(e)
mint.triu(e)
F.linear(e, table)
F.pad(e, (1, 1))
F.relu(e)
F.softmax(e, 1)
F.layer_norm(e, (3,))
F.one_hot(ids[:0], 3)
F.embedding(ids[:0], table)
F.mse_loss(e, e, reduction="sum")
mint.max(nan)
mint.min(nan, 0)
mint.amax(nan, 0)
mint.argmax(nan)
mint.median(nan)
mint.clamp(nan, 0, 1)
mint.maximum(nan, s)
mint.cummax(nan, 0)
mint.cummin(nan, 0)
mint.logsumexp(nan, 0)
mint.sum(nan)
mint.nansum(nan)
mint.isclose(nan, nan)
mint.round(nan)
mint.sqrt(nan)
mint.floor_divide(nan, 2)
mint.remainder(nan, 2)
mint.fmod(nan, 2)
mint.xlogy(nan, nan)
mint.logaddexp(nan, nan)
mint.erf(nan)
mint.sinc(nan)
mint.frac(nan)
mint.pow(nan, 0)
mint.eq(nan, nan)
F.softplus(nan)
F.relu(nan)
F.hardtanh(nan)
F.leaky_relu(nan)
F.logsigmoid(nan)
F.softmax(nan, 0)
"""

# rows whose result has a size that depends on values: compiled, they run line by line and warn
UNCOMPILED = {
    "mint.repeat_interleave(z, iv)", "mint.bincount(rep)", "mint.bincount(rep, minlength=6)",
}  # fmt: skip

GROUPS = {
    "creation": CREATION, "elementwise": ELEMENTWISE, "reductions": REDUCTIONS,
    "movement": MOVEMENT, "indexing": INDEXING, "matrices": MATRICES, "functional": FUNCTIONAL,
    "edges": EDGES,
}  # fmt: skip
ROWS = [line for text in GROUPS.values() for line in text.strip().split("\n")]

# layers: the source of the constructor, then that of the operands
LAYERS = (
    ("nn.Linear(3, 4)", "x"),
    ("nn.Linear(3, 4, bias=False)", "b3"),
    ("nn.Conv1d(4, 2, 3, stride=2, padding=1)", "seq"),
    ("nn.Conv1d(4, 2, 3, padding=2, padding_mode='circular')", "seq"),
    ("nn.Conv2d(2, 4, 3, padding=1)", "img"),
    ("nn.Conv2d(4, 4, (3, 2), padding='same', dilation=2, groups=2, bias=False)", "big"),
    ("nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode='reflect')", "img"),
    ("nn.Conv2d(2, 3, 4, padding='same', padding_mode='replicate')", "img"),
    ("nn.Conv3d(2, 2, 2, stride=2)", "vol"),
    ("nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2)", "img"),
    ("nn.BatchNorm1d(4)", "seq"),
    ("nn.BatchNorm1d(3, momentum=0.5)", "x"),
    ("nn.BatchNorm2d(4, eps=0.25)", "big"),
    ("nn.BatchNorm2d(4, affine=False)", "big"),
    ("nn.BatchNorm2d(4, track_running_stats=False)", "big"),
    ("nn.BatchNorm2d(4, momentum=None)", "big"),
    ("nn.BatchNorm3d(2)", "vol"),
    ("nn.LayerNorm(3)", "x"),
    ("nn.LayerNorm((2, 3), eps=0.5, bias=False)", "b3"),
    ("nn.LayerNorm([3], elementwise_affine=False)", "x"),
    ("nn.GroupNorm(2, 4)", "big"),
    ("nn.GroupNorm(4, 4, affine=False)", "seq"),
    ("nn.Embedding(5, 3)", "ids"),
    ("nn.Embedding(5, 3, padding_idx=1, scale_grad_by_freq=True)", "ids"),
    ("nn.PReLU()", "x"),
    ("nn.PReLU(4)", "big"),
    ("nn.AdaptiveAvgPool1d(2)", "seq"),
    ("nn.AdaptiveAvgPool2d((2, 3))", "img"),
    ("nn.AdaptiveAvgPool3d(2)", "vol"),
    ("nn.AdaptiveMaxPool1d(2)", "seq"),
    ("nn.AdaptiveMaxPool2d(2)", "img"),
    ("nn.AvgPool1d(2)", "seq"),
    ("nn.AvgPool2d(3, 2, 1, count_include_pad=False)", "img"),
    ("nn.AvgPool3d(2)", "vol"),
    ("nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)", "img"),
    ("nn.MaxPool2d(2, return_indices=True)", "img"),
    ("nn.ConstantPad1d((1, 2), 0.5)", "seq"),
    ("nn.ConstantPad2d(1, 2.5)", "img"),
    ("nn.ConstantPad3d(1, 2.5)", "vol"),
    ("nn.ZeroPad1d(1)", "seq"),
    ("nn.ZeroPad2d((1, 0, 2, 1))", "img"),
    ("nn.ZeroPad3d(1)", "vol"),
    ("nn.ReflectionPad1d((1, 2))", "seq"),
    ("nn.ReflectionPad2d((1, 0, 2, 1))", "img"),
    ("nn.ReflectionPad3d(1)", "vol"),
    ("nn.ReplicationPad1d((1, 2))", "seq"),
    ("nn.ReplicationPad2d(1)", "img"),
    ("nn.ReplicationPad3d(1)", "vol"),
    ("nn.Flatten()", "b3"),
    ("nn.Flatten(0, 1)", "b3"),
    ("nn.Fold((2, 3), 2)", "mint.reshape(big[:, :, :2, :2], (2, 8, 2))"),
    ("nn.Unfold(2, padding=1)", "img"),
    ("nn.PixelShuffle(2)", "big"),
    ("nn.Upsample(scale_factor=2, mode='bilinear')", "img"),
    ("nn.UpsamplingNearest2d(scale_factor=2)", "img"),
    ("nn.UpsamplingBilinear2d(size=(3, 7))", "img"),
    ("nn.Identity()", "x"),
    ("nn.ReLU()", "x"),
    ("nn.ReLU6()", "x"),
    ("nn.ELU(0.5)", "x"),
    ("nn.SELU()", "x"),
    ("nn.SiLU()", "x"),
    ("nn.Mish()", "x"),
    ("nn.GELU()", "x"),
    ("nn.GELU('tanh')", "x"),
    ("nn.GLU(1)", "seq"),
    ("nn.Sigmoid()", "x"),
    ("nn.Tanh()", "x"),
    ("nn.LogSigmoid()", "x"),
    ("nn.Softmax(0)", "x"),
    ("nn.Softmax()", "x"),
    ("nn.LogSoftmax(1)", "x"),
    ("nn.Hardshrink(0.25)", "x"),
    ("nn.Softshrink()", "x"),
    ("nn.Hardsigmoid()", "x"),
    ("nn.Hardswish()", "x"),
    ("nn.Hardtanh(-0.5, 0.25)", "x"),
    ("nn.Threshold(0.1, 20)", "x"),
    ("nn.L1Loss()", "x, y"),
    ("nn.MSELoss(reduction='none')", "x, y"),
    ("nn.SmoothL1Loss('sum', 0.5)", "x, y"),
    ("nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1)", "logits, labels"),
    ("nn.NLLLoss()", "logits, labels"),
    ("nn.BCELoss()", "probs, soft"),
    ("nn.BCEWithLogitsLoss(reduction='sum')", "logits, soft"),
    ("nn.KLDivLoss('batchmean')", "logits, soft"),
    ("nn.KLDivLoss('sum', log_target=True)", "logits, soft"),
    ("nn.SoftMarginLoss()", "v, sign"),
    ("nn.CosineEmbeddingLoss(0.25)", "logits, table[:4], sign"),
)
# positional arguments that PyTorch takes by name only
BY_NAME = {
    "SmoothL1Loss('sum', 0.5)": "SmoothL1Loss(reduction='sum', beta=0.5)",
    "KLDivLoss('batch": "KLDivLoss(reduction='batch",
    "KLDivLoss('sum": "KLDivLoss(reduction='sum",
    "CosineEmbeddingLoss(0": "CosineEmbeddingLoss(margin=0",
}

# optimisers: four steps from the same Parameters `a` (2, 3) and `b` (3,)
OPTIMIZERS = (
    "SGD([a, b], 0.1)",
    "SGD([a, b], lr=0.1, weight_decay=0.25, maximize=True)",
    "SGD([a, b], 0.1, momentum=0.9)",
    "SGD([a, b], 0.1, 0.9, 0.5, 0.25)",
    "SGD([a, b], 0.1, momentum=0.9, weight_decay=0.1, nesterov=True)",
    "SGD([a, b], 0.1, momentum=0.9, maximize=True)",
    "SGD([{'params': [a]}, {'params': [b], 'lr': 0.5, 'momentum': 0.5}], 0.1)",
    "Adam([a, b], 0.1)",
    "Adam([a, b], 0.1, (0.5, 0.75), 0.01, 0.25)",
    "Adam([a, b], 0.1, betas=(0.0, 0.5))",
    "Adam([a, b], lr=0.1, amsgrad=True, maximize=True)",
    "Adam([{'params': [a], 'amsgrad': True}, {'params': [b], 'lr': 0.5, 'betas': (0.5, 0.5)}])",
    "AdamW([a, b], 0.1)",
    "AdamW([a, b], 0.1, weight_decay=0.5, amsgrad=True)",
    "AdamW([{'params': [a], 'weight_decay': 0.0}, {'params': [b]}], 0.1, eps=0.5, maximize=True)",
)


def state(shape: tuple[int, ...], number: int) -> NDArray[np.float32]:
    """Return the values of a layer's Parameter number `number`; variances are positive."""
    return np.abs(_wave(*shape, shift=5.0 + number)) + np.float32(0.25)


def steps() -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return the Parameters of the optimisers, then the gradients of four steps."""
    return [(_wave(2, 3, shift=float(n)), _wave(3, shift=10.0 + n)) for n in range(5)]
