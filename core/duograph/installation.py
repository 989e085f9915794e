"""Implements `run_check`, which tests that the installation can compute on the current device.

Users call it after installing.
"""

from __future__ import annotations

import sys

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
    check()


def check() -> bool:
    """Multiply two matrices on the current device; return whether the product is right.

    Prints the outcome.
    """
    say = sys.stdout.write
    say(f"duograph version: {version.OWN}\n")
    try:
        device = registry.current_device()
        x = Tensor([[1.0, 2.0], [3.0, 4.0]])
        found = ops.matmul(x, x).asnumpy().tolist()
    except DuographError as error:
        say(f"The check failed: {error}\n")
        return False
    if found != [[7.0, 10.0], [15.0, 22.0]]:
        say(f"The check failed: {device} gives {found} for the square of [[1, 2], [3, 4]]\n")
        return False
    say(
        f"The result of multiplication calculation is correct, duograph has been installed on "
        f"platform [{device.name}] successfully!\n"
    )
    return True
