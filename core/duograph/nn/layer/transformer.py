"""Multi-head attention and the Transformer (Vaswani et al., 2017).

`nn` exports these layers. They must create their Parameters in a fixed order, because random
initial values are drawn in that order.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

from ... import ops
from ...common.initializer import XavierNormal, XavierUniform, Zero, initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import Activation, DTypeLike
from ..cell import Cell
from .activation import get_activation
from .basic import Dense, Dropout
from .container import CellList
from .normalization import LayerNorm

__all__ = [
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerDecoder",
    "Transformer",
]


class MultiheadAttention(Cell):
    """Multi-head attention (`mindspore.nn.MultiheadAttention`).

    Args:
        embed_dim: length of the last axis of query and output; a multiple of `num_heads`.
        num_heads: number of heads.
        dropout: probability of dropping an attention weight, in training.
        has_bias: whether the projections have biases.
        add_bias_kv: whether to append one trained key and value.
        add_zero_attn: whether to append one key and value of zeros.
        kdim, vdim: lengths of the last axes of key and value; `embed_dim` by default.
        batch_first: whether inputs are (N, L, E) rather than (L, N, E).
        dtype: dtype of the Parameters.

    Inputs: query (L, N, E), key (S, N, kdim), value (S, N, vdim), all of them also without N;
        key_padding_mask (N, S) and attn_mask (L, S) or (N * num_heads, L, S): True hides a key, a
        floating mask is added to the scores; need_weights; average_attn_weights.
    Outputs: the output, like query, and the attention weights: (N, L, S), or (N, num_heads, L, S)
        if not averaged, or None without need_weights.
    Without need_weights and without dropout, `ops.flash_attention_score` computes the output and
    does not materialise the matrix of weights.

    Raises:
        ValueError: `embed_dim` is not a multiple of `num_heads`, or inputs or masks of other
            shapes.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((4, 2, 8), ms.float32)
        >>> out, weights = ms.nn.MultiheadAttention(8, 2)(x, x, x)
        >>> out.shape, weights.shape
        ((4, 2, 8), (2, 4, 4))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner = "MultiheadAttention"
        self.embed_dim = _check.positive_int(owner, "embed_dim", embed_dim)
        self.num_heads = _check.positive_int(owner, "num_heads", num_heads)
        if embed_dim % num_heads:
            raise ArgumentValueError(
                f"{owner}: got embed_dim={embed_dim} for num_heads={num_heads}; wanted "
                "embed_dim to be a multiple of num_heads"
            )
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._same = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout = _check.in_range(owner, "dropout", dropout, 0, 1)
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        if self._same:
            self.in_proj_weight = Parameter(
                initializer(XavierUniform(), (3 * embed_dim, embed_dim), dtype),
                name="in_proj_weight",
            )
        else:
            for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                value = initializer(XavierUniform(), (embed_dim, width), dtype)
                setattr(self, f"{name}_proj_weight", Parameter(value, name=f"{name}_proj_weight"))
        self.in_proj_bias: Parameter | None = None
        if has_bias:
            self.in_proj_bias = Parameter(
                initializer(Zero(), (3 * embed_dim,), dtype), name="in_proj_bias"
            )
        self.out_proj = Dense(
            embed_dim, embed_dim, bias_init="zeros", has_bias=has_bias, dtype=dtype
        )
        self.bias_k: Parameter | None = None
        self.bias_v: Parameter | None = None
        if add_bias_kv:
            shape = (1, 1, embed_dim)
            self.bias_k = Parameter(initializer(XavierNormal(), shape, dtype), name="bias_k")
            self.bias_v = Parameter(initializer(XavierNormal(), shape, dtype), name="bias_v")

    q_proj_weight: Parameter
    k_proj_weight: Parameter
    v_proj_weight: Parameter

    def construct(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        single = query.ndim == 2
        if single:
            query, key, value = (
                t.expand_dims(0 if self.batch_first else 1) for t in (query, key, value)
            )
        elif self.batch_first:
            query, key, value = (t.swapaxes(0, 1) for t in (query, key, value))
        widths = (self.embed_dim, self.kdim, self.vdim)
        for name, option, t, width in zip(
            ("query", "key", "value"), ("embed_dim", "kdim", "vdim"), (query, key, value), widths,
            strict=True,
        ):  # fmt: skip
            if t.ndim != 3 or t.shape[2] != width:
                raise ShapeError(
                    f"MultiheadAttention: {name} has shape {t.shape}; wanted {width} on the last "
                    f"of three axes, the {option} of the layer"
                )
        if single and self.batch_first:
            query, key, value = (t.swapaxes(0, 1) for t in (query, key, value))
        out, weights = self._attend(query, key, value, key_padding_mask, attn_mask, need_weights)
        if single:
            out = out.squeeze(1)
        elif self.batch_first:
            out = out.swapaxes(0, 1)
        if weights is None:
            return out, None
        if average_attn_weights:
            weights = weights.mean(1)
        return out, weights.squeeze(0) if single else weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Return [query, key, value], each multiplied by its weight to `embed_dim` features."""
        e = self.embed_dim
        if self._same:
            if query is key and key is value:
                return list(
                    ops.split(ops.dense(query, self.in_proj_weight, self.in_proj_bias), e, -1)
                )
            weights = ops.split(self.in_proj_weight, e, 0)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else ops.split(self.in_proj_bias, e, 0)
        return [
            ops.dense(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
        ]

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | None,
        mask: Tensor | None,
        weighted: bool,
    ) -> tuple[Tensor, Tensor | None]:
        length, batch = query.shape[:2]
        heads, width = self.num_heads, self.head_dim
        q, k, v = self._project(query, key, value)
        extra = 0
        if self.bias_k is not None and self.bias_v is not None:
            shape = (1, batch, self.embed_dim)
            k = ops.concat((k, ops.broadcast_to(self.bias_k, shape)), 0)
            v = ops.concat((v, ops.broadcast_to(self.bias_v, shape)), 0)
            extra += 1
        if self.add_zero_attn:
            zeros = ops.zeros((1, batch, self.embed_dim), k.dtype)
            k, v = ops.concat((k, zeros), 0), ops.concat((v, zeros), 0)
            extra += 1
        source = k.shape[0]
        scale = 1.0 / math.sqrt(width)
        dropped = bool(self.dropout) and self.training
        bias = self._score_bias(mask, padding, length, source, batch, extra, q.dtype)
        if not weighted and not dropped:
            out = ops.flash_attention_score(
                q, k, v, heads, real_shift=bias, scalar_value=scale, input_layout="SBH"
            )
            return self.out_proj(out), None

        def split(x: Tensor, n: int) -> Tensor:  # (n, N, E) to (N, heads, n, width)
            return x.reshape(n, batch, heads, width).transpose(1, 2, 0, 3)

        q, k, v = split(q, length), split(k, source), split(v, source)
        scores = ops.matmul(q * scale, k.swapaxes(-1, -2))
        if bias is not None:
            scores = scores + bias
        weights = ops.softmax(scores, -1)
        if dropped:
            weights = ops.dropout(weights, p=self.dropout, training=True)
        out = ops.matmul(weights, v).transpose(2, 0, 1, 3).reshape(length, batch, self.embed_dim)
        return self.out_proj(out), weights if weighted else None

    def _score_bias(
        self,
        mask: Tensor | None,
        padding: Tensor | None,
        length: int,
        source: int,
        batch: int,
        extra: int,
        dtype: DTypeLike,
    ) -> Tensor | None:
        """Combine the attention mask and the key padding mask into one tensor to add to the scores.

        The result broadcasts to the scores (N, heads, L, S) and has -inf where a key is hidden. It
        is None if `mask` and `padding` are both None. `length` and `source` are L and S. `extra` is
        the number of keys at the end that the masks do not cover; these are always visible.
        """
        total: Tensor | None = None
        seen = source - extra
        if mask is not None:
            if mask.shape[-2:] != (length, seen) or mask.ndim not in (2, 3):
                raise ShapeError(
                    f"MultiheadAttention: attn_mask has shape {mask.shape}; wanted ({length}, "
                    f"{seen}) or "
                    f"({batch * self.num_heads}, {length}, {seen})"
                )
            shape = (1, 1) if mask.ndim == 2 else (batch, self.num_heads)
            total = _additive(mask, dtype).reshape(*shape, length, seen)
        if padding is not None:
            padding = padding.reshape(1, -1) if padding.ndim == 1 else padding
            if padding.shape != (batch, seen):
                raise ShapeError(
                    f"MultiheadAttention: key_padding_mask has shape {padding.shape}; "
                    f"wanted ({batch}, {seen})"
                )
            more = _additive(padding, dtype).reshape(batch, 1, 1, seen)
            total = more if total is None else total + more
        if total is not None and extra:
            total = ops.concat((total, ops.zeros((*total.shape[:3], extra), dtype)), 3)
        return total


def _additive(mask: Tensor, dtype: DTypeLike) -> Tensor:
    """Return an attention mask as a tensor of `dtype` to add to the scores.

    In a bool mask, True becomes -inf and False 0. A mask of another dtype is cast to `dtype`.
    """
    if mask.dtype.kind == "b":
        return ops.where(mask, Tensor(float("-inf"), dtype), Tensor(0.0, dtype))
    return ops.cast(mask, dtype)


def _activation(value: Activation) -> Callable[[Tensor], Tensor]:
    """Return the function for a Transformer layer's `activation`: a name, Cell or function."""
    if value == "gelu":
        return lambda x: ops.gelu(x, "none")
    if isinstance(value, str):
        value = get_activation(value)
    if not callable(value):
        raise ArgumentError(
            f"Transformer: got activation={value!r}; wanted a name, a Cell or a function"
        )
    return value


class _TransformerLayer(Cell):
    """Base of the encoder and decoder layers.

    If the class sets `_decoder`, the layer also attends to the encoder's output (memory).
    """

    _decoder = False
    multihead_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, dtype=dtype
        )
        if self._decoder:
            self.multihead_attn = MultiheadAttention(
                d_model, nhead, dropout, batch_first=batch_first, dtype=dtype
            )
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        blocks = range(1, 4 if self._decoder else 3)
        for i in blocks:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            setattr(self, f"norm{i}", norm)
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(p=dropout))
        self.activation = _activation(activation)


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network (`mindspore.nn.TransformerEncoderLayer`).

    Each of the two has a residual connection and a layer normalisation.

    Args:
        d_model: length of the last axis of input and output.
        nhead: number of heads.
        dim_feedforward: width of the feed-forward network.
        dropout: probability of dropout, in training.
        activation: ``"relu"``, ``"gelu"``, a Cell or a function.
        layer_norm_eps: epsilon of the normalisations.
        batch_first: whether inputs are (N, L, E) rather than (L, N, E).
        norm_first: whether to normalise before attention and feed-forward network rather than
            after.
        dtype: dtype of the Parameters.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.TransformerEncoderLayer(8, 2, 16)
        >>> layer(ms.ops.ones((4, 2, 8), ms.float32)).shape
        (4, 2, 8)
    """

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask,
                need_weights=False,
            )  # fmt: skip
            return self.dropout1(out)

        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + self._feed(self.norm2(src))
        src = self.norm1(src + attend(src))
        return self.norm2(src + self._feed(src))

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to a memory, and a feed-forward network
    (`mindspore.nn.TransformerDecoderLayer`).

    The arguments are those of `TransformerEncoderLayer`.

    Examples:
        >>> import duograph as ms
        >>> x, memory = ms.ops.ones((3, 2, 8), ms.float32), ms.ops.ones((4, 2, 8), ms.float32)
        >>> ms.nn.TransformerDecoderLayer(8, 2, 16)(x, memory).shape
        (3, 2, 8)
    """

    _decoder = True

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                need_weights=False,
            )  # fmt: skip
            return self.dropout1(out)

        def attend_memory(x: Tensor) -> Tensor:
            out, _ = self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask,
                need_weights=False,
            )  # fmt: skip
            return self.dropout2(out)

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self.dense2(self.dropout(self.activation(self.dense1(x)))))

        if self.norm_first:
            tgt = tgt + attend(self.norm1(tgt))
            tgt = tgt + attend_memory(self.norm2(tgt))
            return tgt + feed(self.norm3(tgt))
        tgt = self.norm1(tgt + attend(tgt))
        tgt = self.norm2(tgt + attend_memory(tgt))
        return self.norm3(tgt + feed(tgt))


def _copies(layer: Cell, n: int) -> CellList:
    """Return a CellList of `n` layers: `layer` itself and n - 1 deep copies."""
    return CellList([layer, *(copy.deepcopy(layer) for _ in range(n - 1))])


class TransformerEncoder(Cell):
    """A stack of encoder layers (`mindspore.nn.TransformerEncoder`).

    All layers start as copies of `encoder_layer`; `norm` is applied to the last result.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
        >>> encoder(ms.ops.ones((4, 2, 8), ms.float32)).shape
        (4, 2, 8)
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.num_layers = _check.layer_count("TransformerEncoder", "num_layers", num_layers)
        self.layers = _copies(encoder_layer, num_layers)
        self.norm = norm

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """A stack of decoder layers (`mindspore.nn.TransformerDecoder`).

    All layers start as copies of `decoder_layer`; `norm` is applied to the last result.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.TransformerDecoderLayer(8, 2, 16)
        >>> x, memory = ms.ops.ones((3, 2, 8), ms.float32), ms.ops.ones((4, 2, 8), ms.float32)
        >>> ms.nn.TransformerDecoder(layer, 2)(x, memory).shape
        (3, 2, 8)
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.num_layers = _check.layer_count("TransformerDecoder", "num_layers", num_layers)
        self.layers = _copies(decoder_layer, num_layers)
        self.norm = norm

    def construct(self, tgt: Tensor, memory: Tensor, *masks: Tensor, **named: object) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """Transformer of an encoder and a decoder (`mindspore.nn.Transformer`).

    The arguments are those of `TransformerEncoderLayer` and `TransformerEncoder`. `custom_encoder`
    and `custom_decoder` replace the encoder and the decoder.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Transformer(8, 2, 1, 1, 16)
        >>> net(ms.ops.ones((4, 2, 8), ms.float32), ms.ops.ones((3, 2, 8), ms.float32)).shape
        (3, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, dtype,
        )  # fmt: skip
        if custom_encoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*layer), num_encoder_layers, norm
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*layer), num_decoder_layers, norm
            )
        self.decoder = custom_decoder
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer(XavierUniform(), p.shape, p.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
