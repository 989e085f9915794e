"""Every exception that duograph raises on purpose.

```
DuographError
├── ShapeError (ValueError, RuntimeError)          operands whose shapes do not fit
├── DTypeError (TypeError)             an element type that an op does not take
│   └── DeviceDTypeError               an element type that a device does not have
├── ArgumentError (TypeError)          wrong number or kind of arguments
├── ArgumentValueError (ValueError, RuntimeError)  an argument outside the values allowed
│   ├── ProbabilityError               a probability outside [0, 1]
│   ├── UnknownNameError (KeyError)     a name that no metric, activation or option has
│   ├── NonFiniteError                 a norm that is infinite or NaN
│   ├── BufferSizeError                a buffer of another size than the elements asked for
│   ├── MissingDataError (ArgumentError) None where a Tensor is wanted
│   └── OptionKindError (ArgumentError) an option that is no string, or a list of a wrong length
├── IndexRangeError (IndexError, RuntimeError)     an index past the end
│   └── LabelRangeError (ValueError)   a label that is no class
├── IndexKindError (IndexError, TypeError)         something that cannot be an index
├── DeviceError (RuntimeError, ValueError)         no such device; operands on two devices
│   └── BackendUnavailable             a plugin that is installed and cannot run here
├── BackendError (RuntimeError)        a backend that breaks the rules of the plugin interface
├── UnsupportedOpError (NotImplementedError, RuntimeError)  no kernel, no decomposition, no fallback
├── CommunicationError (RuntimeError)  ranks that differ, do not answer, or have ended
├── DeviceMemoryError (MemoryError, RuntimeError)  out of device memory
├── GradientError (RuntimeError)       no gradient, or an invalid one from a rule
│   ├── MissingRuleError               an op without a rule
│   └── GradientShapeError (ShapeError) a rule whose gradient has another shape than the operand
├── AnomalyError (FloatingPointError, RuntimeError)  a NaN or infinity, found by detect_anomaly
├── GraphError (ValueError)            a malformed graph, or text of one
├── RecursionDepthError (RecursionError) unbounded recursion of compiled functions
├── CheckpointError (ValueError)       a file that cannot be loaded as asked
│   └── StateMismatch (RuntimeError)   values that do not fit the Cell
├── OnnxError (ValueError)             an ONNX model that cannot be read, run or written
├── DatasetError (RuntimeError)        a dataset that cannot produce a row
│   ├── ColumnKindError (ArgumentError) a column that is neither an array nor a dictionary
│   ├── BatchShapeError (ShapeError)   rows of different shapes in one batch
│   └── SampleRangeError (IndexRangeError) a sampler that chose a row that is not there
├── MindRecordError (RuntimeError, ValueError) an invalid file, schema or row of MindRecord
├── MetricError (RuntimeError)         a metric that cannot be computed
├── LossNotFinite (ValueError)         a loss that is NaN or infinite
├── MissingRateError (KeyError)        a schedule resumed without its initial rate
├── MissingFunctionError (NotImplementedError) a distribution without a formula for a function
├── UnsupportedSyntaxError (RuntimeError)  a construct that a compiled function cannot have
│   ├── RefusedError                   one that is refused at every syntax level
│   ├── StrictAttributeError (AttributeError)  at STRICT, a method that needs data on the host
│   └── StrictDeviceError (DeviceError)  another device than the function is compiled for
├── JoinError (TypeError)              branches, or iterations of a loop, that leave different types
└── CaptureError (RuntimeError)        a captured constant of a compiled function changed
OptionWarning (UserWarning)            an option was accepted that has no meaning here
```

Each also derives from the built-in exception that MindSpore raises in that case, so `except
ValueError` in an old script still works. Where MindSpore raises ValueError in one function and
RuntimeError in the next, as for shapes that do not fit, the class derives from both. A message
says, in this order, what failed, what was got, what was wanted and what to do; its last line is the
user's file and line.
"""

from __future__ import annotations

import re

from .tracebacks import user_line

# A line of a message that says where the user's code is: "  train.py:31 in step".
_LOCATION = re.compile(r"^  \S.*:\d+(?: in \S+)?$", re.MULTILINE)


class DuographError(Exception):
    """Base class of all exceptions that duograph raises on purpose.

    `str` adds the innermost line of the user's code in the traceback: "  train.py:31 in step". An
    error of compiled code has the source location in its message instead.

    Attributes:
        names_call: class attribute. If True, the message begins with the name of the function that
            the user's line called; if False, with the name of an op. See `call_names`.
    """

    names_call = False

    def plain_text(self) -> str:
        """Return the message without the line of the user's code that `str` adds."""
        return Exception.__str__(self)  # a KeyError would put it in quotes

    def __str__(self) -> str:
        text = self.plain_text()
        if self.__traceback__ is None or _LOCATION.search(text):
            return text
        where = user_line(self.__traceback__)
        return f"{text}\n  {where}" if where else text


class ShapeError(DuographError, ValueError, RuntimeError):
    """Raised if the shapes of operands do not fit together."""

    names_call = True


class DTypeError(DuographError, TypeError):
    """Raised if an op does not support an operand's element type."""

    names_call = True


class DeviceDTypeError(DTypeError):
    """Raised if a device has no tensors of an element type."""


class ArgumentError(DuographError, TypeError):
    """Raised if a call has the wrong number or kind of arguments."""

    names_call = True


class ArgumentValueError(DuographError, ValueError, RuntimeError):
    """Raised if an argument is outside the allowed values."""

    names_call = True


class ProbabilityError(ArgumentValueError):
    """Raised if a probability is outside [0, 1]."""


class UnknownNameError(ArgumentValueError, KeyError):
    """Raised if no object has a name that was given as a string."""


class NonFiniteError(ArgumentValueError):
    """Raised if a norm is infinite or NaN where the user required a finite one."""


class BufferSizeError(ArgumentValueError):
    """Raised if the size of a buffer does not fit the requested elements."""


class MissingDataError(ArgumentValueError, ArgumentError):
    """Raised if there is no data for a Tensor: None where an operand is wanted."""


class OptionKindError(ArgumentValueError, ArgumentError):
    """Raised if an option with fixed values, such as a mode, gets a value of another type."""


class IndexRangeError(DuographError, IndexError, RuntimeError):
    """Raised if an index is out of range for its axis."""

    names_call = True

    @classmethod
    def of_axis(
        cls, name: str, index: int, axis: int | None, size: int, remark: str = ""
    ) -> IndexRangeError:
        """Return the exception for an index that is out of range for an axis of `size` elements.

        `name` is the function that the message names, `remark` is appended to the message.
        """
        return cls(
            f"{name}: index {index} is out of range for axis {axis} of size {size}; "
            f"wanted {-size} to {size - 1}{remark}"
        )


class LabelRangeError(IndexRangeError, ArgumentValueError):
    """Raised if a label is not the number of a class, or a segment id is not that of a segment."""

    @classmethod
    def of(
        cls, name: str, label: object, classes: int, what: str = "label", remark: str = ""
    ) -> LabelRangeError:
        """Return the exception for a label outside 0 .. classes - 1.

        `name` is the function that the message names, `what` the word for a label there; `remark`
        is appended to the message.
        """
        return cls(f"{name}: got the {what} {label}; wanted 0 to {classes - 1}{remark}")


class IndexKindError(DuographError, IndexError, TypeError):
    """Raised if a value of a wrong kind is used as an index."""

    names_call = True


class DeviceError(DuographError, RuntimeError, ValueError):
    """Raised if a device does not exist, or operands are on different devices."""

    names_call = True


class BackendUnavailable(DeviceError):
    """Raised if an installed backend cannot run on this machine; the message has the reason."""


class BackendError(DuographError, RuntimeError):
    """Raised if a method or kernel of a backend failed, or returned an invalid value."""


class UnsupportedOpError(DuographError, NotImplementedError):
    """Raised if a backend has no kernel, no decomposition and no fallback for an op."""


class CommunicationError(DuographError, RuntimeError):
    """Raised if ranks call different collectives, do not answer in time, or have ended."""


class DeviceMemoryError(DuographError, MemoryError, RuntimeError):
    """Raised if a device is out of memory."""


class GradientError(DuographError, RuntimeError):
    """Raised if a gradient does not exist, or a gradient rule returned an invalid one."""


class MissingRuleError(GradientError):
    """Raised if a gradient reaches an op that has no gradient rule."""

    def __init__(self, op: str) -> None:
        super().__init__(
            f"{op}: has no gradient rule; register one with bprop_getters.register, or wrap the "
            f"operand in ops.stop_gradient"
        )


class GradientShapeError(GradientError, ShapeError):
    """Raised if a gradient rule returns a gradient whose shape is not that of the operand."""


class AnomalyError(DuographError, FloatingPointError, RuntimeError):
    """Raised by `detect_anomaly` where the first NaN or infinity appears.

    Attributes:
        anomaly: the facts of the message, a `duograph.autodiff.anomaly.Anomaly`; None if the op
            is not known.
    """

    def __init__(self, message: str, anomaly: object = None) -> None:
        super().__init__(message)
        self.anomaly = anomaly


class GraphError(DuographError, ValueError):
    """Raised if a graph, or the printed form of a graph, is malformed."""


class CheckpointError(DuographError, ValueError):
    """Raised if a checkpoint cannot be written, or cannot be loaded as requested."""

    names_call = True


class StateMismatch(CheckpointError, RuntimeError):
    """Raised if a state dictionary does not match the Cell.

    The message says whether values were loaded.
    """


class OnnxError(DuographError, ValueError):
    """Raised if an ONNX model cannot be read, run or written.

    Attributes:
        why: the reason alone, without the names of file, node or op.
        file: name of the file; "" until the message includes it.
    """

    why: str = ""
    file: str = ""


class DatasetError(DuographError, RuntimeError):
    """Raised if a dataset cannot produce a row."""


class ColumnKindError(ArgumentError, DatasetError):
    """Raised if a column of a row holds something that is neither an array nor a dictionary."""


class BatchShapeError(DatasetError, ShapeError):
    """Raised if rows of different shapes cannot be stacked into one batch."""


class SampleRangeError(IndexRangeError, DatasetError):
    """Raised if a sampler chose a row that the source does not have."""


class MindRecordError(DuographError, RuntimeError, ValueError):
    """Raised if a file, a schema or a row of MindRecord is invalid."""


class MetricError(DuographError, RuntimeError):
    """Raised if a metric cannot be computed, above all by `eval` before any `update`."""


class LossNotFinite(DuographError, ValueError):
    """Raised if the loss of a training step is NaN or infinite."""


class MissingRateError(DuographError, KeyError):
    """Raised if a schedule is resumed, but a parameter group has no ``initial_lr``."""


class MissingFunctionError(DuographError, NotImplementedError):
    """Raised if a distribution can neither compute nor derive a function, such as its entropy."""


class UnsupportedSyntaxError(DuographError, RuntimeError):
    """Raised if a Python construct cannot be compiled.

    Attributes:
        construct: name of the construct, of its class in Python's `ast` if it has one, or "".
        remedy: what to write instead; the last line of the message.
    """

    def __init__(self, message: str = "", *, construct: str = "", remedy: str = "") -> None:
        super().__init__(f"{message}\n  {remedy}" if remedy else message)
        self.construct = construct
        self.remedy = remedy


class RefusedError(UnsupportedSyntaxError):
    """Raised if compiled code uses an operation that is refused at every syntax level.

    It is raised even at level LAX, where other unsupported constructs run in Python instead.
    """


class JoinError(DuographError, TypeError):
    """Raised if a variable has different types after two branches or two loop iterations.

    Attributes:
        name: name of the variable, or a description such as "the result".
        sides: description of the value on each side, as in the message.
    """

    name: str = ""
    sides: tuple[str, ...] = ()


class CaptureError(DuographError, RuntimeError):
    """Raised if a value that a compiled function captured as a constant has changed.

    This happens only if the setting `stale_captures` is "error".
    """


class StrictAttributeError(UnsupportedSyntaxError, AttributeError):
    """Raised if code compiled at STRICT calls a method that needs a Tensor's data on the host."""


class StrictDeviceError(UnsupportedSyntaxError, DeviceError):
    """Raised if a function that is compiled for one device uses another one."""


class RecursionDepthError(DuographError, RecursionError):
    """Raised if compiled functions call themselves without bound or too deep."""


class OptionWarning(UserWarning):
    """Warning that an accepted option has no meaning here; given once for each option."""
