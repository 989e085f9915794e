"""Options that work, each seen to change what it promises to change."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import common, context, dataset, nn, ops, option_checks
from duograph.errors import GradientError, OptionWarning, UnsupportedSyntaxError


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    before = dict(vars(context.settings))
    yield
    ms.set_context(**{k: v for k, v in before.items() if v is not None})
    context.settings.jit_config = before["jit_config"]


def t(*values: float) -> ms.Tensor:
    return ms.Tensor(list(values), ms.float32)


# ---- hooks of a compiled Cell -------------------------------------------------------------------


class Net(nn.Cell):
    """A Cell with a child, for hooks on either."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.inner(x) * 2


def compiled(how: str, x: ms.Tensor) -> Net:
    net: Any = Net()
    if how == "GRAPH_MODE":
        ms.set_context(mode=ms.GRAPH_MODE)
    elif how == "jit":
        net = ms.jit(net)
    elif how == "compile":
        net.compile(x)
    return net


HOOKS = {
    "forward_pre_hook": lambda cell, inputs: (inputs[0] + 1,),
    "forward_hook": lambda cell, inputs, output: output * 3,
    "backward_hook": lambda cell, grad_input, grad_output: (grad_input[0] * 5,),
    "backward_pre_hook": lambda cell, grad_output: (grad_output[0] * 7,),
}


@pytest.mark.parametrize("how", ["GRAPH_MODE", "jit", "compile"])
@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_of_a_compiled_cell_run_around_it(how: str, kind: str) -> None:
    x = t(1, 2).reshape(1, 2)

    def run(net: Net) -> list[Any]:
        value, grad = ms.value_and_grad(lambda x: net(x).sum())(x)
        return [net(x).asnumpy().tolist(), float(value), grad.asnumpy().tolist()]

    eager, plain = Net(), run(Net())
    getattr(eager, f"register_{kind}")(HOOKS[kind])
    wanted = run(eager)
    assert wanted != plain
    net = compiled(how, x)
    assert run(net) == plain
    handle = getattr(net, f"register_{kind}")(HOOKS[kind])
    assert run(net) == wanted
    handle.remove()
    assert run(net) == plain


@pytest.mark.parametrize("how", ["GRAPH_MODE", "jit", "compile"])
def test_hooks_inside_a_compiled_cell_run(how: str) -> None:
    x = t(1, 2).reshape(1, 2)
    net = compiled(how, x)
    plain = net(x).asnumpy()
    net.inner.register_forward_hook(HOOKS["forward_hook"])
    assert net(x).asnumpy().tolist() == (plain * 3).tolist()


def test_hooks_are_not_exported(tmp_path: pathlib.Path) -> None:
    net = Net()
    net.register_forward_hook(HOOKS["forward_hook"])
    with pytest.raises(UnsupportedSyntaxError, match="export: got Net, which has hooks"):
        ms.export(net, ops.ones((1, 2)), file_name=str(tmp_path / "n"), file_format="MINDIR")


# ---- settings and options of compiled functions -------------------------------------------------


class WrongGradient(nn.Cell):
    """A Cell whose own bprop returns another dtype than its input has."""

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x * 2

    def bprop(self, x: ms.Tensor, out: ms.Tensor, dout: ms.Tensor) -> tuple[ms.Tensor]:
        return ((dout * 2).astype(ms.float64),)


@pytest.mark.parametrize("how", ["eager", "jit"])
def test_check_bprop(how: str) -> None:
    net = WrongGradient()
    gradient = ms.grad(lambda x: net(x).sum())
    if how == "jit":
        gradient = ms.jit(gradient)
    assert gradient(t(1)).asnumpy().tolist() == [2]
    ms.set_context(check_bprop=True)
    with pytest.raises(GradientError, match=r"its bprop \(.*\) returned a float64 gradient"):
        gradient(t(1))
    ms.set_context(check_bprop=False)
    assert gradient(t(1)).asnumpy().tolist() == [2]


def count_down(x: ms.Tensor) -> ms.Tensor:
    return x if x <= 0 else count_down(x - 1)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_max_call_depth(level: str) -> None:
    f = ms.jit(count_down, jit_level=level)
    ms.set_context(max_call_depth=40)
    assert f(ms.Tensor(30.0)).item() == 0
    with pytest.raises(RecursionError, match="call depth limit 40"):
        f(ms.Tensor(60.0))
    ms.set_context(max_call_depth=80)
    assert f(ms.Tensor(60.0)).item() == 0


def test_max_call_depth_has_a_limit() -> None:
    option_checks.forget_warnings()
    with pytest.warns(OptionWarning, match="max_call_depth is 1000 at most, which is used"):
        ms.set_context(max_call_depth=5000)
    assert ms.get_context("max_call_depth") == 1000
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="wanted an int from 1 to 1000"):
            ms.set_context(max_call_depth=wrong)


def test_jit_config_as_a_dictionary() -> None:
    """Equal dictionaries share programs; each place of options goes before the more general one."""
    f = ms.jit(lambda x: x * 2)
    for _ in range(3):
        ms.set_context(jit_config={"jit_level": "O0"})
        assert f(t(1)).asnumpy().tolist() == [2]
    assert (f.level(), f.cache_info().misses) == ("O0", 1)
    assert ms.get_context("jit_config") == ms.JitConfig(jit_level="O0")
    config = {"jit_level": "O1", "jit_syntax_level": "STRICT"}
    g = ms.jit(lambda x: x * 2, jit_config=config)
    assert (g.level(), g.strict()) == ("O1", True)
    assert (ms.jit(g.function, jit_config=config, jit_level="O2").level(), g.level()) == (
        "O2",
        "O1",
    )
    h = ms.jit(g.function, jit_config=config, jit_syntax_level=ms.STRICT)
    assert (h.level(), h.strict()) == ("O1", True)
    assert ms.jit(g.function, jit_config=config, jit_syntax_level="LAX").strict() is False
    net = nn.Dense(2, 1)
    net.set_jit_config({"jit_level": "O0"})
    ms.jit(net)
    assert net._compiled.level() == "O0"
    with pytest.raises(TypeError, match="set_context: got jit_config=3; wanted a JitConfig"):
        ms.set_context(jit_config=3)


def test_set_jit_config_after_the_first_call() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(2, 1)
    x = ops.ones((1, 2))
    net(x)
    net.set_jit_config(ms.JitConfig(jit_level="O0"))
    net(x)
    assert net.__dict__["_graph"].level() == "O0"


@pytest.mark.parametrize("form", ["positions", "keywords"])
def test_set_inputs_is_checked(form: str) -> None:
    declared = ms.Tensor(shape=[None, 2], dtype=ms.float32)
    net = nn.Dense(2, 1)
    net.set_inputs(declared) if form == "positions" else net.set_inputs(x=declared)
    ms.set_context(mode=ms.GRAPH_MODE)
    assert net(ops.ones((3, 2))).shape == (3, 1)
    for wrong in (ops.ones((3, 3)), ops.ones((3, 2), ms.float16)):
        with pytest.raises(ValueError, match=r"input_signature has shape|input_signature says"):
            net(wrong)


def test_data_sink_compiles() -> None:
    data = dataset.NumpySlicesDataset(np.ones((4, 2), np.float32), shuffle=False)
    step = ms.data_sink(
        lambda x: x + isinstance(x, ms.Tensor), data, jit_config={"jit_level": "O0"}
    )
    before = ms.jit_stats()["compiles"]
    assert step().asnumpy().tolist() == [2, 2]
    assert ms.jit_stats()["compiles"] == before + 1


# ---- tensors and ops ----------------------------------------------------------------------------

CASTS = {
    "astype": lambda x: x.astype(ms.float32),
    "to, copied": lambda x: x.to(ms.float32, copy=True),
    "to a device, copied": lambda x: x.to("CPU", copy=True),
}


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize("cast", CASTS)
def test_copies_are_copies(cast: str, mode: str) -> None:
    def f(x: ms.Tensor) -> ms.Tensor:
        y = CASTS[cast](x)
        y[0] = 9.0
        return x

    run = ms.jit(f) if mode == "jit" and cast != "to a device, copied" else f
    assert run(t(1, 2)).asnumpy().tolist() == [1, 2]
    x = t(1, 2)
    assert x.astype(ms.float32, copy=False) is x
    assert ms.grad(lambda x: (CASTS[cast](x) * 3).sum())(x).asnumpy().tolist() == [3, 3]


def refused(function: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        function()


def test_sizes_that_are_given_are_checked() -> None:
    x = t(1, 2, 3)
    assert x.repeat_interleave(2, output_size=6).shape == (6,)
    refused(lambda: x.repeat_interleave(2, output_size=5), "output_size=5; .* has 6")
    assert len(ops.Unstack(axis=0, num=3)(x)) == 3
    refused(lambda: ops.Unstack(axis=0, num=2)(x), r"num=2 for axis 0 of shape \(3,\)")
    classes = ms.Tensor([[1, 2]])
    assert ops.log_uniform_candidate_sampler(classes, 2)[1].shape == (1, 2)
    refused(lambda: ops.log_uniform_candidate_sampler(classes, 1), "wanted num_true=1")
    transposed = ops.Conv3DTranspose(2, 1, 1)
    assert transposed(ops.ones((1, 2, 2, 2, 2)), ops.ones((2, 1, 1, 1, 1))).shape == (1, 1, 2, 2, 2)
    refused(
        lambda: transposed(ops.ones((1, 3, 2, 2, 2)), ops.ones((3, 1, 1, 1, 1))), "in_channel=2"
    )
    refused(lambda: ops.matrix_diag(x, align="MIDDLE"), "align='MIDDLE'; wanted one of 'LEFT_LEFT'")


def test_seed_of_a_sampler() -> None:
    def drawn(seed: int) -> list[int]:
        ms.set_seed(1)
        classes = ms.Tensor([[1]])
        found = ops.log_uniform_candidate_sampler(classes, 1, 20, False, 100, seed)[0]
        return [int(n) for n in found.asnumpy()]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_norm_is_never_below_epsilon() -> None:
    norm = ops.LpNorm(axis=0, epsilon=0.5)
    assert [norm(t(0.0)).item(), norm(t(3, 4)).item()] == [0.5, 5.0]


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_sparse_meshgrid(indexing: str) -> None:
    rows = (np.arange(3.0), np.arange(2.0), np.arange(4.0))
    found = ms.numpy.meshgrid(*[ms.Tensor(r) for r in rows], sparse=True, indexing=indexing)
    for got, wanted in zip(found, np.meshgrid(*rows, sparse=True, indexing=indexing), strict=True):
        np.testing.assert_array_equal(got.asnumpy(), wanted)


def test_new_tensors_are_made_on_the_device() -> None:
    made = (
        ops.empty(2, device="CPU"),
        ops.empty_like(t(1), device="CPU"),
        t(1).new_empty(2, device="CPU"),
    )
    assert [str(x.device) for x in made] == ["CPU:0"] * 3
    with pytest.raises(RuntimeError):
        ops.empty(2, device="Nowhere")


# ---- Cells, training, datasets ------------------------------------------------------------------


def test_known_cells_are_left_out() -> None:
    net = Net()
    assert [p for p, _ in net.cells_and_names(cells={net.inner})] == [""]
    assert [p for p, _ in net.cells_and_names()] == ["", "inner"]


def test_groups_of_processes() -> None:
    ms.communication.create_group("mine", [0])
    assert (ms.communication.get_rank("mine"), ms.communication.get_group_size("mine")) == (0, 1)
    ms.communication.destroy_group("mine")
    refused(lambda: ms.communication.get_rank("mine"), "get_rank: got group='mine'; wanted")
    world = ms.communication.HCCL_WORLD_COMM_GROUP
    refused(lambda: ms.communication.get_world_rank_from_group_rank(world, 3), "got rank 3")


def test_time_of_data(capsys: pytest.CaptureFixture[str]) -> None:
    data = dataset.NumpySlicesDataset((np.ones((4, 2), "f"), np.ones((4, 1), "f"))).batch(2)
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
    model.train(1, data, ms.TimeMonitor(data_time=True))
    model.train(1, data, ms.TimeMonitor())
    first, second = capsys.readouterr().out.splitlines()
    assert "per step data time: " in first
    assert "data time" not in second


def test_rows_are_copied_on_request() -> None:
    source = np.zeros((2, 2), np.float32)
    for copied in (False, True):
        data = dataset.NumpySlicesDataset(source, ["x"], shuffle=False)
        for row in data.create_dict_iterator(output_numpy=True, do_copy=copied):
            row["x"][...] = 1
        assert source.any() == (not copied)
        source[...] = 0


def test_shapes_that_differ_are_estimated() -> None:
    data = dataset.GeneratorDataset(lambda: (np.ones((n, 2)) for n in (1, 2)), ["x"])
    assert data.output_shapes() == [[1, 2]]
    assert data.output_shapes(estimate=True) == [[None, 2]]


def test_images_are_decrypted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(bytes([1 ^ 255, 2 ^ 255]))

    def decrypt(path: str) -> bytes:
        return bytes(b ^ 255 for b in pathlib.Path(path).read_bytes())

    data = dataset.ImageFolderDataset(str(tmp_path), decrypt=decrypt)
    ((image, _),) = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert image.tolist() == [1, 2]


def test_folders_are_converted(tmp_path: pathlib.Path) -> None:
    for name in ("net-1.ckpt", "net-2.ckpt", "other.ckpt"):
        ms.save_checkpoint(nn.Dense(2, 1), str(tmp_path / name))
    ms.ckpt_to_safetensors(str(tmp_path), file_name_regex=r"net-\d")
    assert sorted(p.name for p in tmp_path.glob("*.safetensors")) == [
        "net-1.safetensors", "net-2.safetensors",
    ]  # fmt: skip
    assert list(ms.load_checkpoint(str(tmp_path / "net-1.safetensors"))) == ["weight", "bias"]
    refused(lambda: ms.ckpt_to_safetensors(str(tmp_path), file_name_regex="x"), "no file .*'x'")


def test_attributes_of_a_primitive() -> None:
    concat = ops.Concat(0)
    concat.add_prim_attr("axis", 1)  # an argument of the constructor takes effect
    assert concat((ops.ones((1, 2)), ops.ones((1, 2)))).shape == (1, 4)


def test_probability_that_p_hides() -> None:
    option_checks.forget_warnings()
    with pytest.warns(OptionWarning, match="nn.Dropout: keep_prob has no effect here: it takes"):
        nn.Dropout(0.9, p=0.5)
    nn.Dropout(0.9)


def test_build_compiles_the_first_batch() -> None:
    data = dataset.NumpySlicesDataset(
        (np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), shuffle=False
    ).batch(2)
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={"loss"})
    before = net.weight.asnumpy().copy()
    compiled_before = ms.jit_stats()["compiles"]
    model.build(data, data)
    assert ms.jit_stats()["compiles"] == compiled_before  # nothing to compile in PYNATIVE_MODE
    ms.set_context(mode=ms.GRAPH_MODE)
    model.build(data, data)
    built = ms.jit_stats()["compiles"]
    assert built == compiled_before + 2
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    model.train(1, data)
    model.eval(data)
    assert ms.jit_stats()["compiles"] == built
    refused(lambda: ms.Model(net, nn.MSELoss()).build(data), "no optimizer")
    refused(lambda: ms.Model(net).build(None, data), "has no metrics")


def test_samplers_say_how_many_rows() -> None:
    drawn = dataset.RandomSampler(replacement=True, num_samples=5)
    data = dataset.NumpySlicesDataset([1, 2], sampler=drawn)
    assert len(list(data)) == len(data) == 5
    refused(
        lambda: dataset.NumpySlicesDataset([1], sampler=drawn, num_shards=1, shard_id=0),
        "got sampler and num_shards",
    )


MATRIX = ms.Tensor(np.ones((2, 3), np.float32))
WITHOUT_EFFECT: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype of an initial Tensor": (
        lambda: common.initializer.initializer(MATRIX, dtype=ms.float16),
        "initializer: dtype Float16 has no effect",
    ),
    "dtype of a layer": (
        lambda: nn.Dense(3, 2, weight_init=MATRIX, dtype=ms.float16),
        "stays Float32; cast it",
    ),
    "start of random masks": (
        lambda: dataset.audio.FrequencyMasking(True, 5, mask_start=2),
        "FrequencyMasking: mask_start has no effect",
    ),
    "start of random masks in time": (
        lambda: dataset.audio.TimeMasking(True, 5, mask_start=2),
        "TimeMasking: mask_start has no effect",
    ),
}


@pytest.mark.parametrize("what", WITHOUT_EFFECT)
def test_what_has_no_effect_beside_the_others_is_said_once(what: str) -> None:
    call, says = WITHOUT_EFFECT[what]
    option_checks.forget_warnings()
    with pytest.warns(OptionWarning, match=says) as caught:
        call()
        call()
    assert len(caught) == 1


def test_the_same_calls_without_it_say_nothing(recwarn: pytest.WarningsRecorder) -> None:
    option_checks.forget_warnings()
    common.initializer.initializer(MATRIX)
    common.initializer.initializer(MATRIX, dtype=ms.float32)
    common.initializer.initializer(MATRIX.astype(ms.float16), dtype=ms.float16)
    nn.Dense(3, 2, weight_init=MATRIX)
    dataset.audio.FrequencyMasking(True, 5)
    dataset.audio.FrequencyMasking(False, 5, mask_start=2)
    assert not [w for w in recwarn if w.category is OptionWarning]
    with pytest.raises(TypeError, match="dtype: got 'F'"):
        common.initializer.initializer(MATRIX, dtype="F")
