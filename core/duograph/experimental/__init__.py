"""MindSpore's experimental names (`mindspore.experimental`): optimisers with parameter groups.

`import duograph` does not load it; `mint.optim` shares its optimisers.
"""

from __future__ import annotations

from . import optim

__all__ = ["optim"]
