"""Every exception that duograph raises on purpose.

```
DuographError
├── ShapeError (ValueError)            operands whose shapes do not fit
├── DTypeError (TypeError)             an element type that an op does not take
├── ArgumentError (TypeError)          wrong number or kind of arguments
├── ArgumentValueError (ValueError)    an argument outside the values allowed
│   └── ProbabilityError (RuntimeError) a probability outside [0, 1]
├── IndexRangeError (IndexError)       an index past the end
├── IndexKindError (IndexError, TypeError)         something that cannot be an index
├── DeviceError (RuntimeError, ValueError)         no such device; operands on two devices
│   └── BackendUnavailable             a plugin that is installed and cannot run here
├── BackendError (RuntimeError)        a backend that breaks the rules of the plugin interface
├── UnsupportedOpError (NotImplementedError, RuntimeError)  no kernel, no decomposition, no fallback
├── DeviceMemoryError (MemoryError, RuntimeError)  out of device memory
├── GradientError (RuntimeError)       no gradient, or an invalid one from a rule
├── GraphError (ValueError)            a malformed graph, or text of one
├── RecursionDepthError (RecursionError) unbounded recursion of compiled functions
├── CheckpointError (ValueError)       a file that cannot be loaded as asked
├── UnsupportedSyntaxError (RuntimeError)  a construct that a compiled function cannot have
├── JoinError (TypeError)              branches, or iterations of a loop, that leave different types
└── CaptureError (RuntimeError)        a captured constant of a compiled function changed
```

Each also derives from the built-in exception that MindSpore raises in that case, so `except
ValueError` in an old script still works. A message says, in this order, what failed, what was got,
what was wanted and what to do. This module imports nothing.
"""

from __future__ import annotations


class DuographError(Exception):
    """Root of the exceptions that duograph raises on purpose."""


class ShapeError(DuographError, ValueError):
    """Error: the shapes of operands do not fit together."""


class DTypeError(DuographError, TypeError):
    """Error: an op does not take an element type."""


class ArgumentError(DuographError, TypeError):
    """Error: wrong number or kind of arguments."""


class ArgumentValueError(DuographError, ValueError):
    """Error: an argument is outside the allowed values."""


class ProbabilityError(ArgumentValueError, RuntimeError):
    """Error: a probability is outside [0, 1]."""


class IndexRangeError(DuographError, IndexError):
    """Error: an index is past the end of an axis."""


class IndexKindError(DuographError, IndexError, TypeError):
    """Error: a value is of a kind that cannot be an index."""


class DeviceError(DuographError, RuntimeError, ValueError):
    """Error: a device does not exist, or operands are on different devices."""


class BackendUnavailable(DeviceError):
    """Error: an installed backend plugin cannot run on this machine, with its reason."""


class BackendError(DuographError, RuntimeError):
    """Error: a method or kernel of a backend failed, or returned what it must not return."""


class UnsupportedOpError(DuographError, NotImplementedError):
    """Error: a backend has no kernel for an op, no decomposition and no fallback."""


class DeviceMemoryError(DuographError, MemoryError, RuntimeError):
    """Error: a device is out of memory."""


class GradientError(DuographError, RuntimeError):
    """Error: a gradient does not exist, or a gradient rule returned an invalid one."""


class GraphError(DuographError, ValueError):
    """Error: a graph, or the text of a graph, is malformed."""


class CheckpointError(DuographError, ValueError):
    """Error: a checkpoint file cannot be loaded as requested; no parameter was changed."""


class UnsupportedSyntaxError(DuographError, RuntimeError):
    """Error: a Python construct cannot be compiled.

    Attributes:
        construct: name of the construct, of its class in Python's `ast` if it has one, or "".
        remedy: what to write instead; the last line of the message.
    """

    def __init__(self, message: str = "", *, construct: str = "", remedy: str = "") -> None:
        super().__init__(f"{message}\n  {remedy}" if remedy else message)
        self.construct = construct
        self.remedy = remedy


class RefusedError(UnsupportedSyntaxError):
    """Error: an operation that compiled functions refuse at every syntax level.

    At LAX it raises as well, where other unsupported constructs fall back to Python.
    """


class JoinError(DuographError, TypeError):
    """Error: a variable has different types after two branches or two loop iterations.

    Attributes:
        name: the variable, or a description such as "the result".
        sides: description of the value on each side, as in the message.
    """

    name: str = ""
    sides: tuple[str, ...] = ()


class CaptureError(DuographError, RuntimeError):
    """Error: a value that a compiled function captured as a constant has changed.

    Raised if the setting `stale_captures` is "error".
    """


class StrictAttributeError(UnsupportedSyntaxError, AttributeError):
    """Error: code compiled at STRICT calls a method that needs a Tensor's data on the host."""


class RecursionDepthError(DuographError, RecursionError):
    """Error: unbounded or too deep recursion of compiled functions."""
