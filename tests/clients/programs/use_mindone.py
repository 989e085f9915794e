"""Use mindone: BERT, GPT-2 and Llama, small and random, train in both modes."""

from __future__ import annotations

import sys
import warnings

import mindspore as ms
import numpy as np
from mindone.transformers.models.bert.modeling_bert import BertForSequenceClassification
from mindone.transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from mindone.transformers.models.llama.modeling_llama import LlamaForCausalLM
from mindspore import nn
from transformers import BertConfig, GPT2Config, LlamaConfig

# attributes of the configuration objects are read while the program runs, so that some Cells run
# line by line in GRAPH_MODE, with a warning
warnings.filterwarnings("ignore", message=".*runs line by line")
SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 16}  # fmt: skip


def text_models(ids, classes):
    """Yield (name, network, its loss as a function) of each language model."""
    bert = BertForSequenceClassification(BertConfig(**SMALL))
    yield "BERT", bert, lambda: bert(ids, labels=classes)[0]
    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    gpt = GPT2LMHeadModel(config)
    yield "GPT-2", gpt, lambda: gpt(ids, labels=ids.astype(ms.int32))[0]
    llama = LlamaForCausalLM(LlamaConfig(num_key_value_heads=1, **SMALL))
    yield "Llama", llama, lambda: llama(ids, labels=ids.astype(ms.int32))[0]


def main() -> int:
    """Train every model for four steps in both modes."""
    rng = np.random.default_rng(0)
    ids = ms.Tensor(rng.integers(1, 50, (2, 6)), ms.int64)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(0)
        for name, net, loss in text_models(ids, ms.Tensor([0, 1], ms.int32)):
            net.set_train()
            optimizer = nn.AdamWeightDecay(net.trainable_params(), 3e-3)
            step = ms.value_and_grad(loss, None, optimizer.parameters)
            losses = []
            for _ in range(4):
                value, grads = step()
                optimizer(grads)
                losses.append(float(value.asnumpy()))
            print(f"mode {mode}: {name}: losses {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
            assert np.isfinite(losses).all(), name
            assert losses[-1] < losses[0], name
    return 0


if __name__ == "__main__":
    sys.exit(main())
