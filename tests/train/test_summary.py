"""Event files of SummaryRecord and SummaryCollector, read back record by record."""

from __future__ import annotations

import os
import pathlib
import struct
import sys
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.option_checks import forget_warnings

pytest.importorskip("tensorboardX")


def events_of(folder) -> list:
    """Return (step, tag, value) of every value in the event files of a folder."""
    from tensorboardX.proto import event_pb2

    found = []
    for name in sorted(n for n in os.listdir(folder) if "tfevents" in n):
        data = (pathlib.Path(folder) / name).read_bytes()
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = event_pb2.Event.FromString(data[at + 12 : at + 12 + size])
            at += 12 + size + 4
            found += [(event.step, v.tag, v) for v in event.summary.value]
    return found


def test_values_are_read_back(tmp_path):
    image = np.zeros((2, 3, 4, 5), np.float32)
    image[0, 0] = 2.0
    with ms.SummaryRecord(str(tmp_path), "mine", "_end") as record:
        record.add_value("scalar", "loss", Tensor(0.25))
        record.add_value("scalar", "count", Tensor([3]))
        record.add_value("histogram", "w", Tensor([0.0, 1.0, 1.0, np.nan]))
        record.add_value("image", "x", Tensor(image))
        record.add_value("tensor", "t", Tensor([[1, 2]], ms.int16))
        assert record.record(7) is True
        assert record.record(8)  # nothing is left
        record.add_value("scalar", "loss", Tensor(0.5))
        record.add_value("tensor", "t", Tensor(1.0))
        assert record.record(9, plugin_filter=lambda name: name == "scalar")
    (name,) = os.listdir(tmp_path)
    assert name.startswith("mine.out.tfevents.") and name.endswith("_end")
    found = events_of(tmp_path)
    assert [(step, tag) for step, tag, _ in found] == [
        (7, "loss"), (7, "count"), (7, "w"), (7, "x"), (7, "t"), (9, "loss"),
    ]  # fmt: skip
    by_tag = {tag: v for step, tag, v in found if step == 7}
    assert by_tag["loss"].simple_value == 0.25 and by_tag["count"].simple_value == 3
    assert by_tag["w"].histo.num == 3 and by_tag["w"].histo.max == 1
    assert (by_tag["x"].image.height, by_tag["x"].image.width) == (4, 5)
    tensor = by_tag["t"].tensor
    assert np.frombuffer(tensor.tensor_content, np.int16).tolist() == [1, 2]
    assert [d.size for d in tensor.tensor_shape.dim] == [1, 2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "bool_"])
@pytest.mark.parametrize("plugin", ["scalar", "histogram", "tensor"])
def test_every_dtype(plugin, dtype, tmp_path):
    with ms.SummaryRecord(str(tmp_path)) as record:
        record.add_value(plugin, "v", Tensor(np.ones((1,)), getattr(ms, dtype)))
        assert record.record(1)
    ((step, tag, value),) = events_of(tmp_path)
    assert (step, tag) == (1, "v")
    assert value.simple_value == 1 or plugin != "scalar"


@pytest.mark.parametrize("value", [np.zeros((0,)), np.full((2, 2), np.inf), np.zeros(()), [-1, 1]])
def test_odd_histograms(value, tmp_path):
    with ms.SummaryRecord(str(tmp_path)) as record:
        record.add_value("histogram", "v", Tensor(np.array(value, np.float32)))
        assert record.record(1)
    assert [tag for _, tag, _ in events_of(tmp_path)] == ["v"]


def test_size_limit_and_exports(tmp_path):
    options = {"tensor_format": "npy"}
    with ms.SummaryRecord(str(tmp_path), max_file_size=200, export_options=options) as record:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for step in range(20):
                record.add_value("tensor", "a/t", Tensor([float(step)]))
                written = record.record(step)
        assert not written and len(said) == 1 and "max_file_size=200" in str(said[0].message)
    assert 0 < len(events_of(tmp_path)) < 20
    (export,) = [n for n in os.listdir(tmp_path) if n.startswith("export_")]
    assert np.load(tmp_path / export / "tensor" / "a_t_3.npy").tolist() == [3.0]


@pytest.mark.parametrize("raises", [False, True])
def test_an_error_of_the_file_system(raises, tmp_path):
    record = ms.SummaryRecord(str(tmp_path / "logs"), raise_exception=raises)
    (tmp_path / "logs").rmdir()
    (tmp_path / "logs").write_text("")
    record.add_value("scalar", "v", Tensor(1.0))
    if raises:
        with pytest.raises(OSError):
            record.record(1)
    else:
        with pytest.warns(RuntimeWarning, match="could not write"):
            assert record.record(1) is False


WRONG = {
    "plugin": (lambda r: r.add_value("sound", "v", Tensor(1.0)), ValueError, "'sound'"),
    "plugin of MindSpore": (lambda r: r.add_value("graph", "v", 1), ValueError, "MindSpore's own"),
    "name": (lambda r: r.add_value("scalar", "", Tensor(1.0)), TypeError, "wanted a text"),
    "value": (lambda r: r.add_value("scalar", "v", 1.0), TypeError, "got float; wanted a Tensor"),
    "scalar": (lambda r: r.add_value("scalar", "v", Tensor([1, 2])), ValueError, r"\(2,\)"),
    "image": (lambda r: r.add_value("image", "v", Tensor([1, 2])), ValueError, "NCHW"),
    "step": (lambda r: r.record("1"), TypeError, "'1' for the step"),
    "network": (lambda r: r.record(1, 2), TypeError, "wanted a Cell"),
    "mode": (lambda r: r.set_mode("test"), ValueError, "'test'"),
    "closed": (lambda r: (r.close(), r.close(), r.record(1)), ValueError, "closed"),
    "prefix": (lambda r: ms.SummaryRecord(r.log_dir, "a/b"), TypeError, "a file name"),
    "size": (lambda r: ms.SummaryRecord(r.log_dir, max_file_size=0), ValueError, "positive"),
    "size type": (lambda r: ms.SummaryRecord(r.log_dir, max_file_size="1"), TypeError, "an int"),
    "export": (
        lambda r: ms.SummaryRecord(r.log_dir, export_options={"tensor_format": "csv"}),
        ValueError,
        "npy",
    ),
    "frequency": (lambda r: ms.SummaryCollector(r.log_dir, 0), ValueError, "above 0"),
    "key": (
        lambda r: ms.SummaryCollector(r.log_dir, collect_specified_data={"loss": True}),
        ValueError,
        "'loss'",
    ),
    "choice": (
        lambda r: ms.SummaryCollector(r.log_dir, collect_specified_data={"collect_metric": 1}),
        TypeError,
        "wanted a bool",
    ),
    "custom": (
        lambda r: ms.SummaryCollector(r.log_dir, custom_lineage_data={"a": []}),
        TypeError,
        "texts and numbers",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name, tmp_path):
    use, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        use(ms.SummaryRecord(str(tmp_path)))


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ValueError, match=r"pip install duograph\[summary\]"):
        ms.SummaryRecord(str(tmp_path))


def trained(tmp_path, **options) -> list:
    """Train a small network on images with a SummaryCollector; return its events."""
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(4, 1))
    rows = [(np.ones((1, 2, 2), np.float32) * k, np.ones(1, np.float32)) for k in range(5)]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(1)
    rates = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ms.Model(net, nn.MSELoss(), rates, metrics={"mae": nn.MAE()})
    collector = ms.SummaryCollector(str(tmp_path), **options)
    model.fit(2, data, data, callbacks=[collector], dataset_sink_mode=False)
    return events_of(tmp_path)


def test_a_training_run(tmp_path):
    found = trained(tmp_path, collect_freq=4, custom_lineage_data={"size": 3, "kind": "small"})
    steps = {tag: [s for s, t, _ in found if t == tag] for _, tag, _ in found}
    weights = {tag: steps.pop(tag) for tag in list(steps) if "weight" in tag or "bias" in tag}
    assert len(weights) == 2 and all(at == [1, 4, 8] for at in weights.values())
    text = next(tag for tag in steps if tag.startswith("custom/kind"))
    assert steps == {
        "custom/size": [0],
        text: [0],
        "loss/auto": [1, 4, 8],
        "learning_rate/auto": [1, 4, 8],
        "input_data/auto": [1, 4, 8],
        "eval/mae": [5, 10],
    }
    rate = next(v for _, tag, v in found if tag == "learning_rate/auto")
    assert rate.simple_value == pytest.approx(0.01)


@pytest.mark.parametrize(
    "data, keep, tags",
    [
        ({"collect_metric": False}, True, {"weight", "bias", "input_data"}),
        ({"collect_metric": True}, False, {"loss", "learning_rate", "eval"}),
        ({"histogram_regular": ".*bias"}, False, {"bias"}),
        ({"collect_input_data": False, "histogram_regular": "none"}, True,
         {"loss", "learning_rate", "eval"}),
        ({"collect_graph": False}, False, set()),
    ],
)  # fmt: skip
def test_what_is_collected(data, keep, tags, tmp_path):
    found = trained(tmp_path, collect_specified_data=data, keep_default_action=keep)
    names = {tag.removesuffix("/auto").partition("/")[0].rpartition(".")[2] for _, tag, _ in found}
    assert names == tags


def test_runs_at_once_have_files_of_their_own(tmp_path):
    records = [ms.SummaryRecord(str(tmp_path)) for _ in range(3)]
    for k, record in enumerate(records):
        record.add_value("scalar", f"v{k}", Tensor(1.0))
        record.record(k)
    for record in records:
        record.flush()
        record.close()
    assert sorted(tag for _, tag, _ in events_of(tmp_path)) == ["v0", "v1", "v2"]


def test_what_is_not_written_warns(tmp_path):
    forget_warnings()
    with pytest.warns(ms.errors.OptionWarning, match="collect_graph, which only"):
        ms.SummaryCollector(str(tmp_path), collect_specified_data={"collect_graph": True})


class Branching(nn.Cell):
    """A network with a layer, a shared layer and a branch on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(3, 4)
        self.body = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.body(self.first(x))
        if y.sum() > 0:
            y = y * 2
        return y


def test_graph_of_a_network(tmp_path: pathlib.Path) -> None:
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.graph_pb2 import GraphDef

    with ms.SummaryRecord(str(tmp_path)) as record:
        assert record.add_graph(Branching(), ms.Tensor(np.ones((2, 3), np.float32)))
    (file,) = tmp_path.iterdir()
    data, graphs = file.read_bytes(), []
    while data:  # length, its checksum, the event, its checksum
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        data = data[16 + size :]
        if event.WhichOneof("what") == "graph_def":
            graphs.append(GraphDef.FromString(event.graph_def))
    (graph,) = graphs
    nodes = {n.name: n for n in graph.node}
    assert {"inputs/0", "first/weight", "first/bias", "body/0/weight", "results"} <= set(nodes)
    assert all(name in nodes for n in graph.node for name in n.input)
    assert any(n.name.startswith("first/") and n.op == "dense" for n in graph.node)
    assert any(n.op == "switch" for n in graph.node)
    shape = nodes["first/weight"].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [4, 3]


@pytest.mark.parametrize("wrong", [(len,), (nn.Dense(3, 2), [1.0])])
def test_graph_of_something_else(tmp_path: pathlib.Path, wrong: tuple[object, ...]) -> None:
    with ms.SummaryRecord(str(tmp_path)) as record, pytest.raises(TypeError, match="wanted a Cell"):
        record.add_graph(*wrong)
