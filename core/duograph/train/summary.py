"""Event files for TensorBoard: scalars, images, histograms and tensors of a training run.

User code and the callback `SummaryCollector` use `SummaryRecord`. The optional package tensorboardX
implements the file format. It must not be imported before a record is created, because it may not
be installed.
"""

from __future__ import annotations

import glob
import importlib
import os
import time
import warnings
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..call_errors import explaining
from ..errors import ArgumentError, ArgumentValueError
from ..nn.cell import Cell
from ..option_checks import check_options
from ..tensor import Tensor
from ._summary_graph import graph_bytes

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["SummaryRecord"]

# Plugins of MindSpore whose values are its own protocol buffers.
_FOREIGN = (
    "graph", "train_lineage", "eval_lineage", "dataset_graph", "custom_lineage_data", "LANDSCAPE",
)  # fmt: skip


if TYPE_CHECKING:

    class _EventsFile(Protocol):
        """What is used of the event files of tensorboardX."""

        def write_event(self, event: object) -> object: ...
        def flush(self) -> object: ...
        def close(self) -> object: ...


def _writer() -> ModuleType:
    """Import the package tensorboardX and return its module.

    Raises:
        ArgumentValueError: the package is not installed.
    """
    try:
        return importlib.import_module("tensorboardX")
    except ModuleNotFoundError:
        raise ArgumentValueError(
            "SummaryRecord: the package tensorboardX is not installed; wanted "
            "`pip install duograph[summary]`"
        ) from None


@explaining
class SummaryRecord:
    """Writes values of a training run to an event file, which TensorBoard shows
    (`mindspore.SummaryRecord`).

    `add_value` collects values, `record` writes them for a step. The file is created by the first
    `record` that has a value. Needs `pip install duograph[summary]`.

    Args:
        log_dir: the directory of the file; it is created if necessary.
        file_prefix, file_suffix: beginning and end of the name of the file.
        num_process: accepted and ignored; one process writes.
        network: accepted and ignored; no graph is written.
        max_file_size: largest size of the file in bytes; values that would exceed it are left out,
            with one warning.
        raise_exception: raise errors of the file system; otherwise they become warnings.
        export_options: ``{"tensor_format": "npy"}`` also writes each tensor to a file
            ``export_TIME/tensor/NAME_STEP.npy``.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a size or option is not allowed, or tensorboardX is not installed.

    Examples:
        >>> import tempfile
        >>> import duograph as ms
        >>> with tempfile.TemporaryDirectory() as path, ms.SummaryRecord(path) as record:
        ...     record.add_value("scalar", "loss", ms.Tensor(0.5))
        ...     print(record.record(1))
        True
    """

    def __init__(
        self,
        log_dir: str,
        file_prefix: str = "events",
        file_suffix: str = "_MS",
        num_process: int = 32,
        network: Cell | None = None,
        max_file_size: int | None = None,
        raise_exception: bool = False,
        export_options: dict[str, str | None] | None = None,
    ) -> None:
        for name, text in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(text, str) or os.sep in text:
                raise ArgumentError(f"SummaryRecord: got {text!r} for {name}; wanted a file name")
        _check_file_size("SummaryRecord", max_file_size)
        check_options("train.SummaryRecord", num_process=num_process, network=network)
        wanted = {} if export_options is None else dict(export_options)
        if wanted.pop("tensor_format", None) not in (None, "npy") or wanted:
            raise ArgumentValueError(
                f"SummaryRecord: got export_options={export_options!r}; wanted "
                "{'tensor_format': 'npy'} or None"
            )
        self._package = _writer()
        self.log_dir = os.path.realpath(os.fspath(log_dir))
        os.makedirs(self.log_dir, exist_ok=True)
        self._prefix = file_prefix
        self._suffix = file_suffix
        self._max_file_size = max_file_size
        self._raise = raise_exception
        self._exports = bool(export_options and export_options.get("tensor_format"))
        self._started = time.strftime("%Y%m%d_%H%M%S")
        self._waiting: list[tuple[str, str, Array | str]] = []
        self._file: _EventsFile | None = None
        self._size = 0
        self._mode = "train"
        self._closed = False
        self._full = False

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """Set the attribute `mode`, the phase of the model; it has no other effect.

        Raises:
            ValueError: `mode` is neither ``"train"`` nor ``"eval"``.
        """
        if mode not in ("train", "eval"):
            raise ArgumentValueError(f"set_mode: got {mode!r}; wanted 'train' or 'eval'")
        self._mode = mode

    @property
    def mode(self) -> str:
        """The phase of the model, ``"train"`` or ``"eval"``."""
        return self._mode

    def add_value(self, plugin: str, name: str, value: Tensor) -> None:
        """Collect a value, which the next `record` writes.

        Args:
            plugin: ``"scalar"`` (a Tensor of one element), ``"image"`` (NCHW with 1 or 3
                channels, the first image is written; floats are scaled to 0 .. 255),
                ``"histogram"`` or ``"tensor"``.
            name: the tag that TensorBoard shows.
            value: a Tensor.

        Raises:
            TypeError: the name is no string, or the value is no Tensor.
            ValueError: the plugin is unknown, or cannot show a value of this shape.
        """
        if plugin in _FOREIGN:
            raise ArgumentValueError(
                f"add_value: got the plugin {plugin!r}, whose values are MindSpore's own; wanted "
                "'scalar', 'image', 'histogram' or 'tensor'"
            )
        if plugin not in _PLUGINS:
            raise ArgumentValueError(
                f"add_value: got the plugin {plugin!r}; wanted one of {', '.join(_PLUGINS)}"
            )
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"add_value: got {name!r} for the name; wanted a text")
        if not isinstance(value, Tensor):
            raise ArgumentError(f"add_value: got {type(value).__name__}; wanted a Tensor")
        array = value.asnumpy().copy()
        if array.dtype.kind not in "fiub":
            array = array.astype(np.float32)
        if plugin == "scalar" and array.size != 1:
            raise ArgumentValueError(
                f"add_value: got a scalar of shape {array.shape}; wanted one element"
            )
        if plugin == "image" and (array.ndim != 4 or array.shape[1] not in (1, 3)):
            raise ArgumentValueError(
                f"add_value: got an image of shape {array.shape}; wanted NCHW with 1 or 3 channels"
            )
        self._waiting.append((plugin, name, array))

    def add_text(self, name: str, text: str) -> None:
        """Collect a string, which the next `record` writes; MindSpore has no such method."""
        self._waiting.append(("text", name, text))

    def add_graph(self, net: Cell, *inputs: Tensor) -> bool:
        """Write the graph of a network called with the given inputs; MindSpore has no such method.

        TensorBoard groups Parameters, and the ops that read them, by Cell. The network is compiled
        and not run.

        Returns:
            Whether the graph was written; it is not if the file would become too large.

        Raises:
            TypeError: `net` is no Cell, or an input no Tensor.
            ValueError: the network cannot be compiled, or the SummaryRecord is closed.
        """
        if self._closed:
            raise ArgumentValueError("add_graph: the SummaryRecord is closed")
        return self._append(0, graph_def=graph_bytes(net, inputs))

    def record(
        self,
        step: int,
        train_network: Cell | None = None,
        plugin_filter: Callable[[str], bool] | None = None,
    ) -> bool:
        """Write the collected values for a step.

        Args:
            step: number of the training step.
            train_network: accepted and ignored; no graph is written.
            plugin_filter: function of a plugin's name; values of plugins for which it returns False
                are dropped.

        Returns:
            Whether all values were written.

        Raises:
            TypeError: `step` is no int, or `train_network` no Cell.
            ValueError: the SummaryRecord is closed.
            OSError: the file cannot be written, and the option `raise_exception` is set; without
                it, a warning says so.
        """
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise ArgumentError(f"record: got {step!r} for the step; wanted an int")
        if train_network is not None and not isinstance(train_network, Cell):
            raise ArgumentError(
                f"record: got {type(train_network).__name__} for train_network; wanted a Cell"
            )
        check_options("train.SummaryRecord.record", train_network=train_network)
        if self._closed:
            raise ArgumentValueError("record: the SummaryRecord is closed")
        values, self._waiting = self._waiting, []
        wanted = [v for v in values if plugin_filter is None or plugin_filter(v[0])]
        try:
            return all([self._write(int(step), *v) for v in wanted])
        except OSError as error:
            if self._raise:
                raise
            warnings.warn(
                f"SummaryRecord: could not write to {self.log_dir}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            return False

    def _write(self, step: int, plugin: str, name: str, array: Array | str) -> bool:
        """Append one value to the event file; return False if the file would become too large.

        `plugin` is the kind of value, such as "scalar". With the option `export_options`, a tensor
        is also saved to its own file.
        """
        if plugin == "tensor" and self._exports:
            folder = os.path.join(self.log_dir, f"export_{self._started}", "tensor")
            os.makedirs(folder, exist_ok=True)
            np.save(os.path.join(folder, f"{name.replace('/', '_')}_{step}.npy"), array)
        return self._append(step, summary=_SUMMARIES[plugin](self._package, name, array))

    def _append(self, step: int, **content: object) -> bool:
        """Append an event to the file; return False if the file would become too large.

        `content` is the event's field besides time and step, such as ``summary=...``.
        """
        events = importlib.import_module("tensorboardX.proto.event_pb2")
        event = events.Event(wall_time=time.time(), step=step, **content)
        size = event.ByteSize() + 16  # its length and two checksums
        if self._max_file_size is not None and self._size + size > self._max_file_size:
            if not self._full:
                self._full = True
                warnings.warn(
                    f"SummaryRecord: the event file reached max_file_size={self._max_file_size}; "
                    "later values are left out",
                    RuntimeWarning,
                    stacklevel=3,
                )
            return False
        if self._file is None:
            files = importlib.import_module("tensorboardX.event_file_writer")
            path = os.path.join(self.log_dir, self._prefix)
            # the name has whole seconds and the host; another file may have taken it
            number = len(glob.glob(glob.escape(path) + ".*" + glob.escape(self._suffix)))
            suffix = f".{number}{self._suffix}" if number else self._suffix
            self._file = files.EventsWriter(path, suffix)
        self._file.write_event(event)
        self._size += size
        return True

    def flush(self) -> None:
        """Hand the events that are still buffered to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self._closed:
            self._closed = True
            if self._file is not None:
                self._file.close()


def _check_file_size(owner: str, size: object) -> None:
    """Raise an error unless `size`, the argument `max_file_size`, is None or a positive int.

    It is an ArgumentError for a wrong type, else an ArgumentValueError; `owner` names the caller.
    """
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int):
        raise ArgumentError(f"{owner}: got {size!r} for max_file_size; wanted an int or None")
    if size <= 0:
        raise ArgumentValueError(f"{owner}: got max_file_size={size}; wanted a positive number")


def _scalar(package: ModuleType, name: str, array: Array) -> object:
    return package.summary.scalar(name, float(array.reshape(())))


def _image(package: ModuleType, name: str, array: Array) -> object:
    first = array[0]
    if first.dtype != np.uint8:
        first = first.astype(np.float64)
        low, high = (float(first.min()), float(first.max())) if first.size else (0.0, 1.0)
        first = np.uint8(np.round((first - low) * (255.0 / (high - low) if high > low else 0.0)))
    return package.summary.image(name, first, dataformats="CHW")


def _histogram(package: ModuleType, name: str, array: Array) -> object:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array.astype(np.float64)
    values = finite.reshape(-1) if finite.size else np.zeros(1)
    return package.summary.histogram(name, values.astype(np.float64), "auto", 512)


def _tensor(package: ModuleType, name: str, array: Array) -> object:
    """Return a summary message that holds the tensor's bytes, shape and dtype.

    `package` is tensorboardX.
    """
    summaries = importlib.import_module("tensorboardX.proto.summary_pb2")
    tensors = importlib.import_module("tensorboardX.proto.tensor_pb2")
    shapes = importlib.import_module("tensorboardX.proto.tensor_shape_pb2")
    types = importlib.import_module("tensorboardX.proto.types_pb2")
    kind = _TENSOR_TYPES.get(array.dtype.name)
    if kind is None:
        array, kind = array.astype(np.float32), "DT_FLOAT"
    dims = [shapes.TensorShapeProto.Dim(size=n) for n in array.shape]
    proto = tensors.TensorProto(
        dtype=getattr(types, kind),
        tensor_shape=shapes.TensorShapeProto(dim=dims),
        tensor_content=array.tobytes(),
    )
    return summaries.Summary(value=[summaries.Summary.Value(tag=name, tensor=proto)])


_TENSOR_TYPES = {
    "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int8": "DT_INT8",
    "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64", "uint8": "DT_UINT8",
    "bool": "DT_BOOL",
}  # fmt: skip
_PLUGINS = ("scalar", "image", "histogram", "tensor")
_SUMMARIES: dict[str, Callable[..., object]] = {
    "text": lambda package, name, text: package.summary.text(name, text),
    "scalar": _scalar,
    "image": _image,
    "histogram": _histogram,
    "tensor": _tensor,
}
