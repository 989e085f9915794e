"""A device in NumPy whose kernels read operands where they lie, and count what they copy."""

from __future__ import annotations

import collections

import numpy as np
from duograph.backend.prepared import PreparedCall
from duograph.backend.views import CHANNELS_LAST, STRIDED
from duograph_reference.backend import Reference

MOVES = ("strided_copy", "strided_slice", "transpose", "flip", "broadcast_to")


def seen(handle, view):
    """Return the operand that a view describes, as an array that shares the buffer."""
    flat = handle.reshape(-1)
    return np.lib.stride_tricks.as_strided(
        flat[view.offset :], view.shape, [s * flat.itemsize for s in view.strides], writeable=False
    )


class Strided(Reference):
    """The reference backend with kernels that take the layouts of `takes`.

    Attributes:
        takes: op name -> layouts of its operands; all other ops take those of ``""``.
        copies: calls of kernels that only move data, by name.
        views: the layouts of the operands that were read in place, by op name.
    """

    name = "Strided"

    def __init__(self, takes=None):
        self.takes = {"": (STRIDED, CHANNELS_LAST)} if takes is None else takes
        self.copies = collections.Counter()
        self.views = collections.defaultdict(list)

    def prepare(self, op, types, attributes, device_id):
        run = super().prepare(op, types, attributes, device_id)
        if run is None:
            return None

        def counted(*handles):
            if op.name in MOVES:
                self.copies[op.name] += 1
            return run(*handles)

        def with_views(views):
            def call(*handles):
                given = [seen(h, views[i]) if i in views else h for i, h in enumerate(handles)]
                for view in views.values():
                    self.views[op.name].append(view.layouts)
                return counted(*[None if a is None else np.ascontiguousarray(a) for a in given])

            return call

        takes = self.takes.get(op.name, self.takes.get("", ()))
        layouts = {i: takes for i, t in enumerate(types) if t is not None and takes}
        return PreparedCall(counted, layouts=layouts, with_views=with_views if layouts else None)
