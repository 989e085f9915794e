"""DatasetHelper and its relatives: batches are fed one by one, whatever was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ArgumentValueError
from .model import _batches, _length

__all__ = ["DatasetHelper", "connect_network_with_dataset", "data_sink"]


class DatasetHelper:
    """Iterates over the batches of a dataset (`mindspore.train.DatasetHelper`).

    Examples:
        >>> import numpy as np
        >>> from duograph import dataset
        >>> from duograph.train import DatasetHelper
        >>> data = dataset.NumpySlicesDataset([1, 2], shuffle=False)
        >>> [int(x) for (x,) in DatasetHelper(data)]
        [1, 2]
    """

    def __init__(
        self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1
    ) -> None:
        del dataset_sink_mode, epoch_num
        self.dataset = dataset
        self._sink_size = sink_size

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return _batches(self.dataset)

    def sink_size(self) -> int:
        """Batches that are fed at once: 1."""
        return 1

    def stop_send(self) -> None:
        """Nothing is being sent."""

    def dynamic_min_max_shapes(self) -> Any:
        """None: shapes are taken as they come."""

    def types_shapes(self) -> tuple[Any, Any]:
        """dtypes and shapes of the columns."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def get_dataset_size(self) -> int:
        """Batches of a pass."""
        return _length(self.dataset)


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> Any:
    """The network: batches are fed one by one (`mindspore.train.connect_network_with_dataset`)."""
    del dataset_helper
    return network


def data_sink(
    fn: Callable[..., Any],
    dataset: Any,
    sink_size: int = 1,
    jit_config: Any = None,
    input_signature: Any = None,
) -> Callable[[], Any]:
    """A function without arguments that runs `fn` on the next `sink_size` batches
    (`mindspore.data_sink`).

    It returns the result of the last one, and starts over at the end of the dataset.

    Raises:
        ValueError: `sink_size` below 1 and not -1, or an empty dataset.

    Examples:
        >>> from duograph import data_sink, dataset
        >>> step = data_sink(lambda x: int(x), dataset.NumpySlicesDataset([1, 2], shuffle=False))
        >>> step(), step(), step()
        (1, 2, 1)
    """
    del jit_config, input_signature
    if (
        isinstance(sink_size, bool)
        or not isinstance(sink_size, int)
        or (sink_size < 1 and sink_size != -1)
    ):
        raise ArgumentValueError(f"data_sink: got sink_size={sink_size!r}; wanted -1, or 1 or more")
    count = _length(dataset) if sink_size == -1 else sink_size
    batches = iter(())  # type: Iterator[Any]

    def run() -> Any:
        nonlocal batches
        result = None
        for _ in range(count):
            batch = next(batches, None)
            if batch is None:
                batches = _batches(dataset)
                batch = next(batches, None)
                if batch is None:
                    raise ArgumentValueError("data_sink: the dataset is empty; wanted batches")
            result = fn(*batch)
        return result

    return run
