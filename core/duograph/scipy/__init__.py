"""SciPy's linear algebra and optimisation on Tensors (`mindspore.scipy`).

User code imports it. `linalg` is made of ops, so it has gradients; `optimize` runs its loops in
Python. Nothing here may import SciPy.
"""

from __future__ import annotations

from . import linalg, optimize

__all__ = ["linalg", "optimize"]
