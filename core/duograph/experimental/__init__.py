"""Experimental interfaces: optimisers with parameter groups (`mindspore.experimental`).

Users import `experimental.optim`; `import duograph` does not load it. `mint.optim` has some of
them.
"""

from __future__ import annotations

from . import optim

__all__ = ["optim"]
