"""Tests that errors of reading rows name the line where the step of the pipeline was written."""

from __future__ import annotations

import inspect
import pickle

import duograph as ms
import numpy as np
import pytest
from duograph import dataset


class Uneven:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return (np.ones(2),) if i < 2 else (1, 2, 3)


def growing():
    for n in range(1, 5):
        yield (np.ones(n, np.float32),)


def failing(x):
    raise ValueError("mine")


def twice(*columns):
    return columns[0], columns[0]


def plain():
    return dataset.NumpySlicesDataset(np.ones((4, 3)), ["x"], shuffle=False)


def generated():
    return dataset.GeneratorDataset(growing, ["x"])


# Each takes the options of parallel workers, and writes the wrong step on its first `return` line;
# then the class of the error and words of its message.
def map_columns(options):
    return plain().map(twice, "x", **options)


def map_columns_batched(options):
    data = plain()
    return data.map(twice, "x", **options).batch(2).map(failing, "x")


def map_of_user(options):
    return plain().map(failing, "x", **options)


def source_columns(options):
    return dataset.GeneratorDataset(Uneven(), ["x"], shuffle=False, **options)


def batch_function(options):
    return generated().batch(2, per_batch_map=twice, input_columns=["x"], **options)


def ragged(options):
    return generated().batch(2)


STEPS = {
    "map": (map_columns, RuntimeError, "returned 2 columns"),
    "map before other steps": (map_columns_batched, RuntimeError, "returned 2 columns"),
    "function of the user": (map_of_user, ValueError, "mine"),
    "source": (source_columns, RuntimeError, "a row of 3 columns"),
    "per_batch_map": (batch_function, RuntimeError, "returned 2 columns"),
    "batch": (ragged, ValueError, "has rows of the shapes"),
}
WORKERS = {
    "one": {},
    "threads": {"num_parallel_workers": 2},
    "processes": {"num_parallel_workers": 2, "python_multiprocessing": True},
}
READERS = {
    "loop": lambda data: [row for row in data],
    "dict": lambda data: list(data.create_dict_iterator(1)),
    "shapes": lambda data: data.output_shapes(True),
}


def text_of(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", STEPS)
def test_the_step_is_named(name, workers):
    made, kind, said = STEPS[name]
    lines, first = inspect.getsourcelines(made)
    at = first + next(i for i, line in enumerate(lines) if "return" in line)
    data = made(WORKERS[workers])
    for reader in READERS.values():
        with pytest.raises(kind, match=said) as raised:
            reader(data)
        text = text_of(raised.value)
        assert f"test_pipeline_places.py:{at}: `{lines[at - first].strip()}`" in text
        assert text.count("step of the pipeline at") == 1
        if name != "function of the user":  # whose own line is in the traceback
            assert str(raised.value).splitlines()[-1].startswith("  ")
            assert "test_pipeline_places.py" in str(raised.value).splitlines()[-1]


def test_not_where_the_step_is_read_at_once():
    with pytest.raises(ValueError, match="has rows of the shapes") as raised:
        next(iter(generated().batch(2)))
    assert "step of the pipeline at" not in str(raised.value)


def test_one_pipeline_in_another():
    """The step of the inner pipeline is named, once."""
    inner = plain().map(twice, "x")

    def rows():
        yield from inner

    outer = dataset.GeneratorDataset(rows, ["x"]).batch(2)
    with pytest.raises(RuntimeError, match="returned 2 columns") as raised:
        list(outer.create_tuple_iterator(num_epochs=1))
    assert str(raised.value).count("step of the pipeline at") == 1
    assert 'plain().map(twice, "x")' in str(raised.value)


def test_a_pickled_pipeline_keeps_its_place():
    copy = pickle.loads(pickle.dumps(plain().map(twice, "x")))
    with pytest.raises(RuntimeError, match="returned 2 columns") as raised:
        next(iter(copy))
    assert "test_pipeline_places.py" in str(raised.value)
    assert 'copy = pickle.loads(pickle.dumps(plain().map(twice, "x")))' in str(raised.value)


def test_training_names_the_step():
    net = ms.nn.Dense(3, 2)
    model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1))
    data = plain().map(twice, "x")
    with pytest.raises(RuntimeError, match="returned 2 columns") as raised:
        model.train(1, data, dataset_sink_mode=False)
    assert '`data = plain().map(twice, "x")`' in str(raised.value)
