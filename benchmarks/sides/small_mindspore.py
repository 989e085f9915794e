"""Calls with small operands in MindSpore's API, under the names of `small_torch`."""


def calls(ms, a, b, image, weight, index, labels, mask):
    """Return name -> function for each small call; the arguments are Tensors."""
    ops = ms.ops
    dense, norm = ms.nn.Dense(8, 8, bias_init="zeros"), ms.nn.LayerNorm((8,))
    dense.weight.set_data(b)
    return {
        "a + b": lambda: a + b,
        "a * 2.0": lambda: a * 2.0,
        "a > b": lambda: a > b,
        "a @ b": lambda: a @ b,
        "matmul": lambda: ops.matmul(a, b),
        "exp": lambda: ops.exp(a),
        "relu": lambda: ops.relu(a),
        "sigmoid": lambda: ops.sigmoid(a),
        "clamp": lambda: ops.clamp(a, -1.0, 1.0),
        "where": lambda: ops.where(mask, a, b),
        "sum": lambda: a.sum(),
        "sum of rows": lambda: a.sum(1),
        "mean, kept axis": lambda: a.mean(0, True),
        "max": lambda: a.max(),
        "max of rows": lambda: ops.max(a, 1)[0],
        "argmax": lambda: a.argmax(1),
        "softmax": lambda: ops.softmax(a, -1),
        "cross entropy": lambda: ops.cross_entropy(a, labels),
        "concat": lambda: ops.concat((a, b), 0),
        "stack": lambda: ops.stack((a, b)),
        "transpose": lambda: ops.transpose(a, (1, 0)),
        "reshape": lambda: a.reshape(4, 16),
        "squeeze": lambda: ops.squeeze(image, 0),
        "a[1:5, ::2]": lambda: a[1:5, ::2],
        "gather": lambda: ops.gather(a, index, 0),
        "cast": lambda: ops.cast(a, ms.int32),
        "ones": lambda: ops.ones((8, 8), ms.float32),
        "conv2d": lambda: ops.conv2d(image, weight),
        "Dense": lambda: dense(a),
        "LayerNorm": lambda: norm(a),
    }
