"""The layers of `nn`, one family in each module.

`nn/__init__.py` re-exports all of them; users import them from there.
"""

from __future__ import annotations

from .activation import *  # noqa: F403
from .adaptive_pooling import *  # noqa: F403
from .basic import *  # noqa: F403
from .combined import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .embedding import *  # noqa: F403
from .image import *  # noqa: F403
from .math import *  # noqa: F403
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn_cells import *  # noqa: F403
from .rnns import *  # noqa: F403
from .softmax import *  # noqa: F403
from .sparse import *  # noqa: F403
from .special import *  # noqa: F403
from .transformer import *  # noqa: F403
from .unpooling import *  # noqa: F403
