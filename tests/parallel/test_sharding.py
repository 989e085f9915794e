"""Programs that are divided among ranks: training, layouts, memory, explain and errors."""

from __future__ import annotations

import importlib.util
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
import sharded_programs as programs
from duograph import Layout, nn, ops
from duograph.communication import get_rank
from duograph_collectives.local import run_ranks
from rank_programs import NETWORKS
from test_mpi import HERE, run

MESH = programs.MESH
BOTH = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "compiled"])


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)
    ms.reset_auto_parallel_context()


def divided(**options: Any) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **options)


def real(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


# ---- training ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_process() -> dict[str, np.ndarray]:
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return programs.results()
    finally:
        ms.set_context(mode=before)


def check_training(found: list[dict[str, np.ndarray]], whole: dict[str, np.ndarray]) -> None:
    """The losses are those of one process, and each rank holds its part of the Parameters."""
    for rank, values in enumerate(found):
        np.testing.assert_allclose(values["losses"], whole["losses"], rtol=2e-6)
        for name, full in whole.items():
            if name == "losses":
                continue
            value, at = values[name], [slice(None)] * full.ndim
            axis = 0 if any(f".{c}." in name for c in programs.COLUMNS) else None
            if name.endswith(("out.weight", "down.weight")):
                axis = 1
            if axis is not None:
                half = full.shape[axis] // 2
                at[axis] = slice(rank % 2 * half, (rank % 2 + 1) * half)
            np.testing.assert_allclose(value, full[tuple(at)], atol=1e-4, err_msg=name, strict=True)


def test_gpt_on_threads(one_process: dict[str, np.ndarray]) -> None:
    def program() -> tuple[dict[str, np.ndarray], int, int]:
        net, step, losses = programs.train()
        parameters = list(step.get_parameters())
        held = sum(p.asnumpy().nbytes for p in parameters)
        whole = sum(ms.parallel.gathered(p).asnumpy().nbytes for p in parameters)
        own = {p.name: p.asnumpy() for p in net.get_parameters()}
        return {"losses": np.array(losses), **own}, held, whole

    ms.set_context(mode=ms.GRAPH_MODE)
    found = run_ranks(program, 4)
    check_training([f[0] for f in found], one_process)
    w, columns, layers = programs.WIDTH, 3 * programs.WIDTH + 4 * programs.WIDTH, programs.LAYERS
    # per layer: query, key, value and up, three of them with biases; the matrices of out and down
    halved = layers * (columns * w + columns - w + w * w + 4 * w * w) * 4
    for _, held, whole in found:
        assert whole - held == 3 * halved // 2  # the Parameters and both moments of Adam


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_gpt_on_processes(one_process: dict[str, np.ndarray], tmp_path: pathlib.Path) -> None:
    done = run("-n", 4, HERE / "sharded_programs.py", tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    found = [dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(4)]
    check_training(found, one_process)


def train(build: Callable[[], nn.Cell], x: np.ndarray, y: np.ndarray) -> list[float]:
    ms.set_seed(5)
    net = build()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.05, 0.9)
    )
    return [float(step(ms.Tensor(x), ms.Tensor(y)).asnumpy()) for _ in range(3)]


def mlp() -> nn.Cell:
    return nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dropout(p=0.5), nn.Dense(16, 4))


def test_without_layouts_training_is_data_parallel() -> None:
    """Every rank passes its samples; the mean is that of all, and so is the mask of dropout."""
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = real(8, 8), real(8, 4)

    def build() -> nn.Cell:
        return mlp().set_train()

    def program() -> list[float]:
        divided()
        at = slice(get_rank() * 2, get_rank() * 2 + 2)
        return train(build, x[at], y[at])

    expected = train(build, x, y)
    for found in run_ranks(program, 4):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("scaled", [False, True], ids=["", "loss scale"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_the_samples_divided(name: str, scaled: bool) -> None:
    """BatchNorm has the statistics of all samples, and a step that may overflow is a branch."""
    ms.set_context(mode=ms.GRAPH_MODE)
    build, x, y = NETWORKS[name]

    def steps(x: np.ndarray, y: np.ndarray) -> list[float]:
        ms.set_seed(2)
        net = build()
        optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
        step = nn.TrainOneStepCell(with_loss, optimizer)
        if scaled:
            manager = nn.DynamicLossScaleUpdateCell(2.0**60, 2, 2)
            step = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, manager)
        found = []
        for _ in range(3):
            out = step(ms.Tensor(x), ms.Tensor(y.reshape(-1)))
            found.append(float((out[0] if isinstance(out, tuple) else out).asnumpy()))
        return found

    def program() -> list[float]:
        divided()
        at = slice(get_rank() * 2, get_rank() * 2 + 2)
        return steps(x[at], y[at])

    expected = steps(x, y)
    for found in run_ranks(program, 4):
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_models_with_other_batches_and_a_second_optimiser() -> None:
    """Programs that are compiled later find the Parameters in parts."""
    ms.set_context(mode=ms.GRAPH_MODE)
    x = real(16, 8)
    y = x[:, :4].copy()

    def program(shared: bool = True) -> list[float]:
        ms.set_seed(0)
        net = nn.SequentialCell(nn.Dense(8, 16), nn.GELU(), nn.Dense(16, 4))
        if shared:
            divided(full_batch=True)
            net.shard((MESH("dp", "None"),), parameter_plan={"0.weight": MESH("mp", "None")})
        found = []
        for n in (4, 8):
            optimizer = nn.Adam(net.trainable_params(), 1e-2)
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
            found.append(step(ms.Tensor(x[:n]), ms.Tensor(y[:n])).item())
        data = ms.dataset.NumpySlicesDataset((x, y), shuffle=False).batch(8)
        optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"mse"})
        model.train(2, data, dataset_sink_mode=False)
        found.append(model.eval(data, dataset_sink_mode=False)["mse"])
        return [*found, *model.predict(ms.Tensor(x[:2])).asnumpy().ravel().tolist()]

    expected = program(shared=False)
    for found in run_ranks(program, 4):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_fully_divided_parameters() -> None:
    """Parameters along the axis of the samples: gathered for use, gradients summed in parts."""
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = real(8, 8), real(8, 4)
    mesh = Layout((4,), ("dp",))

    def program() -> tuple[list[float], list[tuple[int, ...]]]:
        divided()
        made: list[nn.Cell] = []

        def build() -> nn.Cell:
            net = nn.SequentialCell(nn.Dense(8, 16), nn.Dense(16, 4))
            plan = {"0.weight": mesh("dp", "None"), "1.weight": mesh("dp", "None")}
            net.shard((mesh("dp", "None"),), parameter_plan=plan)
            made.append(net)
            return net

        at = slice(get_rank() * 2, get_rank() * 2 + 2)
        losses = train(build, x[at], y[at])
        return losses, [p.shape for p in made[0].get_parameters() if p.ndim == 2]

    expected = train(lambda: nn.SequentialCell(nn.Dense(8, 16), nn.Dense(16, 4)), x, y)
    for losses, shapes in run_ranks(program, 4):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert shapes == [(4, 8), (1, 16)]


# ---- annotations ---------------------------------------------------------------------------------


@BOTH
def test_cells_and_functions_are_compiled_in_both_modes(mode: int) -> None:
    ms.set_context(mode=mode)
    x, w = real(4, 8), real(8, 6)

    def program() -> list[np.ndarray]:
        divided(full_batch=True)
        layer = nn.MatMul()
        layer.shard((MESH("dp", "mp"), MESH("mp", "None")), (MESH("None", "mp"),))
        function = ms.shard(ops.matmul, ((2, 1), (1, 2)), out_strategy=((1, 1),))
        primitive = ms.jit(ops.MatMul().shard(((2, 1), (1, 2)), ((2, 2),)).__call__)
        return [f(ms.Tensor(x), ms.Tensor(w)).asnumpy() for f in (layer, function, primitive)]

    for found in run_ranks(program, 4):
        for value in found:
            np.testing.assert_allclose(value, x @ w, rtol=1e-5, atol=1e-5)


# dtype -> tolerance relative to the largest element
@pytest.mark.parametrize("dtype, near", [(ms.float16, 2e-3), (ms.bfloat16, 2e-2), (ms.float64, 0)])
def test_dtypes(dtype: Any, near: float) -> None:
    x, w = real(4, 8), real(8, 4)

    def program() -> np.ndarray:
        divided(full_batch=True)
        run = ms.shard(ops.matmul, (MESH("dp", "mp"), MESH("mp", "None")))
        out = run(ms.Tensor(x).astype(dtype), ms.Tensor(w).astype(dtype))
        assert out.dtype == dtype
        return out.astype(ms.float64).asnumpy()

    whole = x.astype(np.float64) @ w.astype(np.float64)
    for found in run_ranks(program, 4):
        np.testing.assert_allclose(found, whole, atol=(near or 1e-12) * np.abs(whole).max())


def test_results_have_the_parts_of_the_inputs() -> None:
    """A rank that passes its samples gets the results of these; anything else is whole."""
    x = real(8, 4)

    def program() -> list[tuple[int, ...]]:
        divided()
        run = ms.jit(lambda x: (x * 2, x.sum(), x.T, x.sum(0)))
        at = slice(get_rank() * 2, get_rank() * 2 + 2)
        found = run(ms.Tensor(x[at]))
        np.testing.assert_allclose(found[0].asnumpy(), x[at] * 2)
        np.testing.assert_allclose(found[1].asnumpy(), x.sum(), rtol=1e-5)
        np.testing.assert_allclose(found[2].asnumpy(), x.T)
        np.testing.assert_allclose(found[3].asnumpy(), x.sum(0), rtol=1e-5)
        return [v.shape for v in found]

    assert run_ranks(program, 4) == [[(2, 4), (), (4, 8), (4,)]] * 4


@pytest.mark.parametrize("dynamic", [None, 0, 1])
def test_numbers_of_samples_that_vary(dynamic: int | None) -> None:
    """A size is that of all samples, also where one program could serve many sizes."""
    net = nn.Dense(3, 2, weight_init="ones")

    def f(x: ms.Tensor) -> tuple[Any, ...]:
        return x * x.shape[0], net(x) + len(x), x[:, 1:].reshape(-1)

    def program(n: int = 0) -> list[Any]:
        ms.set_context(mode=ms.GRAPH_MODE)
        if not n:
            divided()
        compiled = ms.jit(f, dynamic=dynamic, jit_level="O0")
        found = []
        for k in (4, 6, 8, 10, 12, 4, 2):
            x = real(k, 3)
            at = slice(None) if n else slice(get_rank() * k // 2, (get_rank() + 1) * k // 2)
            found.append([y.asnumpy() for y in compiled(ms.Tensor(x[at]))])
        return found

    whole = program(1)
    parts = run_ranks(program, 2)
    for want, *ranks in zip(whole, *parts, strict=True):
        for full, *pieces in zip(want, *ranks, strict=True):
            np.testing.assert_allclose(np.concatenate(pieces), full, rtol=1e-6, strict=True)


def test_parameters_that_are_written_and_returned() -> None:
    """A rank writes its part of a Parameter, and a function that returns it returns the whole."""

    def program() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        divided(full_batch=True)
        net = nn.Dense(4, 8)
        net.shard((MESH("None", "None"),), parameter_plan={"weight": MESH("mp", "None")})
        start = net.weight.asnumpy().copy()

        @ms.jit
        def run(x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
            net.weight += 1
            assert net.weight.shape == (8, 4)
            return net(x), net.weight.value()

        _, new = run(ms.Tensor(real(2, 4)))
        own, whole = net.weight.asnumpy(), ms.parallel.gathered(net.weight).asnumpy()
        net.weight.set_data(ms.Tensor(start))
        np.testing.assert_array_equal(ms.parallel.gathered(net.weight).asnumpy(), start)
        return start + 1, new.asnumpy(), whole, own

    for rank, (expected, new, whole, own) in enumerate(run_ranks(program, 4)):
        np.testing.assert_array_equal(new, expected)
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(own, expected[rank % 2 * 4 :][:4])


def test_explain() -> None:
    def program() -> str:
        divided(full_batch=True)
        net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
        net.shard((MESH("dp", "None"),), parameter_plan={"0.weight": MESH("mp", "None")})
        run = ms.jit(lambda x: ops.svd(net(x), compute_uv=False))
        return str(run.explain(ms.Tensor(real(4, 8))))

    text = run_ranks(program, 4)[3]
    for line in (
        "divided among 4 ranks, dp=2 x mp=2:",
        "0.weight: (16/mp, 8)",
        "2.weight: (4, 16/mp)",
        "1 all_reduce along mp: 32 bytes",
        "all_gather along dp for host_call at ",
        "on whole tensors, because there is no index equation:",
    ):
        assert line in text, text


def test_rank_lists_and_meshes_of_one_axis() -> None:
    """Ranks 0 and 2 are neighbours in the mesh; axes of size 1 divide nothing."""
    x = real(8, 4)

    def program() -> np.ndarray:
        mesh = Layout((2, 2, 1), ("a", "b", "c"), [0, 2, 1, 3])
        divided(dataset_strategy=(mesh(("a", "b"), "c"),))
        at = [0, 2, 1, 3].index(get_rank()) * 2
        return ms.jit(lambda x: x.sum(0))(ms.Tensor(x[at : at + 2])).asnumpy()

    for found in run_ranks(program, 4):
        np.testing.assert_allclose(found, x.sum(0), rtol=1e-5)


def test_other_programs_are_not_divided() -> None:
    """Without the mode, and with one rank, layouts have no effect and leave no op."""
    net = nn.Dense(4, 4)
    net.shard(((1, 1),))
    run = ms.jit(lambda x: ms.parallel.reshard(net(x), Layout((1,), ("dp",))("dp", "None")))
    text = str(run.explain(ms.Tensor(real(2, 4))).graph)
    assert "sharding_constraint" not in text

    def program() -> str:
        other = nn.Dense(4, 4)
        other.shard((MESH("dp", "None"),))
        return graph_text(other)

    assert run_ranks(program, 4) == [graph_text(net)] * 4


def graph_text(net: nn.Cell) -> str:
    """The graph of a compiled call of a Cell."""
    return str(ms.jit(lambda x: net(x)).explain(ms.Tensor(real(2, 4))).graph)


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = pathlib.Path(__file__).parents[2] / "docs" / "parallel.md"
    section = page.read_text().split("## Sharding\n")[1]
    code, printed = section.split("```python\n")[1].split("```\n```\n")
    exec(code, {})
    assert capsys.readouterr().out == printed.split("```")[0]


# ---- errors --------------------------------------------------------------------------------------


def _shard(*strategies: Any, **options: Any) -> Callable[[], Any]:
    def call() -> Any:
        run = ms.shard(lambda x: x * 2, strategies, **options)
        return run(ms.Tensor(real(6, 4)))

    return call


def _plan(plan: Any) -> Callable[[], Any]:
    return lambda: nn.Dense(4, 6).shard((MESH("None", "None"),), parameter_plan=plan)


def _derivative() -> Any:
    net = nn.Dense(4, 4)
    net.shard((MESH("dp", "None"),))
    return ms.grad(lambda x: net(x).sum())(ms.Tensor(real(4, 4)))


# name -> (program, error, what it says)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "size": (
        _shard(MESH(("dp", "mp"), "None")), ValueError,
        r"in_strategy: axis 0 of size 6 .*\(6, 4\).* into 4 equal parts, .* dp and mp",
    ),
    "size, numbers": (
        _shard((4, 1)), ValueError, r"axis 0 of size 6 .*into 4 equal parts, .*of 4 ranks",
    ),
    "axes": (_shard(MESH("dp")), ValueError, r"layout of 1 axes for a tensor of shape \(6, 4\)"),
    "count": (
        _shard(MESH("dp", "None"), MESH("None", "None")), TypeError, "1 tensors for 2 layouts",
    ),
    "parts": (_shard((3, 1)), ValueError, "wanted numbers of parts whose product divides the 4"),
    "mesh": (
        _shard(Layout((2, 4), ("a", "b"))("a", "b")), ValueError, "a device_matrix of 4 ranks",
    ),
    "kinds": (_shard((2, 1), MESH("dp", "None")), TypeError, "Layouts and tuples of ints"),
    "kind": (_shard([2, 1]), TypeError, "wanted a Layout, or a tuple of ints"),
    "no tuple": (lambda: ms.shard(ops.relu, 2), TypeError, "wanted a tuple with one Layout"),
    "called": (_shard(MESH), ValueError, "no tensor axes yet"),
    "plan": (
        _plan({"weight": (4, 1)}), ValueError, r"Parameter weight: axis 0 of size 6 .* 4 equal",
    ),
    "plan, kind": (_plan([1]), TypeError, "wanted a dict or None"),
    "plan, function": (
        _shard((1, 1), parameter_plan={}), TypeError, "parameter_plan for .*; wanted None",
    ),
    "primitive": (
        lambda: ops.MatMul().shard(((1, 2), (4, 1))), ValueError, "into 2 and into 4 parts",
    ),
    "primitive, kinds": (
        lambda: ops.Add().shard(((1,), (1,)), (MESH("dp"),)), ValueError, "wanted one kind",
    ),
    "dataset": (
        lambda: divided(dataset_strategy="whole"), ValueError, "'data_parallel', 'full_batch'",
    ),
    "stages": (lambda: divided(pipeline_stages=0), ValueError, "wanted an int of 1 or more"),
    "derivative": (_derivative, NotImplementedError, "Compile the whole training step"),
    "reshard": (lambda: ops.reshard(ms.Tensor([1.0]), (1,)), TypeError, "wanted a Layout"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, error, text = ERRORS[name]

    def program() -> None:
        divided(full_batch=True)
        with pytest.raises(error, match=text):
            call()

    run_ranks(program, 4)


# arguments of Layout, the axes it is called with -> error
LAYOUTS: list[tuple[tuple[Any, ...], tuple[Any, ...], type[Exception], str]] = [
    (([2], ("a",)), (), TypeError, "device_matrix"),
    (((2,), ["a"]), (), TypeError, "alias_name"),
    (((2, 2), ("a",)), (), ValueError, "1 names for 2 axes"),
    (((0,), ("a",)), (), ValueError, "1 or more"),
    (((2, 2), ("a", "a")), (), ValueError, "different names"),
    (((2,), ("None",)), (), ValueError, "not '' or 'None'"),
    (((2,), ("interleaved_parallel",)), (), ValueError, "not built"),
    (((2,), ("a",), (0, 1)), (), TypeError, "list of ints"),
    (((2,), ("a",), [0, 0]), (), ValueError, "2 different ranks"),
    (((2,), ("a",)), ("b",), ValueError, "wanted one of 'a' or 'None'"),
    (((2, 2), ("a", "b")), ("a", ("b", "a")), ValueError, "'a' twice"),
]


@pytest.mark.parametrize("given, called, error, text", LAYOUTS)
def test_wrong_layouts(given: Any, called: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Layout(*given)(*called)


def test_layout_is_that_of_mindspore() -> None:
    layout = Layout((2, 2, 2), ("dp", "sp", "mp"))
    assert layout("dp", "mp").to_dict() == {
        "device_matrix": (2, 2, 2), "tensor_map": (2, 0), "interleaved_parallel": False,
        "alias_name": ("dp", "sp", "mp"), "rank_list": [0, 1, 2, 3, 4, 5, 6, 7],
    }  # fmt: skip
    assert layout(("dp", "sp"), "None").to_dict()["tensor_map"] == ((2, 1), -1)
    assert layout("dp") == layout("dp") != layout("sp")
