"""Constructors of layers, metrics, data sets and others, given arguments that make no sense: the
error is ours and names the class and what was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import duograph.dataset.audio
import duograph.dataset.text
import duograph.dataset.transforms
import duograph.dataset.vision
import numpy as np
import pytest
from duograph.errors import ArgumentError, ArgumentValueError, DuographError

# Any: mypy would refuse these arguments
framework: Any = ms
nn: Any = ms.nn
ops: Any = ms.ops
dataset: Any = duograph.dataset
audio: Any = duograph.dataset.audio
vision: Any = duograph.dataset.vision
text: Any = duograph.dataset.text
transforms: Any = duograph.dataset.transforms
experimental: Any = duograph.experimental.optim
initializer: Any = ms.common.initializer
ARRAY = np.ones(2)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "layer, flags": (lambda: nn.Cell(flags=3), "Cell: got int for flags; wanted a dictionary"),
    "layer, flags as an array": (lambda: nn.Sigmoid(flags=ARRAY), "Sigmoid: got ndarray for flags"),
    "layer, a text for a number": (lambda: nn.SSIM(k1="a"), "SSIM: got k1='a'"),
    "layer, a text for a power": (lambda: nn.LPPool1d("none", 2), "LPPool1d: got 'none', 2"),
    "layer, an int for a shape": (lambda: nn.Unflatten(1, 2), "Unflatten: got 1, 2"),
    "layer, no Cell": (lambda: nn.TrainOneStepCell([], 2), r"TrainOneStepCell: got \[\], 2"),
    "layer of a layer": (lambda: nn.WithGradCell(None), "WithGradCell: got None"),
    "optimiser": (lambda: nn.Rprop(nn.Dense(1, 1).trainable_params(), etas=-3), "etas=-3"),
    "loss, an array": (lambda: nn.CTCLoss(reduction=ARRAY), "CTCLoss: got reduction=array"),
    "metric": (lambda: nn.Accuracy(ARRAY), "Accuracy: got eval_type=array"),
    "metric, update": (lambda: updated(nn.MSE(), ARRAY, np.array(3)), "MSE.update: got array"),
    "primitive": (lambda: ops.Cdist(p={}), "Cdist: got p={}"),
    "primitive, a text": (lambda: ops.Dropout2D("abc"), "Dropout2D: got 'abc'"),
    "primitive, an object": (lambda: ops.Lstsq(True, "none"), "Lstsq: got True, 'none'"),
    "initialiser": (lambda: filled(initializer.XavierNormal("a")), "XavierNormal._initialize"),
    "initialiser, sigma": (lambda: filled(initializer.TruncatedNormal({})), "TruncatedNormal"),
    "data set": (lambda: dataset.ZipDataset(0), "ZipDataset: got 0"),
    "data set, no parent": (lambda: dataset.RepeatDataset("a", 3), "RepeatDataset: got 'a', 3"),
    "data set, a folder": (lambda: dataset.IMDBDataset(3), "IMDBDataset: got 3"),
    "image": (lambda: vision.Normalize({1: 2}, nn), "Normalize: got {1: 2}"),
    "image, a flag": (lambda: vision.RandomErasing(inplace=ARRAY), "RandomErasing: got inplace="),
    "data set, a flag": (
        lambda: dataset.GeneratorDataset(lambda: iter([1]), ["x"], python_multiprocessing="no"),
        "GeneratorDataset: got python_multiprocessing='no'; wanted True or False",
    ),
    "transforms, none": (lambda: transforms.Compose(None), "Compose: got None"),
    "transforms, an int": (lambda: transforms.RandomChoice(3), "RandomChoice: got 3"),
    "transforms, a call": (lambda: transforms.OneHot(3)({}), "OneHot: got {}"),
    "text, sizes": (lambda: text.Ngram({}), "Ngram"),
    "text, an array": (lambda: text.SlidingWindow(ARRAY), "SlidingWindow: got width=array"),
    "text, a call": (lambda: text.ToVectors(None), "ToVectors: got None"),
    "sparse, rows": (lambda: ms.RowTensor(row_tensor=3), "RowTensor: got row_tensor=3"),
    "sparse, coordinates": (lambda: ms.COOTensor(coo_tensor="a"), "COOTensor: got coo_tensor='a'"),
    "sparse, compressed": (lambda: ms.CSRTensor(csr_tensor=[]), r"CSRTensor: got csr_tensor=\[\]"),
    "summary": (lambda: ms.train.SummaryRecord(3), "SummaryRecord: got log_dir=3"),
    "callback": (lambda: ms.train.EarlyStopping(mode=ARRAY), "EarlyStopping: got mode=array"),
    "callback, a collection": (
        lambda: ms.train.SummaryCollector(".", collect_freq="a"),
        "SummaryCollector: got collect_freq='a'",
    ),
    "checkpoints": (lambda: ms.train.CheckpointConfig(enc_mode=ARRAY), "CheckpointConfig: got enc"),
    "schedule": (
        lambda: experimental.lr_scheduler.SequentialLR(None, 3, []),
        "SequentialLR: got None, 3",
    ),
    "parameters": (lambda: framework.ParameterTuple(3), "ParameterTuple: got 3; wanted a list"),
    "records": (lambda: ms.mindrecord.MindPage({}), "MindPage: got {}"),
    "function, a name": (lambda: nn.get_metric_fn([]), r"get_metric_fn: got name=\[\]"),
    "function, export": (lambda: ms.export(3, file_name="x"), "export: got 3"),
    "function, hal": (lambda: ms.hal.device_count(3), "device_target: got 3"),
    "function, context": (lambda: framework.get_context([]), r"get_context: got \[\]"),
    "function, log": (lambda: ms.log.set_level(-1), "set_level: got -1; wanted an int from 0 to 4"),
    "item, a text": (
        lambda: framework.Tensor([1, 2]).item("a"),
        "item: got index 'a'; wanted an int",
    ),
    "item, a float": (lambda: framework.Tensor([1, 2]).item((1.0,)), "item: got index"),
    "Cell, a function": (lambda: nn.ReLU().apply(3), "ReLU.apply: got 3"),
    "Cell, a path": (lambda: nn.ReLU().get_sub_cell(3), "get_sub_cell: got 3; wanted a path"),
    "Cell, a dictionary": (lambda: nn.Dense(1, 1).state_dict(3), "Dense.state_dict: got 3"),
    "generator": (lambda: framework.Generator().set_state("a"), "Generator.set_state: got 'a'"),
    "data set, a method": (
        lambda: dataset.NumpySlicesDataset([1]).take(ARRAY),
        "NumpySlicesDataset.take: got array",
    ),
    "metric, words": (
        lambda: nn.CosineSimilarity(reduction=3),
        "CosineSimilarity: got reduction=3",
    ),
    "sound": (lambda: audio.MelScale(n_mels=1.5), "MelScale: got n_mels=1.5"),
}


@pytest.mark.parametrize("name", ["dtype_to_nptype", "dtype_to_pytype"])
def test_what_is_no_dtype_is_refused(name: str) -> None:
    for wrong in (None, "float32", 3, ARRAY):
        with pytest.raises(TypeError, match=f"{name}: got .*; wanted a dtype such as float32"):
            getattr(ms, name)(wrong)


@pytest.mark.parametrize("index", [4, -5, (2, 0), (0,), (0, 0, 0), (-3, 1)])
def test_an_index_of_item_beyond_the_tensor(index: Any) -> None:
    with pytest.raises(IndexError, match="wanted a position among its 4 elements"):
        ms.Tensor([[1, 2], [3, 4]]).item(index)


@pytest.mark.parametrize("index,value", [(3, 4), (-1, 4), ((1, 0), 3), ((-1, -2), 3)])
def test_an_index_of_item(index: Any, value: int) -> None:
    assert ms.Tensor([[1, 2], [3, 4]]).item(index) == value


def updated(metric: Any, *arrays: Any) -> None:
    metric.clear()
    metric.update(*arrays)


def filled(made: Any) -> Any:
    return initializer.initializer(made, (2, 3)).init_data()


@pytest.mark.parametrize("what", WRONG)
def test_the_error_names_the_class_and_the_argument(what: str) -> None:
    call, says = WRONG[what]
    with pytest.raises(DuographError, match=says.replace("{", r"\{")) as caught:
        call()
    assert isinstance(caught.value, (ArgumentError, ArgumentValueError))


def test_an_error_of_the_users_code_stays_as_it_is() -> None:
    class Mine(ms.nn.Dense):
        def __init__(self) -> None:
            super().__init__(2, 2)
            raise KeyError("mine")

    class Broken:
        def __iter__(self) -> Any:
            raise OSError("disk")

    class Wrong:
        def __iter__(self) -> Any:
            raise TypeError("mine too")

    with pytest.raises(KeyError, match="mine"):
        Mine()
    with pytest.raises(OSError, match="disk"):
        dataset.ZipDataset(Broken())
    with pytest.raises(TypeError, match=r"^mine too$"):
        dataset.ZipDataset(Wrong())


def test_a_wrong_number_of_arguments_is_said_by_python() -> None:
    with pytest.raises(TypeError, match=r"Dense: missing 2 required"):
        nn.Dense()


def test_an_error_that_says_what_was_wanted_keeps_its_class() -> None:
    with pytest.raises(KeyError, match="wanted one of"):
        nn.Transformer(activation="no")
