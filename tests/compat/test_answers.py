"""Results of names that were added for MindSpore's documentation; all constants are its answers.

They were printed by MindSpore 2.10.0 on the CPU.
"""

from __future__ import annotations

import ast
import pathlib
import types
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, dataset, mint, nn, ops
from duograph.dataset import audio, text, vision

F32, I32, I64 = ms.float32, ms.int32, ms.int64
LOWEST = -3.40282347e38
BOX = Tensor(np.arange(64).reshape(1, 1, 4, 4, 4), F32)
CUBE = Tensor(np.arange(8).reshape(1, 1, 2, 2, 2), F32)
INTS = Tensor([[4, 9], [6, 1]])


def sequence(*labels: int) -> Tensor:
    return Tensor([[list(labels)]], I32)


def steps(*rows: list[float]) -> Tensor:
    return Tensor([[row] for row in rows], F32)


def wide_offsets(across: float, down: float, tap: float) -> Tensor:
    parts = [np.full((1, 4, 3, 3), v) for v in (across, down, tap)]
    return Tensor(np.concatenate(parts, 1), F32)


IMAGE = Tensor((np.arange(32) % 7).reshape(1, 2, 4, 4), F32)
ONES = Tensor(np.ones((1, 2, 2, 2)), F32)

# name: (call, what each part of the result holds, its dtype)
ROWS: dict[str, tuple[Callable[[], Any], list[Any], list[str]]] = {
    "argmin": (lambda: ops.argmin(INTS), [3], ["int32"]),
    "argmin axis": (lambda: ops.argmin(INTS, 0), [[0, 1]], ["int32"]),
    "argmin keepdims": (lambda: INTS.argmin(axis=1, keepdims=True), [[[0], [1]]], ["int32"]),
    "argmax": (lambda: ops.argmax(INTS), [1], ["int64"]),
    "numpy argmin": (lambda: ms.numpy.argmin(ms.numpy.array([2, 1])), [1], ["int32"]),
    "min index": (lambda: ops.min(INTS, 0), [[4, 1], [0, 1]], ["int64", "int64"]),
    "cummin": (lambda: ops.cummin(INTS.astype(F32), 0), [[[4, 9], [4, 1]], [[0, 0], [0, 1]]],
               ["float32", "int32"]),
    "cummax": (lambda: ops.cummax(INTS.astype(F32), 0), [[[4, 9], [6, 9]], [[0, 0], [1, 0]]],
               ["float32", "int64"]),
    "argmax_with_value": (lambda: INTS.argmax_with_value(-1), [[9, 6], [1, 0]], ["int64", "int64"]),
    "argmin_with_value": (lambda: INTS.argmin_with_value(), [[4, 1], [0, 1]], ["int64", "int64"]),
    "argmax_with_value of all": (lambda: INTS.argmax_with_value(None, True), [9, 0],
                                 ["int64", "int64"]),
    "argmax_with_value of 0-d": (lambda: Tensor(3.0).argmax_with_value(), [3.0, 0],
                                 ["float32", "int64"]),
    "ptp": (lambda: INTS.ptp(), [8], ["int64"]),
    "ptp of axes": (lambda: INTS.ptp((0, 1)), [8], ["int64"]),
    "ptp keepdims": (lambda: INTS.astype(F32).ptp(1, True), [[[5.0], [5.0]]], ["float32"]),
    "frombuffer": (lambda: ms.frombuffer(bytearray(range(8)), ms.int16, 2, 2), [[770, 1284]],
                   ["int16"]),
    "frombuffer of bytes": (lambda: ms.frombuffer(bytes(range(4)), ms.int16), [[256, 770]],
                            ["int16"]),
    "isreal": (lambda: Tensor([1.0, 2.0]).isreal(), [[True, True]], ["bool"]),
    "convert_bytes_to_tensor": (
        lambda: Tensor.convert_bytes_to_tensor(Tensor([1, 2], ms.int16).get_bytes(), (2,),
                                               ms.int16), [[1, 2]], ["int16"]),
    "softmax_ext": (lambda: ops.function.nn_func.softmax_ext(Tensor([[1.0, 2.0], [3.0, 5.0]])),
                    [[[0.268941075, 0.731058896], [0.119202867, 0.880797148]]], ["float32"]),
    "ctc, merged": (
        lambda: ops.ctc_greedy_decoder(steps([.1, .9, 0], [.2, .8, 0], [.1, .2, .9]),
                                       Tensor([3], I32)),
        [[[0, 0]], [1], [1, 1], [[-2.5999999]]], ["int64", "int64", "int64", "float32"]),
    "ctc, not merged": (
        lambda: ops.CTCGreedyDecoder(False)(steps([.1, .9, 0], [.2, .8, 0], [.1, .2, .9]),
                                            Tensor([3], I32)),
        [[[0, 0], [0, 1]], [1, 1], [1, 2], [[-2.5999999]]],
        ["int64", "int64", "int64", "float32"]),
    "edit distance": (
        lambda: ops.EditDistance(True)(
            Tensor([[0, 0], [0, 1], [1, 0]]), Tensor([1.0, 2.0, 3.0]), Tensor([2, 2]),
            Tensor([[0, 0], [1, 0], [1, 1]]), Tensor([1.0, 2.0, 3.0]), Tensor([2, 2])),
        [[1.0, 0.5]], ["float32"]),
    "edit distance, counted": (
        lambda: ops.EditDistance(False)(
            Tensor([[0, 0], [0, 1], [1, 0]]), Tensor([1.0, 2.0, 3.0]), Tensor([2, 2]),
            Tensor([[0, 0], [1, 0], [1, 1]]), Tensor([1.0, 2.0, 3.0]), Tensor([2, 2])),
        [[1.0, 1.0]], ["float32"]),
    "edit distance of no truth": (
        lambda: ops.EditDistance(True)(
            Tensor([[0, 0]]), Tensor([1.0]), Tensor([2, 2]),
            Tensor([[1, 0]]), Tensor([1.0]), Tensor([2, 2])),
        [[np.inf, 1.0]], ["float32"]),
    "no repeated pair": (lambda: ops.NoRepeatNGram(3)(sequence(1, 2, 3, 1, 2), ops.ones((1, 1, 6))),
                         [[[[1, 1, 1, LOWEST, 1, 1]]]], ["float32"]),
    "no repeated class": (
        lambda: ops.NoRepeatNGram(1)(sequence(1, 2, 3, 1, 2), ops.ones((1, 1, 6))),
        [[[[1, LOWEST, LOWEST, LOWEST, 1, 1]]]], ["float32"]),
    "no repeated class in bfloat16": (
        lambda: ops.NoRepeatNGram(1)(
            sequence(1), ops.ones((1, 1, 2), ms.bfloat16)).astype(ms.float32),
        [[[[1, -3.3895313892515355e38]]]], ["float32"]),
    "no repeated class in float64": (
        lambda: ops.NoRepeatNGram(1)(sequence(1), ops.ones((1, 1, 2), ms.float64)),
        [[[[1, float(np.finfo(np.float64).min)]]]], ["float64"]),
    "a sum of exponentials before each item, in float16": (
        lambda: ops.CumulativeLogsumexp(exclusive=True)(
            Tensor([0.0, 0.0], ms.float16), Tensor(0)),
        [[-65504.0, 0.0]], ["float16"]),
    "a sequence too short": (lambda: ops.NoRepeatNGram(9)(sequence(1, 2), ops.ones((1, 1, 3))),
                             [[[[1, 1, 1]]]], ["float32"]),
    "pooling with places": (
        lambda: ops.MaxPool3DWithArgmax(3, 2, 1)(BOX),
        [[[[[[21, 23], [29, 31]], [[53, 55], [61, 63]]]]]] * 2, ["float32", "int64"]),
    "pooling, dilated": (
        lambda: ops.MaxPool3DWithArgmax(2, 1, 0, dilation=(2, 2, 2))(BOX),
        [[[[[[42, 43], [46, 47]], [[58, 59], [62, 63]]]]]] * 2, ["float32", "int64"]),
    "trilinear": (
        lambda: ops.UpsampleTrilinear3D()(CUBE, [3, 3, 2], None)[0, 0, 1],
        [[[2, 3], [3, 4], [4, 5]]], ["float32"]),
    "trilinear by scales": (
        lambda: ops.UpsampleTrilinear3D(True)(CUBE, None, [2.0, 1.5, 1.0])[0, 0, 1],
        [[[1.33333337, 2.33333349], [2.33333325, 3.33333325], [3.33333325, 4.33333349]]],
        ["float32"]),
    "multinomial": (
        lambda: ops.multinomial_with_replacement(Tensor([[0.0, 9.0, 0.0]], F32), 2, 5, 3, True),
        [[[1, 1, 1]]], ["int64"]),
    "random shapes": (
        lambda: tuple(Tensor(x.shape) for x in (
            ops.RandomGamma(3)(Tensor([2], I32), Tensor([1.0, 2.0])),
            ops.RandomPoisson(3)(Tensor([2], I32), Tensor([1.0, 2.0])),
            ops.RandomCategorical(I32)(Tensor([[0.1, 5.0]]), 4, 0),
            *ops.choice_with_mask(Tensor([[True, False]]), 3))),
        [[2, 2], [2, 2], [1, 4], [3, 2], [3]], ["int64"] * 5),
    "ChannelShuffle": (
        lambda: ops.ChannelShuffle(2)(Tensor(np.arange(4).reshape(1, 4, 1, 1), ms.int16)),
        [[[[[0]], [[2]], [[1]], [[3]]]]], ["int16"]),
    "SpaceToBatchND": (
        lambda: ops.SpaceToBatchND([2, 2], [[0, 0], [0, 0]])(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])),
        [[[[[1]]], [[[2]]], [[[3]]], [[[4]]]]], ["float32"]),
    "linearize": (
        lambda: (lambda found: (found[0], found[1]((ops.ones((2, 3)), Tensor([[1.0, 1], [1, 1],
                                                                              [0, 0]])))))(
            ops.linearize(ops.matmul, (Tensor([[1.0, 2, 3], [3, 4, 5]]),
                                       Tensor([[1.0, 2], [3, 4], [5, 6]])))),
        [[[22, 28], [40, 52]], [[12, 15], [16, 19]]], ["float32", "float32"]),
    "get_grad": (
        lambda: ms.get_grad(
            ms.grad(lambda a, b: a * b, (0, 1), return_ids=True)(Tensor(2.0), Tensor(3.0)), 0),
        [3.0], ["float32"]),
    "sparse layer": (
        lambda: nn.SparseToDense()(ms.COOTensor(Tensor([[0, 1], [1, 2]]), Tensor([1, 2], I32),
                                                (2, 4))),
        [[[0, 1, 0, 0], [0, 0, 2, 0]]], ["int32"]),
    "sparse product": (
        lambda: nn.SparseTensorDenseMatmul()(
            Tensor([[0, 1], [1, 2]], I32), Tensor([1.0, 2.0]), (3, 4),
            Tensor([[1.0, 1], [2, 2], [3, 3], [4, 4]])),
        [[[2, 2], [6, 6], [0, 0]]], ["float32"]),
    "LSTM with unused weights": (
        lambda: ops.LSTM(10, 2, 1, True, False, 0.0)(
            ops.ones((2, 2, 10)), ops.ones((1, 2, 2)), ops.ones((1, 2, 2)),
            Tensor(np.arange(112).reshape(112, 1, 1) / 100, F32))[0][:, 0],
        [[[0.960040629, 0.962639153], [0.993694246, 0.994597852]]], ["float32"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_results(name: str) -> None:
    call, wanted, dtypes = ROWS[name]
    found = call()
    parts = found if isinstance(found, tuple) else (found,)
    assert [p.dtype.name for p in parts] == dtypes
    for part, value in zip(parts, wanted, strict=True):
        assert part.shape == np.shape(value)
        np.testing.assert_allclose(part.asnumpy(), value, rtol=1e-5)


COMPILED = [n for n in ROWS if n.split()[0] in ("ptp", "pooling", "trilinear", "no")]


@pytest.mark.parametrize("name", COMPILED)
def test_results_of_compiled_calls(name: str) -> None:
    call, wanted, _ = ROWS[name]
    found = ms.jit(call)()
    parts = found if isinstance(found, tuple) else (found,)
    for part, value in zip(parts, wanted, strict=True):
        np.testing.assert_allclose(part.asnumpy(), value, rtol=1e-5)


@pytest.mark.parametrize(
    ("across", "down", "tap"),
    [(0.0, 0.0, 1.0), (0.5, 0.0, 1.0), (0.5, -0.25, 0.5), (9.0, 9.0, 1.0)],
)  # fmt: skip
def test_deformable_convolution(across: float, down: float, tap: float) -> None:
    """Shifts along the width come first, then those along the height, then the weights."""
    found = ops.deformable_conv2d(
        IMAGE, ONES, wide_offsets(across, down, tap), (2, 2), (1, 1, 1, 1), (0, 0, 0, 0)
    )
    wide = np.pad(IMAGE.asnumpy()[0], [(0, 0), (4, 4), (4, 4)])

    def at(row: float, column: float) -> float:
        r, c = int(np.floor(row)), int(np.floor(column))
        if not (-4 <= r < 7 and -4 <= c < 7):
            return 0.0
        a, b = row - r, column - c
        p = wide[:, r + 4 : r + 6, c + 4 : c + 6].sum(0)
        return float(np.array([1 - a, a]) @ p @ np.array([1 - b, b]))

    wanted = [
        [sum(tap * at(i + k // 2 + down, j + k % 2 + across) for k in range(4)) for j in range(3)]
        for i in range(3)
    ]
    np.testing.assert_allclose(found.asnumpy()[0, 0], wanted, rtol=1e-5, atol=1e-6)


def test_impossible_paths_of_ctc_are_infinite() -> None:
    log_probs = ops.log_softmax(ops.zeros((2, 1, 4)), -1)
    loss, alpha = ops.CTCLossV2()(log_probs, Tensor([[1, 2]], I32), Tensor([2], I32),
                                  Tensor([2], I32))  # fmt: skip
    assert alpha.asnumpy()[0, 0, 2:].tolist() == [-np.inf] * 3
    assert np.isfinite(loss.asnumpy()).all()
    with pytest.raises(ValueError, match="reduction"):
        ops.CTCLossV2(0, "mean")


def test_data_is_the_value_without_gradient_and_can_be_set() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    assert ms.grad(lambda a: (a.data * a).sum())(x).tolist() == [1, 2, 3]
    assert x.data is not x
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    for holder in (x, p):
        holder.data = Tensor([3, 4, 5], ms.float16)
        assert holder.dtype is ms.float16 and holder.asnumpy().tolist() == [3, 4, 5]
        with pytest.raises(TypeError, match="wanted a Tensor"):
            holder.data = 3
    y = Tensor([1, 2, 3])
    assert y.assign_value(Tensor([1.5])) is y and y.asnumpy().tolist() == [1.5]


@pytest.mark.parametrize(
    ("buffer", "options", "error"),
    [
        (bytearray(7), {}, RuntimeError), (bytearray(), {}, RuntimeError),
        (bytes(4), {"count": 0}, RuntimeError), (bytes(4), {"count": 3}, RuntimeError),
        (bytes(4), {"offset": 4}, RuntimeError), ("text", {}, TypeError),
    ],
)  # fmt: skip
def test_buffers_that_do_not_fit(buffer: Any, options: dict[str, int], error: type) -> None:
    with pytest.raises(error, match="frombuffer"):
        ms.frombuffer(buffer, dtype=ms.int16, **options)


def test_no_late_module_asks_for_a_hidden_one() -> None:
    """A function replaces the module of its name in the package: `from . import padding`."""
    assert ops.__all__  # loads the late families
    folder = pathlib.Path(ops.__file__).parent
    hidden = {
        path.stem
        for path in folder.glob("*.py")
        if not isinstance(vars(ops).get(path.stem, types), types.ModuleType)
    }
    assert hidden == {"combinations", "padding"}
    for name in ops._LATE:
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is None:
                assert not hidden & {alias.name for alias in node.names}, name


# ---- Cells --------------------------------------------------------------------------------------


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", Tensor([1, 2, 3]))
        self.weight = Parameter(Tensor([1.0, 2.0, 3.0]))
        self.extra = "kept"

    def get_extra_state(self) -> str:
        return self.extra

    def set_extra_state(self, state: str) -> None:
        self.extra = state


def test_state_dict_calls_hooks_of_every_cell() -> None:
    net = nn.SequentialCell(Scaled(), nn.Dense(2, 2))
    said: list[Any] = []
    before = net[0].register_state_dict_pre_hook(lambda *args: said.append(args[1:]))
    net[0].register_state_dict_post_hook(lambda cell, state, prefix, _: said.append(list(state)))
    assert list(net.state_dict()) == ["0.weight", "0.scale", "0._extra_state", "1.weight", "1.bias"]
    assert said == [("0.", False), ["0.weight", "0.scale", "0._extra_state"]]
    before.remove()
    net.state_dict()
    assert len(said) == 3


def test_load_state_dict_calls_hooks_and_gives_extra_state_back() -> None:
    net = nn.SequentialCell(Scaled())
    state = net.state_dict()
    state["0._extra_state"] = "new"
    state["0.old"] = state.pop("0.weight")

    def rename(cell: nn.Cell, values: dict[str, Any], prefix: str, *_: Any) -> None:
        values[f"{prefix}weight"] = values.pop(f"{prefix}old")

    net[0].register_load_state_dict_pre_hook(rename)
    assert net.load_state_dict(state) == ([], [])
    assert net[0].extra == "new"
    with pytest.raises(RuntimeError, match=r"unexpected keys: other; nothing was changed"):
        net.load_state_dict({**state, "other": Tensor(1)})
    net.register_load_state_dict_post_hook(lambda _, keys: keys.unexpected_keys.clear())
    assert net.load_state_dict({**state, "other": Tensor(1)}) == ([], [])


def test_cells_are_converted_in_place() -> None:
    net = nn.SequentialCell(Scaled(), nn.BatchNorm1d(2))
    weight = net[0].weight
    assert net.to(ms.float16) is net and net[0].weight is weight
    assert weight.dtype is ms.float16 and net[1].moving_mean.dtype is ms.float16
    assert net[0].scale.dtype is I64  # integers stay
    assert net.to("CPU")[0].weight.device == "CPU:0"
    assert net.to(Tensor([1.0])) is net and weight.dtype is F32
    with pytest.raises(TypeError, match="floating or complex"):
        net.to(I32)
    assert net.to_empty() is net


@pytest.mark.parametrize("path", ["nope", "0.weight", "5.scale"])
def test_buffers_are_found_by_path(path: str) -> None:
    net = nn.SequentialCell(Scaled())
    assert net.get_buffer("0.scale") is net[0].scale
    with pytest.raises(AttributeError):
        net.get_buffer(path)


def test_phase_follows_set_train_and_can_be_set() -> None:
    net = nn.Dense(2, 2)
    assert net.phase == "train" and net.set_train(False).phase == "predict"
    net.phase = "own"
    assert net.phase == "own"


# ---- data sets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize(
    ("transform", "kept"),
    [(audio.LFCC(), False), (audio.MFCC(4000, 8, melkwargs={"n_fft": 64, "n_mels": 16}), False),
     (audio.DetectPitchFrequency(1000, 0.1, 3, 85, 300), False),
     (audio.Spectrogram(64), True), (audio.SpectralCentroid(1000, 8), True)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_dtypes_of_audio(transform: Any, kept: bool, dtype: str) -> None:
    signal = (np.arange(800).reshape(2, 400) % 90).astype(dtype)
    wanted = dtype if kept and dtype != "int16" else "float32"
    assert transform(signal).dtype == wanted


def test_short_waveforms_are_reflected_as_often_as_needed() -> None:
    assert audio.Spectrogram()(np.ones((10, 20))).shape == (10, 201, 1)


@pytest.mark.parametrize(("size", "labels"), [(1, (4, 3)), (1, (4, 3, 5)), (4, (4, 3))])
def test_images_are_mixed_with_a_weight_each(size: int, labels: tuple[int, ...]) -> None:
    images, found = vision.MixUp(size, 0.2)(np.ones((4, 8, 8, 3), np.uint8), np.ones(labels))
    assert (images.dtype, found.dtype) == (np.float64, np.float64)
    assert images.shape == (4, 8, 8, 3) and found.shape == labels


def test_sync_wait_counts_batches() -> None:
    data = dataset.NumpySlicesDataset(np.arange(10), ["x"], shuffle=False)
    seen: list[Any] = []
    data = data.sync_wait("policy", callback=seen.append).batch(4)
    for k, _ in enumerate(data):
        data.sync_update("policy", data=k)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Welcome    to    China", "welcome to china"), ("#REDIRECT [[Q]]", ""),
        ("''x'' http://a.b/c d", "x http a b c d"), ("&amp;&quot;x&quot;", "x"),
        ("{{tpl|x}} |a| [http://e.f label] (p)", "tpl x a http e f label p"),
        ("Änne café 7 e.g. IT's", "nne caf seven e g it s"),
        ("<a href='x'>t</a> &nbsp;[[Category:z]] [[k|v]]", "category z k v"),
    ],
)  # fmt: skip
def test_words_of_wikipedia(line: str, words: str) -> None:
    assert str(text.FilterWikipediaXML()(line)) == words


def test_columns_of_a_schema_are_replaced() -> None:
    schema = dataset.Schema()
    schema.parse_columns([{"name": "x", "type": "int8", "shape": [3]}])
    schema.parse_columns({"x": {"type": "int32", "shape": [2]}})
    assert [(c["name"], c["type"]) for c in schema.columns] == [("x", "int32")]


# ---- settings -----------------------------------------------------------------------------------


def test_settings_are_read_back() -> None:
    assert ms.get_algo_parameters("tensor_slice_align_size") == 16
    with pytest.warns(UserWarning, match="no meaning here"):
        ms.set_algo_parameters(fully_use_devices=True)
    assert ms.get_algo_parameters("fully_use_devices") is True
    ms.reset_algo_parameters()
    assert ms.get_algo_parameters("fully_use_devices") is False
    assert ms.get_ps_context("enable_ps") is False
    assert ms.get_py_obj_dtype(1.5) is F32 and ms.get_py_obj_dtype(bool) is ms.bool_
    assert (str(ms.QuantDtype.INT8), ms.QuantDtype.UINT16.value()) == ("INT8", 115)
    for wrong, error in ((0, ValueError), ("x", TypeError)):
        with pytest.raises(error):
            ms.set_recursion_limit(wrong)
    assert "auc" in ms.train.names()
    assert ms.amp.get_black_list() == [
        nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm
    ]  # fmt: skip


def test_slices_of_a_parameter_are_joined() -> None:
    parts = [Parameter(Tensor([[1.0, 2.0]]), "a"), Parameter(Tensor([[3.0, 4.0]]), "a")]
    assert ms.merge_sliced_parameter(parts).asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="one Parameter"):
        ms.merge_sliced_parameter([parts[0], Parameter(Tensor([[3.0, 4.0]]), "b")])


def test_mint_cummin_has_indices_of_int64() -> None:
    assert mint.cummin(Tensor([2.0, 1.0]), 0)[1].dtype is I64
