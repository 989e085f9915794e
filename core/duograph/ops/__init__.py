"""The package of all ops: functions, primitive classes and Tensor methods, listed by family.

Users call its functions. Each family of ops is a module of this package. Most families are imported
with the package. The families in `_LATE` and all primitive classes are loaded only when a user
first asks for a name that is not yet defined, so that `import duograph` stays fast.
"""

from __future__ import annotations

import importlib
from types import FunctionType, ModuleType
from typing import Any

from .. import compat as _compat
from .. import op as _op
from .. import op_tables as _op_tables
from .._locks import importing as _importing
from .._locks import new_lock as _new_lock
from .._startup import without_collections as _without_collections
from ..autodiff.bprop_registry import bprop_getters as _rules
from ..backend import registry as _registry
from ..execution import eager as _eager
from ..tensor import Tensor
from . import (
    activation,
    adaptive_pooling,
    aliases,
    attention,
    axis_scattering,
    banded_diagonals,
    batch_normalization,
    bessel,
    channels_last,
    combinations,
    comparison,
    complex_numbers,
    convolution,
    convolution_functions,
    creation,
    creation_functions,
    creation_ranges,
    ctc,
    custom,
    decompositions,
    detection,
    diagonals,
    distributions,
    division,
    dropouts,
    elementwise,
    error_functions,
    exponential,
    extensions,
    extremes,
    factorizations,
    fourier,
    gather_scatter,
    gathering,
    grid_sampling,
    histograms,
    hyperbolic,
    incomplete_gamma,
    indexing,
    inplace,
    inplace_indexing,
    joining,
    linalg,
    linalg_contractions,
    linear_systems,
    logic,
    loss,
    margin_loss,
    matrices,
    matrix_svd,
    more_primitives,
    movement,
    nn_functions,
    normalization,
    norms,
    number_theory,
    optimizer,
    padding,
    pooling,
    pooling_functions,
    powers,
    primitive,
    random,
    random_choices,
    random_functions,
    rectifiers,
    recurrent,
    reduction,
    reduction_functions,
    repeating,
    rolling,
    rounding,
    scan,
    scattering,
    segment_primitives,
    segments,
    shaping,
    sharding_constraint,
    size_methods,
    softmax_ops,
    sorting,
    sparse_functions,
    sparse_tensors,
    special,
    state,
    statistics,
    storage,
    tensor_types,
    transfers,
    trigonometry,
    value_sizes,
)
from .creation import cast
from .methods import install as _install
from .primitive import (
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    prim_arg_register,
    prim_attr_register,
)
from .primitive import spelled_classes as _spelled_classes
from .refusals import refusing

# One family a line; its `__all__` becomes part of duograph.ops. `FAMILIES` has the late ones too.
_EARLY = (
    creation,
    elementwise,
    movement,
    gather_scatter,
    reduction,
    reduction_functions,
    extremes,
    linalg,
    linalg_contractions,
    softmax_ops,
    detection,
    matrices,
    matrix_svd,
    nn_functions,
    grid_sampling,
    scan,
    ctc,
    custom,
    loss,
    margin_loss,
    statistics,
    norms,
    state,
    normalization,
    batch_normalization,
    random,
    random_choices,
    dropouts,
    distributions,
    convolution,
    convolution_functions,
    pooling,
    pooling_functions,
    adaptive_pooling,
    channels_last,
    logic,
    comparison,
    rounding,
    division,
    exponential,
    powers,
    error_functions,
    trigonometry,
    hyperbolic,
    complex_numbers,
    activation,
    inplace,
    optimizer,
    recurrent,
    shaping,
    sharding_constraint,
    joining,
    creation_functions,
    creation_ranges,
    diagonals,
    banded_diagonals,
    padding,
    sorting,
    gathering,
    scattering,
    axis_scattering,
    indexing,
    special,
    aliases,
    combinations,
    rectifiers,
    inplace_indexing,
    rolling,
    repeating,
    size_methods,
    tensor_types,
    transfers,
    value_sizes,
    segments,
    attention,
    fourier,
    bessel,
    incomplete_gamma,
    histograms,
    number_theory,
    decompositions,
    linear_systems,
    factorizations,
    sparse_tensors,
    sparse_functions,
    more_primitives,
    segment_primitives,
    random_functions,
    storage,
)

# Families of functions and primitive classes alone, imported late.
_LATE = (
    "adam_primitives",
    "attention_functions",
    "candidate_sampling",
    "collective",
    "convolution_primitives",
    "data_formats",
    "deformable",
    "distances",
    "einstein",
    "fourier_axes",
    "higher_order",
    "image_colors",
    "instance_normalization",
    "linalg_primitives",
    "loops",
    "loss_primitives",
    "lstm",
    "movement_primitives",
    "normalization_primitives",
    "optimizer_primitives",
    "pooling_primitives",
    "random_primitives",
    "reduction_primitives",
    "scalar_functions",
    "sequence_primitives",
    "signal",
    "slicing",
    "sparse_optimizer_primitives",
    "unpooling",
)
_late_lock = _new_lock()
_public = {"Primitive", "Tensor"}


def _export(family: ModuleType) -> None:
    """Copy the public names of an op family, a module, into this package's namespace."""
    _public.update(family.__all__)
    for name in family.__all__:
        value = getattr(family, name)
        if isinstance(value, _op.Op) and value.has_normaliser:
            value = value.public
        if isinstance(value, FunctionType):
            value = refusing(value, public_name=f"{__name__}.{name}")
        elif isinstance(value, _op.Op) and value.name != name:
            value = value.alias_function(name, __name__)
        elif isinstance(value, _op.Op):
            value.call_name = name
        globals()[name] = value


for _family in _EARLY:
    _export(_family)
# name -> function of every method and operator that Tensor got from the op table
installed_methods = _install(Tensor, _EARLY)
_registry.on_plugin.append(extensions.check)
_registry.on_backend.append(extensions.check_backend)
_registry.on_unregistered.append(_op_tables.rules_changed)
_registry.on_disabled.append(extensions.withdraw)


def _public_name(name: str) -> object:
    """Return the object that users find as ``duograph.ops.NAME``, or None if there is none."""
    try:
        return globals()[name] if name in globals() else __getattr__(name)
    except AttributeError:
        return None


_rules.public_names = _public_name


class _Late:
    """The state of lazy loading: whether the late families were imported already."""

    def __init__(self) -> None:
        self.begun = False

    def load(self) -> None:
        """Import the late op families and create all primitive classes, in the first call only."""
        with _late_lock:  # another thread waits until the names are there
            if self.begun:
                return
            self.begun = True
            try:
                with _importing, _without_collections():
                    families = [importlib.import_module(f"{__name__}.{n}") for n in _LATE]
                    for family in families:
                        _export(family)
                    every = (*_EARLY, *families)
                    classes = _spelled_classes(every)
                    globals().update(classes, FAMILIES=every)
                    _public.update(classes)
            except BaseException:
                self.begun = False
                raise


_late = _Late()


def __getattr__(name: str) -> Any:
    """Return the attribute `name` of the package when it is not yet in its namespace.

    It first loads the late families, and looks there. If they do not have the name, it looks for an
    op that a plugin registered, and at last for the replacement of a name that MindSpore has
    removed. Raises AttributeError if none has the name.
    """
    if name == "__all__":
        _late.load()
        return sorted(_public)
    if name.startswith("__"):
        raise AttributeError(f"module 'duograph.ops' has no attribute {name!r}")
    _late.load()
    if name in globals():
        return globals()[name]
    _registry.entries()  # loads the plugins
    found: Any = _op.OPS.get(name)
    if found is None or found.graph_only:
        return _compat.serve("ops", name)
    return found


def __dir__() -> list[str]:
    """Return the sorted names of the package, with those of the lazily loaded families."""
    _late.load()
    return sorted(globals())
