"""Checkpoints: saving, loading and conversion (`mindspore.train.serialization`).

`files` reads and writes single files, `folders` folders of files, and `sharded` checkpoints that
several ranks write together. The package `train` exports all names to users.
"""

from __future__ import annotations

from .files import *  # noqa: F403
from .folders import *  # noqa: F403
from .sharded import *  # noqa: F403
