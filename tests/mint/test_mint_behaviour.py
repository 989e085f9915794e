"""What duograph.mint does beside computing values: randomness, groups, errors, writes in place."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, mint

F, D = mint.nn.functional, mint.distributed
X = Tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
I = Tensor([[1, 2], [3, 4]])  # noqa: E741 (a matrix of ints)


def test_importing_duograph_does_not_load_mint() -> None:
    code = "import duograph, sys; assert 'duograph.mint' not in sys.modules; duograph.mint.nn"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_exists_and_is_documented() -> None:
    for module in (mint, mint.nn, F, mint.optim, mint.linalg, mint.special, D):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{module.__name__}.{name}"
    assert mint.functional is mint.nn.functional
    assert mint.Tensor is ms.Tensor


# ---- random numbers -----------------------------------------------------------------------------

SAMPLERS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], str]] = {
    "rand": (lambda **k: mint.rand(200, 5, **k), (200, 5), "Float32"),
    "rand of float16": (lambda **k: mint.rand((40,), dtype=ms.float16, **k), (40,), "Float16"),
    "randn": (lambda **k: mint.randn((200, 5), **k), (200, 5), "Float32"),
    "randint": (lambda **k: mint.randint(3, 9, (400,), **k), (400,), "Int64"),
    "randint from 0": (lambda **k: mint.randint(9, (4, 0), **k), (4, 0), "Int64"),
    "randint of floats": (
        lambda **k: mint.randint(0, 5, (9,), dtype=ms.float32, **k), (9,), "Float32",
    ),
    "randperm": (lambda **k: mint.randperm(50, **k), (50,), "Int64"),
    "normal": (lambda **k: mint.normal(1.0, 2.0, (300,), **k), (300,), "Float32"),
    "normal of tensors": (lambda **k: mint.normal(X, mint.abs(X), **k), (2, 3), "Float32"),
    "bernoulli": (lambda **k: mint.bernoulli(mint.full((300,), 0.25), **k), (300,), "Float32"),
    "multinomial": (
        lambda **k: mint.multinomial(Tensor([0.0, 1.0, 3.0]), 2, **k), (2,), "Int64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLERS)
def test_random_functions_follow_their_generator(name: str) -> None:
    draw, shape, dtype = SAMPLERS[name]
    generator = ms.Generator().manual_seed(7)
    first, second = draw(generator=generator), draw(generator=generator)
    again = draw(generator=ms.Generator().manual_seed(7))
    compiled = ms.jit(lambda: draw(generator=generator))
    generator.manual_seed(7)
    assert first.shape == shape and str(first.dtype) == dtype
    np.testing.assert_array_equal(first.asnumpy(), again.asnumpy())
    np.testing.assert_array_equal(first.asnumpy(), compiled().asnumpy())
    if first.size > 40:
        assert (first.asnumpy() != second.asnumpy()).any()
    with pytest.raises(TypeError, match="wanted a Generator"):
        draw(generator=3)


def test_random_values_are_distributed_as_asked() -> None:
    ms.manual_seed(3)
    low_high = mint.randint(3, 9, (600,)).asnumpy()
    assert set(low_high) == set(range(3, 9))
    assert sorted(mint.randperm(20).tolist()) == list(range(20))
    assert abs(mint.normal(1.0, 2.0, (4000,)).asnumpy().mean() - 1) < 0.15
    assert abs(mint.bernoulli(mint.full((4000,), 0.25)).asnumpy().mean() - 0.25) < 0.05
    assert set(mint.multinomial(Tensor([0.0, 1.0, 3.0]), 50, True).tolist()) <= {1, 2}
    assert mint.randint_like(X, 5).dtype is ms.float32
    assert mint.rand_like(X, dtype=ms.float64).dtype is ms.float64
    assert mint.randn_like(X).shape == (2, 3)
    assert mint.empty(2, 3, device="CPU").shape == (2, 3)


def test_dropout_scales_what_it_keeps() -> None:
    layer = mint.nn.Dropout(0.25).set_train()
    found = layer(mint.ones((1000,))).asnumpy()
    assert set(np.unique(found)) == {0.0, np.float32(4 / 3)}
    assert 0.15 < (found == 0).mean() < 0.35
    channels = mint.nn.Dropout2d(0.5).set_train()(mint.ones((4, 50, 2, 2))).asnumpy()
    assert ((channels == 0).all((2, 3)) | (channels == 2).all((2, 3))).all()
    assert mint.nn.Dropout(0.5).set_train(False)(X) is X


# ---- writes in place ----------------------------------------------------------------------------

IN_PLACE: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "relu_": (F.relu_, lambda x: np.maximum(x, 0)),
    "relu": (lambda x: F.relu(x, True), lambda x: np.maximum(x, 0)),
    "relu6": (lambda x: F.relu6(x, inplace=True), lambda x: x.clip(0, 6)),
    "silu": (lambda x: F.silu(x, True), lambda x: x / (1 + np.exp(-x))),
    "elu_": (F.elu_, lambda x: np.where(x > 0, x, np.expm1(x))),
    "hardtanh_": (F.hardtanh_, lambda x: x.clip(-1, 1)),
    "sigmoid_": (F.sigmoid_, lambda x: 1 / (1 + np.exp(-x))),
    "threshold_": (lambda x: F.threshold_(x, 2, 9), lambda x: np.where(x > 2, x, 9)),
    "nn.ELU": (lambda x: mint.nn.ELU(inplace=True)(x), lambda x: np.where(x > 0, x, np.expm1(x))),
    "addr_": (
        lambda x: mint.addr_(x, Tensor([1.0, 2.0]), Tensor([1.0, 0.0, 1.0]), 2, 3),
        lambda x: 2 * x + 3 * np.outer([1, 2], [1, 0, 1]),
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_functions_write_their_operand(name: str, compiled: bool) -> None:
    function, expected = IN_PLACE[name]
    x = Tensor(X.asnumpy().copy())
    found = (ms.jit(lambda v: function(v)) if compiled else function)(x)
    np.testing.assert_allclose(found.asnumpy(), expected(X.asnumpy()), 1e-6)
    np.testing.assert_allclose(x.asnumpy(), expected(X.asnumpy()), 1e-6)


# ---- steps of batch normalisation over processes ------------------------------------------------


def test_batch_norm_steps_join_two_batches() -> None:
    data = np.random.default_rng(0).normal(size=(6, 3, 2)).astype(np.float32)
    parts = [Tensor(data[:2]), Tensor(data[2:])]
    stats = [mint.batch_norm_stats(x, 1e-5) for x in parts]
    running_mean, running_var = mint.zeros(3), mint.ones(3)
    mean, invstd = mint.batch_norm_gather_stats_with_counts(
        parts[0], mint.stack([s[0] for s in stats]), mint.stack([s[1] for s in stats]),
        running_mean, running_var, 0.5, 1e-5, Tensor([4.0, 8.0]),
    )  # fmt: skip
    axes = (0, 2)
    np.testing.assert_allclose(mean.asnumpy(), data.mean(axes), 1e-5, 1e-6)
    np.testing.assert_allclose(invstd.asnumpy(), (data.var(axes) + 1e-5) ** -0.5, 1e-4)
    np.testing.assert_allclose(running_mean.asnumpy(), data.mean(axes) / 2, 1e-5, 1e-6)
    np.testing.assert_allclose(running_var.asnumpy(), 0.5 + data.var(axes, ddof=1) / 2, 1e-4)
    weight, bias = Tensor([1.0, 2.0, 3.0]), Tensor([0.5, 0.0, 1.0])
    found = mint.batch_norm_elemt(Tensor(data), weight, bias, mean, invstd)
    wanted = F.batch_norm(Tensor(data), None, None, weight, bias, True)
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), 1e-4, 1e-5)


# ---- process groups -----------------------------------------------------------------------------


def test_process_group_of_one_rank() -> None:
    if D.is_initialized():  # another test began it
        D.destroy_process_group()
    assert D.is_available() and not D.is_initialized()
    D.init_process_group("nccl", world_size=1, rank=0)
    assert D.is_initialized() and D.get_backend() == "nccl"
    group = D.new_group([0], group_desc="mine")
    assert (D.get_rank(group), D.get_world_size(group), D.get_backend(group)) == (0, 1, "nccl")
    assert D.get_process_group_ranks(group) == [0]
    assert D.get_global_rank(group, 0) == D.get_group_rank(group, 0) == 0
    D.destroy_process_group(group)
    with pytest.raises(ValueError, match="mine"):
        D.get_rank(group)
    D.destroy_process_group()
    assert not D.is_initialized() and D.get_backend() == "hccl"


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "two processes": (lambda: D.init_process_group(world_size=2), ValueError, "wanted 1"),
    "rank 1": (lambda: D.init_process_group(rank=1), ValueError, "wanted 0"),
    "backend": (lambda: D.init_process_group("mpi"), ValueError, "wanted one of hccl"),
    "group of two": (lambda: D.new_group([0, 1]), ValueError, "from 0 to 0"),
    "unknown group": (lambda: D.all_reduce(X, group="no"), ValueError, "no"),
    "group of ints": (lambda: D.barrier(group=3), TypeError, "wanted a string"),  # type: ignore[arg-type]
    "reduction": (lambda: D.all_reduce(X, "mean"), TypeError, "wanted one of sum"),
    "no tensor": (lambda: D.all_reduce([1.0]), TypeError, "wanted a Tensor"),  # type: ignore[arg-type]
    "source": (lambda: D.broadcast(X, 1), ValueError, "wanted 0, the ranks"),
    "other shape": (lambda: D.all_gather_into_tensor(mint.zeros(2), X), ValueError, "wanted float"),
    "two outputs": (lambda: D.all_gather([X, X], X), TypeError, "a list of 1 Tensor"),
    "split": (lambda: D.all_to_all_single(X, X, [1, 1]), ValueError, "wanted 1 lengths"),
    "send to itself": (lambda: D.send(X, 0), ValueError, "this rank"),
    "send": (lambda: D.send(X, 1), ValueError, "wanted 0, the ranks"),
    "receive": (lambda: D.irecv(X, 1), ValueError, "src=1; wanted 0"),
    "tag": (lambda: D.P2POp("isend", X, 1, tag=2), ValueError, "tag=2"),
    "transfers": (
        lambda: D.batch_isend_irecv([D.P2POp(D.isend, X, 1)]), ValueError, "wanted 0, the ranks",
    ),
    "objects": (lambda: D.send_object_list([1], 1), ValueError, "dst=1; wanted 0"),
    "list of objects": (lambda: D.all_gather_object([], 1), TypeError, "a list of 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_for_one_process(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_collectives_return_handles_when_asynchronous() -> None:
    out = mint.zeros((2, 3))
    for work in (D.all_reduce(X, "avg", async_op=True), D.barrier(async_op=True),
                 D.all_gather_into_tensor(out, X, async_op=True)):  # fmt: skip
        assert work is not None
        work.wait()
    np.testing.assert_array_equal(out.asnumpy(), X.asnumpy())


# ---- errors -------------------------------------------------------------------------------------

P = ms.Parameter(Tensor([1.0, 2.0]), name="p")
ERRORS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "zeros": (lambda: mint.zeros((2, -1)), ValueError, "-1"),
    "pinned": (lambda: mint.empty(2, pin_memory=True), ValueError, "not offered"),
    "sum": (lambda: mint.sum(X, 2), ValueError, "dim 2"),
    "max of two kinds": (lambda: mint.max(X, 0, other=X), TypeError, "together with an axis"),
    "median": (lambda: mint.median(X, keepdim=True), TypeError, "without dim"),
    "where": (lambda: mint.where(X > 0, X), TypeError, "wanted both"),
    "clamp": (lambda: mint.clamp(X), ValueError, "neither min nor max"),
    "add": (lambda: mint.add(I, I, alpha=0.5), TypeError, "alpha=0.5"),
    "add 2.0": (lambda: mint.add(I, I, alpha=2.0), TypeError, "wanted an int"),
    "einsum": (lambda: mint.einsum(X, [0, 60]), ValueError, "0 to 51"),
    "broadcast": (lambda: mint.add(X, mint.ones(4)), ValueError, r"\(2, 3\)"),
    "cat": (lambda: mint.cat((X, I)), ValueError, "cat"),
    "split": (lambda: mint.split(X, [1, 1], 1), ValueError, "split"),
    "squeeze": (lambda: mint.squeeze(X, 3), ValueError, "dim 3"),
    "t": (lambda: mint.t(mint.ones((1, 1, 1))), ValueError, "two axes"),
    "select": (lambda: mint.select(X, 0, 5), IndexError, "5"),
    "dot": (lambda: mint.dot(X, X), ValueError, "two vectors"),
    "bmm": (lambda: mint.bmm(X, X), ValueError, "b, n, k"),
    "diag": (lambda: mint.diag(mint.ones((1, 1, 1))), ValueError, "one or two axes"),
    "cdist": (lambda: mint.cdist(X, X, compute_mode="fast"), ValueError, "compute_mode"),
    "norm": (lambda: mint.norm(X, "max"), ValueError, "'fro' or 'nuc'"),
    "output_size": (
        lambda: mint.repeat_interleave(X, 2, 0, output_size=5), ValueError, "output_size=5",
    ),
    "randint": (lambda: mint.randint(5), TypeError, "1 arguments"),
    "normal": (lambda: mint.normal(X, 1.0, (2,)), ValueError, "size together"),
    "not a tensor": (lambda: mint.meshgrid(X, 1), TypeError, "wanted Tensors"),  # type: ignore[arg-type]
    "same and stride": (lambda: mint.nn.Conv2d(1, 1, 3, 2, "same"), ValueError, "stride 1"),
    "padding_mode": (lambda: mint.nn.Conv2d(1, 1, 3, padding_mode="same"), ValueError, "zeros"),
    "groups": (lambda: mint.nn.Conv2d(3, 4, 1, groups=2), ValueError, "divisor"),
    "BatchNorm2d": (lambda: mint.nn.BatchNorm2d(3)(X), ValueError, "4-D"),
    "GroupNorm": (lambda: mint.nn.GroupNorm(2, 3), ValueError, "divisor"),
    "sparse": (lambda: mint.nn.Embedding(3, 2, sparse=True), ValueError, "not offered"),
    "Linear": (lambda: mint.nn.Linear(4, 2)(X), ValueError, "4"),
    "reduction": (lambda: mint.nn.MSELoss("avg"), ValueError, "'sum'"),
    "kl_div": (lambda: F.kl_div(X, X, "avg", True), ValueError, "batchmean"),
    "divisor": (lambda: F.avg_pool2d(mint.ones((1, 2, 2)), 2, divisor_override=0), ValueError, "0"),
    "max_unpool2d": (lambda: F.max_unpool2d(X, X, 2), ValueError, "one shape"),
    "no parameters": (lambda: mint.optim.SGD([], 0.1), ValueError, "no parameters"),
    "a Parameter": (lambda: mint.optim.SGD(P, 0.1), TypeError, "a list of Parameters"),
    "twice": (lambda: mint.optim.SGD([P, P], 0.1), ValueError, "twice"),
    "group": (lambda: mint.optim.Adam([{"params": [P], "rate": 1}]), ValueError, "'rate'"),
    "lr": (lambda: mint.optim.Adam([P], -1.0), ValueError, "lr=-1.0"),
    "betas": (lambda: mint.optim.Adam([P], betas=(0.5, 1.0)), ValueError, r"betas\[1\]"),
    "nesterov": (lambda: mint.optim.SGD([P], 0.1, nesterov=True), ValueError, "momentum above 0"),
    "gradients": (lambda: mint.optim.SGD([P], 0.1)((X, X)), ValueError, "2 gradients"),
    "gradient": (lambda: mint.optim.SGD([P], 0.1)((X,)), ValueError, r"\(2, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments_are_refused(name: str) -> None:
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def test_network_of_mint_learns(mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        ms.set_seed(1)
        net = ms.nn.SequentialCell(
            mint.nn.Linear(3, 8), mint.nn.LayerNorm(8), mint.nn.GELU(), mint.nn.Linear(8, 2)
        )
        optimizer = mint.optim.AdamW(net.trainable_params(), 0.05)
        step = ms.nn.TrainOneStepCell(
            ms.nn.WithLossCell(net, mint.nn.CrossEntropyLoss()), optimizer
        )
        x, labels = mint.randn(16, 3), mint.randint(0, 2, (16,))
        losses = [float(step(x, labels)) for _ in range(25)]
        assert losses[-1] < losses[0] / 2
        ms.ops.assign(optimizer.param_groups[0]["lr"], Tensor(0.0))
        frozen = net[0].weight.asnumpy().copy()
        step(x, labels)
        np.testing.assert_array_equal(net[0].weight.asnumpy(), frozen)
    finally:
        ms.set_context(mode=before)


def test_layers_start_from_the_documented_distributions() -> None:
    ms.set_seed(0)
    for layer, fan_in in ((mint.nn.Linear(100, 50), 100), (mint.nn.Conv2d(10, 50, 3), 90),
                          (mint.nn.ConvTranspose2d(10, 50, 3), 450)):  # fmt: skip
        bound = fan_in**-0.5
        for p in (layer.weight, layer.bias):
            values = np.abs(p.asnumpy())
            assert 0.8 * bound < values.max() <= bound * 1.0001
    assert abs(mint.nn.Embedding(100, 50).weight.asnumpy().std() - 1) < 0.05
    assert not mint.nn.Embedding(5, 3, padding_idx=-1).weight.asnumpy()[4].any()
