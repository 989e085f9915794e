"""Private helpers of attention and interpolation, compared with NumPy."""

from __future__ import annotations

import importlib

import duograph as ms
import numpy as np
import pytest

private = importlib.import_module("duograph.ops.function.nn_func")
RNG = np.random.default_rng(0)
X, Y, Z = (RNG.normal(size=(3, 2, 4)).astype(np.float32) for _ in range(3))
W = RNG.normal(size=(12, 4)).astype(np.float32)
B = RNG.normal(size=12).astype(np.float32)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("same", ["all", "key and value", "none"])
@pytest.mark.parametrize("packed", [False, True])
def test_projections(bias: bool, same: str, packed: bool) -> None:
    arrays = {"all": (X, X, X), "key and value": (X, Y, Y), "none": (X, Y, Z)}[same]
    q, k, v = map(ms.Tensor, arrays)
    w, b = ms.Tensor(W), ms.Tensor(B) if bias else None
    if packed:
        found = private._in_projection_packed(q, k, v, w, b, same != "none", same == "all")
    else:
        weights = [w[4 * i : 4 * i + 4] for i in range(3)]
        biases = [None if b is None else b[4 * i : 4 * i + 4] for i in range(3)]
        found = private._in_projection(q, k, v, *weights, *biases)
    for i, (x, got) in enumerate(zip(arrays, found, strict=True)):
        wanted = x @ W[4 * i : 4 * i + 4].T + (B[4 * i : 4 * i + 4] if bias else 0)
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("check", "good", "wrong"),
    [
        ("_check_qkv_shape", (3, 3, 3), (3, 2, 3)),
        ("_check_qkv_shape", (2, 2, 2), (4, 4, 4)),
        ("_check_kpm_shape", (3, 2), (3, 3)),
        ("_check_kpm_shape", (2, 1), (2, 2)),
        ("_check_attn_mask_shape", (3, (2, 5, 4), (2, 6, 4), 3, (4, 5, 6), 2),
         (3, (2, 5, 4), (2, 6, 4), 4, (1, 4, 5, 6), 2)),
        ("_check_attn_mask_shape", (2, (5, 4), (6, 4), 3, (2, 5, 6), 2),
         (2, (5, 4), (6, 4), 3, (1, 5, 6), 2)),
    ],
)  # fmt: skip
def test_shapes_are_checked(check: str, good: tuple, wrong: tuple) -> None:
    assert getattr(private, check)(*good) in (None, True, False)
    with pytest.raises(ValueError, match="attention: "):
        getattr(private, check)(*wrong)


def test_padding_of_masks_and_dropout() -> None:
    mask = private._inner_pad(ms.Tensor([[True, False]]), (1, 1), value=1)
    assert mask.dtype == ms.bool_
    assert mask.asnumpy().tolist() == [[True, True, False, True]]
    ones = ms.ops.ones((1000,), ms.float32)
    assert private._inner_dropout(ones, 0.5, False) is ones
    assert private._inner_dropout(ones, 0.0, True) is ones
    assert set(private._inner_dropout(ones, 0.5, True).asnumpy()) == {0.0, 2.0}


@pytest.mark.parametrize(
    ("factor", "size"), [(2, (10, 14)), ((0.5, 1.5), (2, 10)), ([1.0, 0.0], (5, 0))]
)
def test_sizes_of_scaled_images(factor: object, size: tuple) -> None:
    image = ms.ops.ones((1, 3, 5, 7), ms.float32)
    factors = private._interploate_ext_make_tuple(image, factor)
    assert private._interpolate_ext_scale_factor_convert_size(image, factors) == size


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}])
@pytest.mark.parametrize("masked", ["", "mask", "heads", "padding", "both"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_attention_agrees_with_the_layer(
    options: dict, masked: str, separate: bool, single: bool
) -> None:
    layer = ms.nn.MultiheadAttention(4, 2, **options)
    q, k = (ms.Tensor(x[:, 0] if single else x) for x in (X, Y))
    masks = {}
    if masked in ("mask", "both"):
        masks["attn_mask"] = ms.Tensor(np.triu(np.ones((3, 3), bool), 1))
    if masked == "heads":
        masks["attn_mask"] = ms.Tensor(
            RNG.normal(size=(2 if single else 4, 3, 3)).astype(np.float32)
        )
    if masked in ("padding", "both"):
        hidden = ms.Tensor([[False, False, True], [False, True, False]])
        masks["key_padding_mask"] = hidden[0] if single else hidden
    weights = {}
    if separate:
        parts = ms.ops.chunk(layer.in_proj_weight, 3)
        weights = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), parts, strict=True))
    wanted = layer(q, k, k, **masks)
    found = private.multi_head_attention_forward(
        q, k, k, 4, 2, None if separate else layer.in_proj_weight, layer.in_proj_bias,
        layer.bias_k, layer.bias_v, layer.add_zero_attn, 0.0, layer.out_proj.weight,
        layer.out_proj.bias, use_separate_proj_weight=separate, **masks, **weights,
    )  # fmt: skip
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def test_options_of_attention_that_cannot_work_are_refused() -> None:
    arguments = (*(ms.Tensor(x) for x in (X, X, X)), 4, 2, ms.Tensor(W), None, None, None, False)
    rest = (0.0, ms.Tensor(W[:4]), None)
    with pytest.raises(NotImplementedError, match="static_k"):
        private.multi_head_attention_forward(*arguments, *rest, static_k=ms.Tensor(X))
    with pytest.raises(TypeError, match="no weights"):
        private.multi_head_attention_forward(*arguments, *rest, use_separate_proj_weight=True)
