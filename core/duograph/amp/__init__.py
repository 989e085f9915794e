"""Mixed precision: casting of networks to 16-bit floats, and loss scaling (`mindspore.amp`).

User code and `Model` call it. It is built on `nn` and `ops`.
"""

from __future__ import annotations

from .loss_scale_manager import *  # noqa: F403
from .loss_scaler import *  # noqa: F403
from .precision import *  # noqa: F403
