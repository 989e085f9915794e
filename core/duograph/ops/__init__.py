"""The package of all ops: functions, primitive classes and Tensor methods, listed by family.

Users call its functions. Each family of ops is a module of this package.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from .. import compat as _compat
from .. import op as _op
from ..autodiff.bprop_registry import bprop_getters as _rules
from ..backend import registry as _registry
from ..execution import eager as _eager
from ..tensor import Tensor
from . import (
    activation,
    adaptive_pooling,
    aliases,
    attention,
    attention_functions,
    axis_scattering,
    bessel,
    channels_last,
    collective,
    combinations,
    comparison,
    complex_numbers,
    convolution,
    convolution_functions,
    convolution_primitives,
    creation,
    creation_functions,
    creation_ranges,
    ctc,
    data_formats,
    decompositions,
    detection,
    diagonals,
    distances,
    distributions,
    division,
    dropouts,
    einstein,
    elementwise,
    error_functions,
    exponential,
    extensions,
    extremes,
    factorizations,
    fourier,
    fourier_axes,
    gather_scatter,
    gathering,
    grid_sampling,
    higher_order,
    histograms,
    hyperbolic,
    image_colors,
    incomplete_gamma,
    indexing,
    inplace,
    inplace_indexing,
    joining,
    linalg,
    linalg_contractions,
    linalg_primitives,
    linear_systems,
    logic,
    loops,
    loss,
    loss_primitives,
    lstm,
    margin_loss,
    matrices,
    matrix_svd,
    more_primitives,
    movement,
    movement_primitives,
    nn_functions,
    normalization,
    normalization_primitives,
    norms,
    number_theory,
    optimizer,
    optimizer_primitives,
    padding,
    pooling,
    pooling_primitives,
    powers,
    primitive,
    random,
    random_primitives,
    rectifiers,
    recurrent,
    reduction,
    reduction_primitives,
    repeating,
    rolling,
    rounding,
    scalar_functions,
    scan,
    scattering,
    segments,
    shaping,
    signal,
    slicing,
    softmax_ops,
    sorting,
    sparse_functions,
    sparse_optimizer_primitives,
    sparse_tensors,
    special,
    state,
    statistics,
    tensor_types,
    transfers,
    trigonometry,
    unpooling,
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

# One family a line; its `__all__` becomes part of duograph.ops.
FAMILIES = (
    creation,
    elementwise,
    movement,
    gather_scatter,
    reduction,
    extremes,
    linalg,
    linalg_contractions,
    einstein,
    softmax_ops,
    detection,
    matrices,
    matrix_svd,
    nn_functions,
    grid_sampling,
    reduction_primitives,
    linalg_primitives,
    convolution_primitives,
    pooling_primitives,
    normalization_primitives,
    random_primitives,
    data_formats,
    lstm,
    collective,
    scan,
    ctc,
    loss,
    loss_primitives,
    margin_loss,
    statistics,
    norms,
    state,
    normalization,
    random,
    dropouts,
    distributions,
    convolution,
    convolution_functions,
    pooling,
    adaptive_pooling,
    channels_last,
    higher_order,
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
    joining,
    creation_functions,
    creation_ranges,
    diagonals,
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
    movement_primitives,
    rolling,
    repeating,
    tensor_types,
    transfers,
    value_sizes,
    segments,
    slicing,
    attention,
    attention_functions,
    fourier,
    fourier_axes,
    bessel,
    incomplete_gamma,
    distances,
    histograms,
    number_theory,
    scalar_functions,
    signal,
    decompositions,
    linear_systems,
    factorizations,
    sparse_tensors,
    sparse_functions,
    loops,
    more_primitives,
    optimizer_primitives,
    sparse_optimizer_primitives,
    unpooling,
    image_colors,
)

for _family in FAMILIES:
    for _name in _family.__all__:
        _value = getattr(_family, _name)
        if isinstance(_value, _op.Op) and _value.has_normaliser:
            _value = _value.public
        globals()[_name] = refusing(_value) if isinstance(_value, FunctionType) else _value
globals().update(_spelled_classes(FAMILIES))
# name -> function of every method and operator that Tensor got from the op table
installed_methods = _install(Tensor, FAMILIES)
_registry.on_plugin.append(extensions.check)
_registry.on_disabled.append(extensions.withdraw)


def _public_name(name: str) -> object:
    """Return the object that users find as ``duograph.ops.NAME``, or None."""
    try:
        return globals()[name] if name in globals() else __getattr__(name)
    except AttributeError:
        return None


_rules.public_names = _public_name


def __getattr__(name: str) -> Any:
    """Return an op of a plugin, or the op that has replaced an old name of MindSpore's."""
    if name.startswith("__"):
        raise AttributeError(f"module 'duograph.ops' has no attribute {name!r}")
    _registry.entries()  # loads the plugins
    found: Any = _op.OPS.get(name)
    if found is None or found.graph_only:
        return _compat.serve("ops", name)
    return found
