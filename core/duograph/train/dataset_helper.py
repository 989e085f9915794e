"""DatasetHelper, connect_network_with_dataset and data_sink, for MindSpore training scripts.

MindSpore's data sinking sends several batches to a device at once. duograph always feeds batches
one by one; these names exist for scripts that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from ..call_errors import explaining
from ..compiler import JitConfig, jit
from ..errors import ArgumentValueError
from ..nn.cell import Cell
from ..option_checks import check_options, warn_unused
from .model import batch_count, batches_of, endless, reader

if TYPE_CHECKING:
    import numpy as np

    from ..dataset import Dataset

__all__ = ["DatasetHelper", "connect_network_with_dataset", "data_sink"]

R = TypeVar("R")


@explaining
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
        self,
        dataset: Iterable[object],
        dataset_sink_mode: bool = True,
        sink_size: int = -1,
        epoch_num: int = 1,
    ) -> None:
        check_options("train.DatasetHelper", sink_size=sink_size)
        self.dataset = dataset
        self._source = reader(dataset)

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return batches_of(self._source)

    def sink_size(self) -> int:
        """Return the number of batches that each training step receives, which is 1."""
        return 1

    def stop_send(self) -> None:
        """Do nothing; MindSpore scripts call this to stop sending data to a device."""

    def dynamic_min_max_shapes(self) -> None:
        """Return None: the dataset declares no minimum and maximum shapes."""

    def types_shapes(self) -> tuple[list[np.dtype[np.generic]], list[list[int | None]]]:
        """Return the dtypes and the shapes of the dataset's columns; a size that varies is None."""
        return (
            cast("Dataset", self.dataset).output_types(),
            cast("Dataset", self.dataset).output_shapes(),
        )

    def get_dataset_size(self) -> int:
        """Return the number of batches in an epoch of the dataset."""
        return batch_count(self.dataset)


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """Return the network unchanged (`mindspore.train.connect_network_with_dataset`).

    In duograph, a network needs no connection to a dataset.
    """
    return network


def data_sink(
    fn: Callable[..., R],
    dataset: Iterable[object],
    sink_size: int = 1,
    jit_config: JitConfig | Mapping[str, object] | None = None,
    input_signature: object = None,
) -> Callable[[], R]:
    """Return a function without arguments that runs `fn` on the next `sink_size` batches
    (`mindspore.data_sink`).

    Each call returns the result of the last batch. The dataset restarts when it is exhausted.
    `jit_config`, a JitConfig or a dictionary of its options, compiles `fn` for `input_signature`.

    Raises:
        ValueError: `sink_size` is neither -1 (the whole dataset) nor 1 or more, or the dataset is
            empty.

    Examples:
        >>> from duograph import data_sink, dataset
        >>> step = data_sink(lambda x: int(x), dataset.NumpySlicesDataset([1, 2], shuffle=False))
        >>> step(), step(), step()
        (1, 2, 1)
    """
    if jit_config is not None:
        fn = jit(fn, jit_config=jit_config, input_signature=input_signature)
    elif input_signature is not None:
        warn_unused("data_sink", "input_signature")
    if (
        isinstance(sink_size, bool)
        or not isinstance(sink_size, int)
        or (sink_size < 1 and sink_size != -1)
    ):
        raise ArgumentValueError(f"data_sink: got sink_size={sink_size!r}; wanted -1, or 1 or more")
    count = batch_count(dataset) if sink_size == -1 else sink_size
    feed = endless(reader(dataset))

    def run() -> R:
        result = None
        for _ in range(count):
            batch = next(feed, None)
            if batch is None:
                raise ArgumentValueError("data_sink: the dataset is empty; wanted batches")
            result = fn(*batch)
        return cast("R", result)

    return run
