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
├── UnsupportedOpError (NotImplementedError, RuntimeError)  no kernel, no decomposition, no fallback
├── DeviceMemoryError (MemoryError, RuntimeError)  out of device memory
├── GradientError (RuntimeError)       no gradient, or a rule that returns the wrong thing
├── GraphError (ValueError)            a graph, or the text of one, that is not well formed
├── RecursionDepthError (RecursionError) calls of compiled functions inside each other without end
├── CheckpointError (ValueError)       a file that cannot be loaded as asked
├── UnsupportedSyntaxError (RuntimeError)  a construct that a compiled function cannot have
├── JoinError (TypeError)              branches, or turns of a loop, that leave different types
└── CaptureError (RuntimeError)        something a compiled function read as constant has changed
```

Each also derives from the built-in that MindSpore raises there, so `except ValueError` in an old
script still works. A message says what failed, what was got, what was wanted and what to do, in
that order.
"""

from __future__ import annotations


class DuographError(Exception):
    """Root of the exceptions that duograph raises on purpose."""


class ShapeError(DuographError, ValueError):
    """Operands whose shapes do not fit together."""


class DTypeError(DuographError, TypeError):
    """An element type that an op does not take."""


class ArgumentError(DuographError, TypeError):
    """Wrong number or kind of arguments."""


class ArgumentValueError(DuographError, ValueError):
    """An argument outside the values that are allowed."""


class ProbabilityError(ArgumentValueError, RuntimeError):
    """A probability outside [0, 1]."""


class IndexRangeError(DuographError, IndexError):
    """An index past the end of an axis."""


class IndexKindError(DuographError, IndexError, TypeError):
    """Something that cannot be an index."""


class DeviceError(DuographError, RuntimeError, ValueError):
    """No such device, or operands that live on two devices."""


class BackendUnavailable(DeviceError):
    """A plugin that is installed and cannot run here; the message carries its own words."""


class UnsupportedOpError(DuographError, NotImplementedError):
    """A backend has no kernel for an op, nothing to make one of, and no fallback allowed."""


class DeviceMemoryError(DuographError, MemoryError, RuntimeError):
    """A device has not enough memory left."""


class GradientError(DuographError, RuntimeError):
    """No gradient can be given, or a rule returned something else than one."""


class GraphError(DuographError, ValueError):
    """A graph, or the text of one, that is not well formed."""


class CheckpointError(DuographError, ValueError):
    """A checkpoint file that cannot be loaded as asked; nothing was changed."""


class UnsupportedSyntaxError(DuographError, RuntimeError):
    """A construct that a compiled function cannot have.

    Attributes:
        construct: its name, that of the class in Python's `ast` where there is one; "" if unknown.
        remedy: what to write instead; the last line of the message.
    """

    def __init__(self, message: str = "", *, construct: str = "", remedy: str = "") -> None:
        super().__init__(f"{message}\n  {remedy}" if remedy else message)
        self.construct = construct
        self.remedy = remedy


class RefusedError(UnsupportedSyntaxError):
    """What a function that asks for compilation must not do at any level: LAX does not run it line
    by line either.
    """


class JoinError(DuographError, TypeError):
    """Two branches, or two turns of a loop, leave values of different types under one name.

    Attributes:
        name: the variable, or such as "the result".
        sides: what each side leaves, as the message says it.
    """

    name: str = ""
    sides: tuple[str, ...] = ()


class CaptureError(DuographError, RuntimeError):
    """Something that a compiled function read as constant has changed, and `stale_captures` is
    "error".
    """


class StrictAttributeError(UnsupportedSyntaxError, AttributeError):
    """A method that gives the data of a Tensor to Python, in code compiled at STRICT."""


class RecursionDepthError(DuographError, RecursionError):
    """Compiled functions that call themselves without end, or too deep."""
