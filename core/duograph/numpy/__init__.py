"""NumPy's functions on Tensors, with NumPy's signatures (`mindspore.numpy`).

User code imports it. Every function converts its arguments and calls `ops`, so all of them compile
and have gradients. There is one module for each family; none may compute what an op computes.
"""

from __future__ import annotations

from types import FunctionType

from ..ops.refusals import refusing as _refusing
from . import (  # fft is a namespace of its own
    calculus,
    creation,
    dtypes,
    elementwise,
    fft,
    grids,
    indexing,
    joining,
    logic,
    matrices,
    nan_reductions,
    padding,
    polynomials,
    products,
    random_numbers,
    reductions,
    sets,
    shapes,
    statistics,
    trigonometry,
)
from .calculus import *  # noqa: F403
from .creation import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .grids import *  # noqa: F403
from .indexing import *  # noqa: F403
from .joining import *  # noqa: F403
from .logic import *  # noqa: F403
from .matrices import *  # noqa: F403
from .nan_reductions import *  # noqa: F403
from .padding import *  # noqa: F403
from .polynomials import *  # noqa: F403
from .products import *  # noqa: F403
from .random_numbers import *  # noqa: F403
from .reductions import *  # noqa: F403
from .sets import *  # noqa: F403
from .shapes import *  # noqa: F403
from .statistics import *  # noqa: F403
from .trigonometry import *  # noqa: F403

FAMILIES = (
    calculus,
    creation,
    dtypes,
    elementwise,
    grids,
    indexing,
    joining,
    logic,
    matrices,
    nan_reductions,
    padding,
    polynomials,
    products,
    random_numbers,
    reductions,
    sets,
    shapes,
    statistics,
    trigonometry,
)
__all__ = [name for family in FAMILIES for name in family.__all__]
__all__ += ["fft"]

for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = _refusing(globals()[_name], __name__)
