"""Implements `run_check`, which tests that the installation can compute on the current device.

Users call it after installing.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from . import ops, version
from .backend import registry
from .errors import DuographError
from .tensor import Tensor

__all__ = ["run_check"]


def run_check() -> None:
    """Multiply matrices on the current device and print the outcome (`mindspore.run_check`).

    Examples:
        >>> import duograph as ms
        >>> ms.run_check() # doctest: +ELLIPSIS
        duograph version: ...
        The result of multiplication calculation is correct, duograph has been installed ...
    """
    say(checked())


class Check(NamedTuple):
    """Outcome of `checked`: whether the product is right, on which device, and the problem."""

    right: bool
    version: str
    device: str | None
    problem: str | None


def checked() -> Check:
    """Multiply two matrices on the current device, and return the outcome."""
    device: str | None = None
    try:
        current = registry.current_device()
        device = current.name
        x = Tensor([[1.0, 2.0], [3.0, 4.0]])
        found = ops.matmul(x, x).asnumpy().tolist()
    except DuographError as error:
        return Check(False, version.OWN, device, str(error))
    if found != [[7.0, 10.0], [15.0, 22.0]]:
        problem = f"{current} gives {found} for the square of [[1, 2], [3, 4]]"
        return Check(False, version.OWN, device, problem)
    return Check(True, version.OWN, device, None)


def say(outcome: Check) -> None:
    """Print the outcome of `checked`."""
    sys.stdout.write(f"duograph version: {outcome.version}\n")
    if outcome.right:
        sys.stdout.write(
            "The result of multiplication calculation is correct, duograph has been installed on "
            f"platform [{outcome.device}] successfully!\n"
        )
    else:
        sys.stdout.write(f"The check failed: {outcome.problem}\n")
