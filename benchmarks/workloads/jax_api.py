"""The workloads in JAX: jitted functions. A training step donates its state and returns it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import Case, data, function, training


def _ours(weights: data.Arrays) -> dict[str, jax.Array]:
    """Convert weights to the layouts of JAX's libraries: dense (in, out), convolutions HWIO."""
    out = {}
    for name, w in weights.items():
        if w.ndim == 4:
            w = w.transpose(2, 3, 1, 0)
        elif w.ndim == 2 and not name.startswith(("tok.", "pos.")):
            w = w.T
        out[name] = jnp.asarray(np.ascontiguousarray(w))
    return out


def _train(network, arrays: tuple, optimizer) -> Case:
    weights, x, y = arrays
    if x.ndim == 4:
        x = x.transpose(0, 2, 3, 1)
    x, y = jnp.asarray(np.ascontiguousarray(x)), jnp.asarray(y)
    weights = _ours(weights)
    parameters = {k: w for k, w in weights.items() if "running" not in k}
    init, update = optimizer
    # the averages of batch normalisation go along; networks without them leave the dict empty
    averages = {k: w for k, w in weights.items() if "running" in k}
    state = parameters, averages, init(parameters)

    def loss_fn(parameters, averages, x, y):
        moved = {}
        logits = network(parameters, x, averages, moved)
        log_p = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(log_p, y[..., None], -1).mean(), moved

    @partial(jax.jit, donate_argnums=0)
    def step(state, x, y):
        parameters, averages, moments = state
        (loss, averages), grads = jax.value_and_grad(loss_fn, has_aux=True)(
            parameters, averages, x, y
        )
        parameters, moments = update(parameters, grads, moments)
        return (parameters, averages, moments), loss

    def run():
        nonlocal state
        state, loss = step(state, x, y)
        return loss

    return training(run, float)


# ---- optimisers ----------------------------------------------------------------------------------


def _momentum(rate):
    def init(parameters):
        return jax.tree.map(jnp.zeros_like, parameters)

    def update(parameters, grads, velocity):
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - rate * v, parameters, velocity), velocity

    return init, update


def _adam(rate, decay=0.0, eps=data.EPSILON):
    def init(parameters):
        zeros = partial(jax.tree.map, jnp.zeros_like, parameters)
        return jnp.zeros(()), zeros(), zeros()

    def update(parameters, grads, moments):
        t, m, v = moments
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        parameters = jax.tree.map(
            lambda p, m, v: p - scale * m / (jnp.sqrt(v) + eps) - rate * decay * p, parameters, m, v
        )
        return parameters, (t, m, v)

    return init, update


# ---- networks ------------------------------------------------------------------------------------


def _dense(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def _conv(x, w, stride=1, padding=0, groups=1):
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
    )  # fmt: skip


def _max_pool(x, size, stride, padding=0):
    pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


def _layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def _batch_norm(p, name, x, averages, moved):
    mean = x.mean((0, 1, 2))
    var = jnp.square(x - mean).mean((0, 1, 2))
    count = x.size // x.shape[-1]
    for kind, value in (("running_mean", mean), ("running_var", var * count / (count - 1))):
        moved[f"{name}.{kind}"] = 0.9 * averages[f"{name}.{kind}"] + 0.1 * value
    return (x - mean) * (lax.rsqrt(var + 1e-5) * p[f"{name}.weight"]) + p[f"{name}.bias"]


def mlp_network(p, x, *_):
    depth = len(p) // 2
    for i in range(depth - 1):
        x = jax.nn.relu(_dense(p, f"layers.{i}", x))
    return _dense(p, f"layers.{depth - 1}", x)


def lenet_network(p, x, *_):
    x = jax.nn.relu(_conv(x, p["conv1.weight"]) + p["conv1.bias"])
    x = _max_pool(x, 2, 2)
    x = jax.nn.relu(_conv(x, p["conv2.weight"]) + p["conv2.bias"])
    x = _max_pool(x, 2, 2)
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)  # the order that the weights expect
    x = jax.nn.relu(_dense(p, "fc1", x))
    return _dense(p, "fc3", jax.nn.relu(_dense(p, "fc2", x)))


def resnet18_network(p, x, averages, moved):
    def norm(name, x):
        return _batch_norm(p, name, x, averages, moved)

    x = jax.nn.relu(norm("bn1", _conv(x, p["conv1.weight"], 2, 3)))
    x = _max_pool(x, 3, 2, 1)
    for name, inputs, width, stride in data.blocks(data.RESNET18, 64):
        out = jax.nn.relu(norm(f"{name}.bn1", _conv(x, p[f"{name}.conv1.weight"], stride, 1)))
        out = norm(f"{name}.bn2", _conv(out, p[f"{name}.conv2.weight"], 1, 1))
        if stride > 1 or inputs != width:
            x = norm(f"{name}.downsample.1", _conv(x, p[f"{name}.downsample.0.weight"], stride))
        x = jax.nn.relu(out + x)
    return _dense(p, "fc", x.mean((1, 2)))


def resnet50_network(p, x, averages, moved):
    def norm(name, x):
        return _batch_norm(p, name, x, averages, moved)

    x = jax.nn.relu(norm("bn1", _conv(x, p["conv1.weight"], 2, 3)))
    x = _max_pool(x, 3, 2, 1)
    for i, (_, inputs, width, stride) in enumerate(data.blocks(data.RESNET50, 64, 4)):
        name = f"blocks.{i}"
        out = jax.nn.relu(norm(f"{name}.bn1", _conv(x, p[f"{name}.conv1.weight"])))
        out = jax.nn.relu(norm(f"{name}.bn2", _conv(out, p[f"{name}.conv2.weight"], stride, 1)))
        out = norm(f"{name}.bn3", _conv(out, p[f"{name}.conv3.weight"]))
        if stride > 1 or inputs != 4 * width:
            x = norm(f"{name}.downsample.1", _conv(x, p[f"{name}.downsample.0.weight"], stride))
        x = jax.nn.relu(out + x)
    return _dense(p, "fc", x.mean((1, 2)))


def _block(p, name, x, heads, mask):
    b, t, c = x.shape
    qkv = _dense(p, f"{name}.qkv", _layer_norm(p, f"{name}.ln1", x))
    q, k, v = qkv.reshape(b, t, 3, heads, c // heads).transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) * (c // heads) ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    y = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(b, t, c)
    x = x + _dense(p, f"{name}.proj", y)
    up = jax.nn.gelu(_dense(p, f"{name}.up", _layer_norm(p, f"{name}.ln2", x)), approximate=True)
    return x + _dense(p, f"{name}.down", up)


def gpt_network(p, ids, *_):
    tokens = ids.shape[1]
    x = p["tok.weight"][ids] + p["pos.weight"][:tokens]
    mask = jnp.tril(jnp.ones((tokens, tokens), bool))
    for i in range(data.GPT["layers"]):
        x = _block(p, f"blocks.{i}", x, data.GPT["heads"], mask)
    return _layer_norm(p, "ln", x) @ p["head.weight"]


def lstm_network(p, x, *_):
    for layer in range(2):
        w = p[f"rnn.weight_hh_l{layer}"]
        parts = (
            x @ p[f"rnn.weight_ih_l{layer}"]
            + p[f"rnn.bias_ih_l{layer}"]
            + p[f"rnn.bias_hh_l{layer}"]
        )

        def step(carry, part, w=w):
            h, c = carry
            i, f, g, o = jnp.split(part + h @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[1], 256))
        _, x = lax.scan(step, (start, start), parts)
    return _dense(p, "fc", x[-1])


# ---- training ------------------------------------------------------------------------------------


def mlp():
    return _train(mlp_network, data.mlp(), _adam(1e-3))


def lenet():
    return _train(lenet_network, data.lenet(), _momentum(0.01))


def resnet18():
    return _train(resnet18_network, data.resnet18(), _momentum(0.01))


def gpt():
    return _train(gpt_network, data.gpt(), _adam(3e-4, 0.01))


def lstm():
    return _train(lstm_network, data.lstm(), _adam(1e-3))


def _deep(depth):
    return _train(mlp_network, data.deep(depth), _adam(1e-3))


def _batch(batch):
    return _train(mlp_network, data.mlp(batch), _adam(1e-3))


# ---- calls, kernels, loops -----------------------------------------------------------------------


def _function(f, *arrays):
    arguments = [jnp.asarray(a) for a in arrays]
    call = jax.jit(f)
    return function(lambda: call(*arguments), np.asarray, jax.block_until_ready)


def call3():
    return _function(lambda x, y: x * y + x, *data.three())


def call50():
    def f(x, *parameters):
        y = x
        for p in parameters:
            y = y * p + x
        return y

    return _function(f, data.three()[0], *data.parameters())


def chain():
    return _function(lambda x: jnp.tanh(x) * jax.nn.sigmoid(x) + jnp.exp(-x * x), data.large())


def softmax():
    return _function(jax.nn.softmax, data.rows()[0])


def layer_norm():
    def f(x, scale, shift):
        return _layer_norm({"n.weight": scale, "n.bias": shift}, "n", x)

    return _function(f, *data.rows())


def sum_rows():
    return _function(lambda x: x.sum(-1), data.rows()[0])


def matmul1024():
    return _function(jnp.matmul, *data.matrices(1024))


def matmul4096():
    return _function(jnp.matmul, *data.matrices(4096))


def newton_inverse():
    def f(a):
        eye = jnp.eye(256)

        def body(state):
            x, _ = state
            x = x @ (2 * eye - a @ x)
            return x, jnp.abs(a @ x - eye).max()

        x = a.T / (jnp.abs(a).sum(0).max() * jnp.abs(a).sum(1).max())
        start = x, jnp.abs(a @ x - eye).max()
        return lax.while_loop(lambda state: state[1] > data.LOOP_TOLERANCE, body, start)[0]

    return _function(f, data.definite())


def newton_root():
    def f(a):
        eye = jnp.eye(256)

        def body(state):
            y, z, _ = state
            zy = z @ y
            t = 1.5 * eye - 0.5 * zy
            return y @ t, t @ z, jnp.abs(zy - eye).max()

        norm = jnp.sqrt((a * a).sum())
        start = a / norm, eye, jnp.float32(1)
        return lax.while_loop(lambda s: s[2] > data.LOOP_TOLERANCE, body, start)[0] * jnp.sqrt(norm)

    return _function(f, data.definite())


def _digits_network(p, x):
    x = jax.nn.relu(_conv(x, p["conv1.weight"], padding=1) + p["conv1.bias"])
    x = _max_pool(jax.nn.relu(_conv(x, p["conv2.weight"], padding=1) + p["conv2.bias"]), 2, 2)
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    return _dense(p, "fc2", jax.nn.relu(_dense(p, "fc1", x)))


def digits(train_x, train_y, test_x, test_y):
    """Run the digits job; return the loss of every step, and the accuracy on held-out digits."""
    train_x, test_x = (np.ascontiguousarray(x.transpose(0, 2, 3, 1)) for x in (train_x, test_x))
    parameters = _ours(data.digits_weights())
    init, update = _adam(1e-3)
    moments = init(parameters)

    def loss_fn(parameters, x, y):
        log_p = jax.nn.log_softmax(_digits_network(parameters, x))
        return -jnp.take_along_axis(log_p, y[:, None], -1).mean()

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, moments, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(parameters, x, y)
        return *update(parameters, grads, moments), loss

    losses = []
    for rows in data.digits_batches(len(train_x)):
        parameters, moments, loss = step(parameters, moments, train_x[rows], train_y[rows])
        losses.append(float(loss))
    logits = jax.jit(_digits_network)(parameters, test_x)
    return losses, float((np.asarray(logits).argmax(1) == test_y).mean())


CASES = {
    f.__name__: f
    for f in (
        call3,
        call50,
        chain,
        softmax,
        layer_norm,
        sum_rows,
        matmul1024,
        matmul4096,
        mlp,
        lenet,
        resnet18,
        gpt,
        lstm,
        newton_inverse,
        newton_root,
    )
}
CASES |= {f"depth{n}": partial(_deep, n) for n in data.DEPTHS}
CASES |= {f"batch{n}": partial(_batch, n) for n in data.BATCHES}
