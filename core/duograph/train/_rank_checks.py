"""Checks before data-parallel training that the ranks of a program fit together.

`Model` calls them. Without them, ranks with shards of different lengths combine gradients of
different epochs until the last one fails, and ranks that start from different Parameters train
networks that stay different.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Sequence

from ..compiler.guards import callers_level
from ..context import get_auto_parallel_context
from ..errors import ArgumentValueError
from ..parameter import Parameter
from ..ranks.world import world

__all__ = ["check_ranks"]

_BYTES = 4096  # of each Parameter that are compared


def check_ranks(parameters: Sequence[Parameter], steps: int, begin: int, end: int) -> None:
    """Compare what the ranks are about to train; do nothing with one rank or in another mode.

    Args:
        parameters: the trained Parameters. Ranks that start from different values are warned.
        steps: number of steps of an epoch; -1 if it is not known.
        begin, end: number of the epochs that are done, and of the last one.

    Raises:
        ArgumentValueError: the ranks have different numbers of steps or epochs.
    """
    group = world().whole
    if group.size == 1 or get_auto_parallel_context("parallel_mode") != "data_parallel":
        return
    sums = [_checksum(p) for p in parameters]
    own = {"run": [steps, end - begin], "sum": zlib.crc32(repr(sums).encode())}
    told = group.gather_bytes(json.dumps(own).encode(), "comparing what ranks train")
    runs = [json.loads(text)["run"] for text in told]
    other = next((r for r, run in enumerate(runs) if run != runs[0]), None)
    if other is not None:
        raise ArgumentValueError(
            f"Model.train: rank 0 has {_steps_text(*runs[0])}, and rank {other} has "
            f"{_steps_text(*runs[other])}; wanted the same numbers, "
            "because all ranks take each step together. Give the shards equal numbers of rows, or "
            "set sink_size to the least number of steps"
        )
    if len({json.loads(text)["sum"] for text in told}) == 1:
        return
    lists = [json.loads(text) for text in group.gather_bytes(json.dumps(sums).encode(), "naming")]
    names = [
        p.name for i, p in enumerate(parameters) if len({str(x[i : i + 1]) for x in lists}) > 1
    ]
    names = names or ["Parameters that not all ranks have"]
    warnings.warn(
        f"Model.train: the ranks start from different values of {', '.join(names[:3])}"
        f"{' ...' if names[3:] else ''} and will train different networks. Call set_seed with the "
        "same seed on all ranks before the network is made, load the same checkpoint, or set "
        "set_auto_parallel_context(parameter_broadcast=True)",
        stacklevel=callers_level(),
    )


def _steps_text(steps: int, epochs: int) -> str:
    return f"{'an unknown number of' if steps < 0 else steps} steps in each of {epochs} epochs"


def _checksum(parameter: Parameter) -> int:
    """Return a checksum of the shape and the first bytes of a Parameter."""
    values = parameter.reshape(-1)[: max(_BYTES // parameter.itemsize, 1)].asnumpy()
    return zlib.crc32(values.tobytes(), zlib.crc32(repr(parameter.shape).encode()))
