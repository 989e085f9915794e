"""Checkpoints: saving, loading and conversion (`mindspore.train.serialization`).

`files` reads and writes one file, `folders` several, `sharded` those that ranks write together.
`train` shows all names to users.
"""

from __future__ import annotations

from .files import *  # noqa: F403
from .folders import *  # noqa: F403
from .sharded import *  # noqa: F403
