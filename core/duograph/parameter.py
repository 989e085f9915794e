"""Parameters: named Tensors that Cells own and optimisers write.

A Parameter is a Tensor with a name and flags. Cells in `nn` collect Parameters, and checkpoints
store them. The module must not import Cells, which are built on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .backend.protocol import Handle
from .call_names import replace_head
from .common.initializer import Initializer, initializer
from .errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceError,
    DTypeError,
    DuographError,
    GradientError,
    ShapeError,
    UnsupportedOpError,
)
from .host_arrays import Array
from .ir.basic_ops import cast_to
from .ops.movement import identity
from .option_checks import check_options
from .placement import materialise
from .recorded_tensors import is_recorded
from .runtime_state import runtime_state, staged_builder
from .sharding.layouts import Placement
from .sharding.mode import dividing, own_rank
from .tensor import Tensor, host_array

__all__ = ["Parameter", "ParameterTuple", "Part", "whole_type"]

if TYPE_CHECKING:
    from .types import TensorType

Value: TypeAlias = "Tensor | Array | float | Iterable[object]"
Init: TypeAlias = "Initializer | Tensor | str | float"


@dataclasses.dataclass(frozen=True)
class Part:
    """Description of the part of a tensor that a Parameter of one rank holds; checkpoints store it.

    Attributes:
        shape: shape of the whole tensor.
        rank, size: number of the rank that holds the part, and number of ranks.
    """

    shape: tuple[int, ...]
    rank: int
    size: int


class Parameter(Tensor):
    """A named Tensor that a Cell owns (`mindspore.Parameter`).

    Args:
        default_input: Tensor, number, list or NumPy array with the initial value; it is copied. A
            Parameter is a variable of its own: no gradient flows to what it was made from.
        name: name in checkpoints; if None, a Cell sets it to the name of the attribute.
        requires_grad: whether `trainable_params` and so optimisers include it.
        device: where the value is put, such as ``"CPU"``.

    The other options of MindSpore have no meaning here, and one warning says so.

    Raises:
        GradientError: `default_input` is, or contains, a Tensor that is being differentiated.

    Assignment in place, `set_data`, optimisers and `load_param_into_net` replace the value. A
    Tensor that was read before keeps the old one.

    Examples:
        >>> import duograph as ms
        >>> ms.Parameter(ms.Tensor([1.0]), name="w")
        Parameter (name=w, shape=(1,), dtype=Float32, requires_grad=True)
    """

    # levels of the derivatives that record the Parameter now, and its edge on their tapes
    _recording: tuple[int, ...] = ()
    _leaf: Any = None
    part: Part | None = None  # set where it holds one rank's part of a tensor
    # How the value is divided among ranks: `_plan` is what the user asks for, `_placement` that of
    # a Parameter of which this rank holds a part.
    _plan: Placement | None = None
    _placement: Placement | None = None

    def __init__(
        self,
        default_input: Value,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if layerwise_parallel or storage_format:
            check_options(
                "Parameter", layerwise_parallel=layerwise_parallel, storage_format=storage_format
            )
        if isinstance(default_input, Tensor) and default_input.has_init:
            self._type = default_input._type
            self._init = default_input._init
            self._buf = None
        elif isinstance(default_input, Tensor):
            value = default_input
            _check_initial(value)
            if value._type.device is None:
                super().__init__(value, device=device)
            else:  # buffers are immutable, so sharing one is safe
                self._buf = value._buf
                self._type = value._type.on(value._type.device)
        else:
            if isinstance(default_input, str):
                raise DTypeError(
                    f"Parameter: got the text {default_input!r} (a str); wanted a Tensor or "
                    f"numbers. A name of an initializer needs a shape: "
                    f"ms.common.initializer.initializer({default_input!r}, shape)"
                )
            try:
                super().__init__(default_input, device=device)
            except DuographError as error:
                replace_head(error, "Tensor", "Parameter")
                raise
            _check_initial(self)
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"Parameter: got name={name!r}; wanted a string or None")
        self._name = name if name is not None else "Parameter"
        self._named = name is not None
        self._requires_grad = _flag("requires_grad", requires_grad)
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value.

        For a Parameter that is divided among ranks, this is the shape of this rank's part. Code
        that is being compiled sees the shape of the whole tensor instead.
        """
        if self._placement is None or staged_builder() is None:
            return self._type.shape
        return whole_type(self).shape

    def asnumpy(self) -> Array:
        """Return the value as a read-only NumPy array, as `Tensor.asnumpy` does.

        Raises:
            DeviceError: the Parameter belongs to another stage of the pipeline.
        """
        placement = self._placement
        if placement is not None and placement.elsewhere is not None:
            raise DeviceError(
                f"Parameter {self.name}: it is on stage {placement.elsewhere} of the pipeline, and "
                "this rank is on another; wanted parallel.gathered(parameter), which all ranks call"
            )
        return super().asnumpy()

    @property
    def name(self) -> str:
        """The Parameter's name, under which checkpoints store it; can be set."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        if not isinstance(value, str) or not value:
            raise ArgumentValueError(f"Parameter.name: got {value!r}; wanted a non-empty string")
        self._name = value
        self._named = True
        runtime_state.cells_version += 1

    @property
    def requires_grad(self) -> bool:
        """Whether the Parameter is trainable, so that optimisers update it; can be set."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._requires_grad = _flag("requires_grad", value)
        runtime_state.cells_version += 1

    def requires_grad_(self, requires_grad: bool = True) -> None:
        """Set whether the Parameter is trainable, so that optimisers update it."""
        self.requires_grad = requires_grad

    def set_data(self, data: Value, slice_shape: bool = False) -> Parameter:
        """Replace the value of a Parameter.

        Args:
            data: the new value, of the same shape; it is cast to the dtype of the Parameter. For a
                Parameter that is divided among ranks, it may also be the whole value, from which
                the rank takes its part.
            slice_shape: whether to allow another shape.

        Raises:
            ValueError: another shape, without `slice_shape`.
        """
        value = data if isinstance(data, Tensor) else Tensor(data)
        builder = staged_builder()
        placement = self._placement
        divided = placement is not None and builder is None and value.shape != self.shape
        if placement and divided and value.shape == placement.whole_shape(self.shape):
            value = Tensor(value.asnumpy()[placement.part(value.shape, own_rank())])
        if value.shape != self.shape and not slice_shape:
            raise ShapeError(
                f"Parameter {self.name}: set_data got shape {value.shape}, wanted {self.shape} "
                f"(slice_shape=True allows another)"
            )
        own = self.dtype
        if value.dtype is not own:
            if value.dtype.kind in "fc" and own.kind in "biu":
                raise ArgumentError(
                    f"Parameter {self.name}: set_data got {value.dtype.name}, which "
                    f"{own.name} cannot hold; wanted value.astype(ms.{own.name}), or a Parameter "
                    "of a floating dtype"
                )
            if value._type.level or builder is not None:
                value = cast_to(value, own)
            else:
                value = Tensor(host_array(value, own))
        if builder is not None:
            builder.write_state(self, value)
            return self
        if value._type.device is None:
            value = Tensor(value)  # a copy, because host data may change later
        device = self._type.device
        if device is not None and value._type.device is not device:
            value = value.move_to(repr(device)) if value._type.device else value
        self._rebind(value)
        return self

    def assign_value(self, value: Value) -> Parameter:
        """Replace the value of a Parameter; the MindSpore 1.x name of `set_data`."""
        return self.set_data(value)

    def value(self) -> Tensor:
        """Return the Parameter's present value as a Tensor; later writes do not change that Tensor.

        Gradients flow through it to the Parameter.
        """
        if staged_builder() is not None or is_recorded(self):
            return identity(self)
        return Tensor._make(self._type.on(self._type.device), self._host_or_handle())

    def _after_write(self) -> Tensor:
        """Return the result of an in-place method that wrote to this Parameter: its value."""
        return self.value()

    def _host_or_handle(self) -> Array | Handle:
        """Return the Parameter's buffer handle, or its NumPy array if it is on no device yet."""
        if self._type.device is None:
            materialise(self)
        return self._buf

    @property
    def data(self) -> Parameter:
        """This Parameter itself: unlike other frameworks', `p.data` is no separate Tensor.

        Setting it replaces the value, with shape and dtype.
        """
        return self

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"Parameter {self.name}: got {type(value).__name__} for data; wanted a Tensor"
            )
        if value is not self:
            self._rebind(value if staged_builder() is not None else Tensor(value))

    inited_param: Tensor | None = None

    # MindSpore's Parameter has other arguments than its Tensor
    def init_data(  # type: ignore[override]
        self, layout: object = None, set_sliced: bool = False
    ) -> Parameter:
        """Compute the value of a Parameter created with an initializer; return the Parameter.

        Nothing is computed if the Parameter has its value already. `set_sliced` has no effect.

        Raises:
            RuntimeError: `layout` is given; ranks divide a Parameter by `parallel.shard`.
        """
        if layout is not None:
            raise UnsupportedOpError(
                "init_data: got a layout; ranks divide a Parameter by `parallel.shard`"
            )
        materialise(self)
        return self

    def clone(self, init: Init = "same") -> Parameter:
        """Return a new Parameter of the same name, shape, dtype and flags.

        With `init` "same", it gets a copy of the present value; otherwise `init` is an initializer
        or its name, which makes a new value.

        Raises:
            GradientError: `init` is ``"same"`` while the Parameter is being differentiated.
        """
        if isinstance(init, str) and init == "same":
            _check_initial(self)
            made = Parameter(Tensor(np.array(self.asnumpy()), self.dtype), self._name)
        else:
            made = Parameter(initializer(init, self.shape, self.dtype), self._name)
        made.requires_grad = self.requires_grad
        made.layerwise_parallel = self.layerwise_parallel
        made.parallel_optimizer = self.parallel_optimizer
        made.part = self.part
        return made.divided_like(self)

    def divided_like(self, other: Parameter) -> Parameter:
        """Mark the Parameter as divided among ranks in the way that `other` is; return it.

        Only the description of the division is copied from `other`; the value is not changed.
        """
        self._plan, self._placement = other._plan, other._placement
        return self

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self._name}, shape={self.shape}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )

    __str__ = __repr__

    def _title(self) -> str:
        return f"Parameter {self._name}{'' if self.requires_grad else ' (fixed)'} "

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (
            np.asarray(self.asnumpy()), self.dtype.name, self._name, self.requires_grad,
            self.layerwise_parallel, self.parallel_optimizer,
        )  # fmt: skip

    def __deepcopy__(self, memo: dict[int, object]) -> Parameter:
        made = self.clone()
        memo[id(self)] = made
        return made


def whole_type(tensor: Tensor) -> TensorType:
    """Return the type (dtype and shape, without a device) by which compiled code knows a tensor.

    For a Parameter that is divided among ranks, it is the type of the whole tensor if programs that
    are compiled now are partitioned among ranks, else the type of this rank's part.
    """
    placement = getattr(tensor, "_placement", None)
    if placement is None or dividing() is None:
        return tensor._type.plain
    return tensor._type.with_(shape=placement.whole_shape(tensor._type.shape))


def _check_initial(value: Tensor) -> None:
    """Raise GradientError if `value` is being differentiated.

    `value` is the initial value of a new Parameter, through which no gradient can flow.
    """
    if is_recorded(value):
        raise GradientError(
            "Parameter: got a Tensor that is being differentiated as the initial value, through "
            "which no gradient flows; wanted ops.stop_gradient(x), or the Parameter made outside"
        )


def _unpickle(array: Array, dtype: str, name: str, *flags: bool) -> Parameter:
    requires_grad, layerwise_parallel, parallel_optimizer = flags
    return Parameter(
        Tensor(array, dtype), name, requires_grad, layerwise_parallel, parallel_optimizer
    )


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"Parameter.{name}: got {value!r}; wanted True or False")
    return bool(value)


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of Parameters (`mindspore.ParameterTuple`).

    Raises:
        TypeError: an item is not a Parameter.
    """

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        if not isinstance(iterable, Iterable):
            raise ArgumentError(f"ParameterTuple: got {iterable!r}; wanted a list of Parameters")
        items = tuple(iterable)
        for x in items:
            if not isinstance(x, Parameter):
                raise ArgumentError(
                    f"ParameterTuple: got {type(x).__name__} among the items; wanted Parameters"
                )
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: Init = "same") -> ParameterTuple:
        """Return a tuple of copies of all Parameters; each copy's name is ``prefix.NAME``.

        With `init` "same", a copy gets the value of its original; otherwise `init` is an
        initializer or its name, which makes a new value.
        """
        if not isinstance(prefix, str) or not prefix:
            raise ArgumentValueError(f"ParameterTuple.clone: got prefix={prefix!r}; wanted a name")
        made = []
        for p in self:
            copy = p.clone(init)
            copy.name = f"{prefix}.{p.name}"
            made.append(copy)
        return ParameterTuple(made)
