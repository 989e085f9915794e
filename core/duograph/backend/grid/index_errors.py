"""Out-of-range index errors on a device: kernels write a record, and the host raises later.

A kernel cannot raise an exception. It writes a wrong index to the record of its device: 24 bytes
with a number that stands for an op and axis (0 means no error), the index, and the size of the
axis. The first kernel that finds a wrong index claims the record; later ones write nothing. The
host reads the record when it reads a value or synchronizes, and only if a kernel with indices was
launched since the record was last read. Therefore no op call waits for the check of its indices,
unless the user's setting `pynative_synchronize` is on. `GridBackend` creates the record and calls
`look`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ... import context
from ..._locks import new_lock
from ...errors import IndexRangeError, LabelRangeError
from ..protocol import Handle

if TYPE_CHECKING:
    from ...host_arrays import Array

__all__ = ["LABELS", "RECORD", "SIZE", "IndexRecord", "number_of"]

# Stands for the axis of an index that is a label; negative labels do not count from the end.
LABELS = -1
# The number of the record among the buffers of a launch.
RECORD = -1
# The number of int64 words of the record.
SIZE = 3

# The end of a message that is raised later than the call.
BEHIND = (
    ". The device runs behind: the op was called before the value that is read now; with "
    "set_context(pynative_synchronize=True) the call itself raises"
)

_numbers: dict[tuple[str, int], int] = {}
_lock = new_lock()


def number_of(op: str, axis: int) -> int:
    """Return the number by which kernels report a wrong index of an op along an axis.

    It is the same in the whole process and greater than 0.
    """
    with _lock:
        return _numbers.setdefault((op, axis), len(_numbers) + 1)


class IndexRecord:
    """The device buffer in which kernels of one device report an index out of range.

    Args:
        handle: the buffer's handle.
        read: the device's `copy_out`.
        clear: function that launches a kernel to set the buffer to 0.

    Attributes:
        unread: whether a kernel that may write the record was launched since it was last read.
    """

    def __init__(
        self, handle: Handle, read: Callable[..., Array], clear: Callable[[Handle], None]
    ) -> None:
        self.handle = handle
        self.read = read
        self.clear = clear
        self.unread = False
        clear(handle)

    def watching(self, run: Callable[..., None]) -> Callable[..., None]:
        """Wrap a kernel's launcher so that the host checks later whether an index was out of range.

        Returns a function with the same arguments; if the setting `pynative_synchronize` is on, the
        returned function checks immediately.
        """

        def watched(*handles: Handle) -> None:
            run(*handles)
            self.unread = True  # after the launch: another thread may be reading just now
            if context.settings.pynative_synchronize:
                self.look("")

        return watched

    def look(self, remark: str = BEHIND) -> None:
        """Read the device's record; if it reports a wrong index, clear it and raise the error.

        `remark` is appended to the error message.

        Raises:
            IndexRangeError: the record reports an index; the message names the op, the index and
                the size of the axis.
            LabelRangeError: the record reports a label that is not the number of a class.
        """
        self.unread = False
        found = self.read(self.handle, (SIZE,), np.dtype(np.int64))
        number = int(found.view(np.int32)[0])
        if number:
            self.clear(self.handle)
            op, axis = next(key for key, n in _numbers.items() if n == number)
            index, size = found[1:].tolist()
            if axis == LABELS:
                raise LabelRangeError.of(op, index, size, remark=remark)
            raise IndexRangeError.of_axis(op, index, axis, size, remark)
