"""Calls with small operands in PyTorch, under the names of `small_mindspore`.

A transpose is made contiguous, because the other side's results are dense.
"""

import torch
import torch.nn.functional as F


def calls(a, b, image, weight, index, labels, mask):
    """Return name -> function for each small call; the arguments are torch tensors."""
    dense, norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8, eps=1e-7)
    with torch.no_grad():
        dense.weight.copy_(b)
        dense.bias.zero_()
    return {
        "a + b": lambda: a + b,
        "a * 2.0": lambda: a * 2.0,
        "a > b": lambda: a > b,
        "a @ b": lambda: a @ b,
        "matmul": lambda: torch.matmul(a, b),
        "exp": lambda: torch.exp(a),
        "relu": lambda: torch.relu(a),
        "sigmoid": lambda: torch.sigmoid(a),
        "clamp": lambda: torch.clamp(a, -1.0, 1.0),
        "where": lambda: torch.where(mask, a, b),
        "sum": lambda: a.sum(),
        "sum of rows": lambda: a.sum(1),
        "mean, kept axis": lambda: a.mean(0, True),
        "max": lambda: a.max(),
        "max of rows": lambda: torch.max(a, 1)[0],
        "argmax": lambda: a.argmax(1),
        "softmax": lambda: torch.softmax(a, -1),
        "cross entropy": lambda: F.cross_entropy(a, labels),
        "concat": lambda: torch.cat((a, b), 0),
        "stack": lambda: torch.stack((a, b)),
        "transpose": lambda: torch.permute(a, (1, 0)).contiguous(),
        "reshape": lambda: a.reshape(4, 16),
        "squeeze": lambda: torch.squeeze(image, 0),
        "a[1:5, ::2]": lambda: a[1:5, ::2].contiguous(),
        "gather": lambda: torch.index_select(a, 0, index),
        "cast": lambda: a.to(torch.int32),
        "ones": lambda: torch.ones((8, 8)),
        "conv2d": lambda: F.conv2d(image, weight),
        "Dense": lambda: dense(a),
        "LayerNorm": lambda: norm(a),
    }
