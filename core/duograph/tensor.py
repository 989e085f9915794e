"""The Tensor class: a reference, which can change, to an immutable, dense, C-ordered buffer.

Assignment in place, `x[i] = v` and methods such as `add_` give the tensor another buffer, so
buffers saved for gradients never change. This module has construction, and conversion to Python and
NumPy; `ops/__init__.py` installs operators and most methods from the op table. It must not depend
on particular ops.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .backend import registry
from .backend.checked_calls import from_device
from .backend.dlpack import HOST, source_of
from .backend.dlpack import array_of as array_of_dlpack
from .backend.dlpack import device_of as dlpack_device_of
from .backend.views import dense_strides
from .device_copies import Shared, imported
from .dtype import EXTENSIONS, DType, as_dtype, int4
from .errors import ArgumentError, ArgumentValueError, DTypeError, UnsupportedOpError
from .host_arrays import Array, array_of, item_of, python_number
from .initial_values import Initializer, check_data_options, initial_value, uninitialised_text
from .option_checks import check_options
from .pages import notebook
from .placement import (
    Arriving,
    commit,
    commit_lock,
    device_of,
    materialise,
    release,
    settle,
    watched,
)
from .recorded_tensors import check_reader, is_recorded, recorded_value
from .runtime_state import runtime_state, staged_builder, thread_state
from .symbol import Symbol
from .tensor_class import TensorClass
from .tensor_printing import tensor_html, tensor_text
from .types import TensorType

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._tensor_methods import TensorMethods
    from .autodiff.tape import Hook
    from .backend.prepared import Handle
    from .dtype import DTypeLike
else:
    TensorMethods = object  # the methods are installed from the op table

__all__ = ["Tensor", "from_numpy", "is_tensor", "tensor"]


class Tensor(TensorMethods, metaclass=TensorClass):
    """An n-dimensional array on a device (`mindspore.Tensor`).

    Args:
        input_data: number, (nested) list or tuple, NumPy array, or Tensor. The values are copied.
            Gradients flow to the Tensors among them.
        dtype: element type. The default depends on the data: int64 for Python ints, float32 for
            floats, and the array's own dtype for NumPy arrays.
        shape: with `init` the shape of the tensor; otherwise it must equal the shape of the data.
        init: an Initializer, which runs at the first use or in `init_data()`.
        device: name of the device to copy the data to immediately; by default the data is copied to
            the device of the first op that uses it.

    Raises:
        TypeError: the data cannot be made a tensor.
        ValueError: shape and data do not agree.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([[1, 2], [3, 4]], ms.float32)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  2.00000000e+00],
         [ 3.00000000e+00,  4.00000000e+00]])
    """

    # _buf: a device handle, or a NumPy array while the data is on the host only (type.device is
    # None); _edge: node or leaf of the tape (recorded tensors only); _hooks: gradient hooks of a
    # tensor that is not recorded; _init: an Initializer that has not run.
    __slots__ = ("_type", "_buf", "_edge", "_hooks", "_init", "__weakref__")
    __array_priority__ = 1000.0

    _type: TensorType
    _buf: Handle
    _edge: Any
    _hooks: list[Hook]
    _init: Any

    def __init__(
        self,
        input_data: object = None,
        dtype: DTypeLike | None = None,
        shape: int | Sequence[int | Symbol | None] | None = None,
        init: Initializer | str | float | None = None,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        wanted = None if dtype is None else as_dtype(dtype)
        if input_data is None:
            self._type, self._init = initial_value(wanted, shape, init)
            self._buf = None
        else:
            if runtime_state.derivatives and _holds_recorded(input_data):
                self._take(recorded_value(input_data, wanted), device)
            else:
                self._buf = array = host_array(input_data, wanted)
                self._type = TensorType.of(array.shape, as_dtype(array.dtype))
            if shape is not None or init is not None:
                check_data_options(self._type.shape, shape, init)
        if const_arg:
            check_options("Tensor", const_arg=const_arg)
        if device is not None:
            commit(self, device_of(device))
        builder = staged_builder()
        if builder is not None:
            builder.made(self)

    def _take(self, made: Tensor, device: str | None) -> None:
        """Take the buffer, type and tape edge of another tensor, moved to `device` if given.

        The tape edge says where the gradient tape recorded the tensor.
        """
        if device is not None:
            made = made.move_to(device)
        self._buf, self._type = made._buf, made._type
        if made._type.level:
            self._edge = made._edge

    # ---- making tensors without checks --------------------------------------------------------

    @classmethod
    def _make(cls, type_: TensorType, buf: Handle) -> Tensor:
        """Create a tensor from a type and a buffer handle or host array, without any checks."""
        made = object.__new__(Tensor)
        made._type = type_
        made._buf = buf
        return made

    def _rebind(self, other: Tensor) -> None:
        """Take the buffer, type and tape edge of another tensor, as in-place writes do.

        The tape edge says where the gradient tape recorded the tensor.
        """
        builder = staged_builder()
        if builder is not None:
            builder.write_state(self, other)
            return
        if other._type.device is None:
            materialise(other)
        elif other._type.level:
            other = other.value()  # of a Parameter, whose leaf belongs to the Parameter alone
        if watched:
            release(self._buf)
        self._buf = other._buf
        self._type = other._type
        runtime_state.bindings_version = object()
        if other._type.level:
            self._edge = other._edge
            thread_state.recorded_writes[id(self)] = weakref.ref(self)
        elif hasattr(self, "_edge"):
            del self._edge
        if hasattr(self, "_init"):
            del self._init

    def _after_write(self) -> Tensor:
        """Return this tensor, as the result of an in-place method that has just written to it.

        `Parameter` overrides this method to return a new Tensor with its value.
        """
        return self

    # ---- properties ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor: the length of each axis."""
        return self._type.shape

    @property
    def dtype(self) -> DType:
        """The element type of the tensor."""
        return self._type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the tensor."""
        return len(self._type.shape)

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return self._type.size

    @property
    def itemsize(self) -> int:
        """The size in bytes of one element of the tensor."""
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size in bytes of all elements of the tensor."""
        return self._type.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in bytes between neighbours along each axis; buffers are dense and C-ordered."""
        itemsize = self._type.dtype.itemsize
        return tuple([n * itemsize for n in dense_strides(self._type.shape)])

    @property
    def device(self) -> str:
        """The tensor's device, such as ``"CPU:0"``, or the current one for data on no device."""
        if hasattr(self, "_init") and isinstance(self._init, Arriving):
            return repr(self._init.device)
        return repr(self._type.device or registry.current_device())

    @property
    def has_init(self) -> bool:
        """True until the Initializer of a tensor made with `init` has run."""
        return hasattr(self, "_init") and not isinstance(self._init, Arriving)

    def dim(self) -> int:
        """Return the number of axes of the tensor."""
        return len(self._type.shape)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements of the tensor."""
        return self._type.size

    nelement = numel

    def is_contiguous(self) -> bool:
        """Return True: every buffer is dense and C-ordered."""
        return True

    def contiguous(self) -> Tensor:
        """Return the tensor itself: every buffer is dense and C-ordered."""
        return self

    def is_floating_point(self) -> bool:
        """Return whether the tensor's dtype is floating-point."""
        return self._type.dtype.is_floating

    def is_complex(self) -> bool:
        """Return whether the tensor's dtype is complex."""
        return self._type.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the tensor's dtype has negative values."""
        return self._type.dtype.kind in "ifc"

    # ---- values -------------------------------------------------------------------------------

    def asnumpy(self) -> Array:
        """Return the values as a C-contiguous NumPy array; waits for the device.

        The array is a constant of every derivative: no gradient flows through it. The same holds
        for `item`, `tolist`, `float(x)`, DLPack and pickle, which are made of it.

        On the CPU the array shares the tensor's memory: a write to it changes the tensor and all
        tensors that share the buffer, such as a reshape. Copy the array to avoid this. bfloat16
        values have the dtype `ml_dtypes.bfloat16`.

        Examples:
            >>> import duograph as ms
            >>> ms.Tensor([1.0, 2.0]).asnumpy()
            array([1., 2.], dtype=float32)
        """
        if self._type.level:
            check_reader(self)
        return self._values()

    numpy = asnumpy

    def _values(self) -> Array:
        """Return the tensor's data as a NumPy array, as `asnumpy` does, without its checks."""
        builder = staged_builder()
        if builder is not None:
            builder.look_at(self)
        type_ = self._type
        if type_.device is None:
            with commit_lock:
                if self._type.device is None:
                    materialise(self)
                    return self._buf
            type_ = self._type
        device = type_.device
        assert device is not None
        handle = self._buf
        if watched:
            release(handle)
        return from_device(
            registry.backend(device.name), handle, type_.shape, type_.dtype.np, device.index
        )

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """Return the tensor's only element, or the element at an index, as a Python number.

        An int index counts the elements of the flattened tensor.

        Raises:
            ValueError: more than one element and no index.
            TypeError: an index that is neither an int nor a tuple of ints.
            IndexError: no element is at the index.
        """
        array = self.asnumpy()
        if index is None and array.size == 1:
            return python_number(array)
        return item_of(array, index)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers; of a 0-d tensor, the number."""
        array = self.asnumpy()
        if array.dtype in EXTENSIONS:
            array = array.astype(np.int8 if array.dtype == int4.np else np.float32)
        return array.tolist()

    def _attribute_value(self) -> Any:
        """Return the value of a tensor that was passed as an op's attribute, as Python numbers."""
        return self.tolist()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self.asnumpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentValueError(
                    f"__array__: got copy=False and dtype={np.dtype(dtype)} for a tensor of dtype "
                    f"{self._type.dtype.name}; wanted its own dtype, or a copy"
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> object:
        """Return a DLPack capsule of the tensor.

        The capsule shares the memory on the tensor's device if the backend can do that; otherwise
        it holds a copy on the host. `options` are those of the array API standard: `stream`,
        `max_version`, `dl_device` and `copy`.
        """
        return self._shared().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._shared().__dlpack_device__()

    def _shared(self) -> Shared:
        """Return the tensor's memory as an object with ``__dlpack__``.

        Raises:
            GradientError: framework code would read a tensor that a gradient tape records, so that
                no gradient would flow through it.
        """
        if self._type.level:
            check_reader(self)
        builder = staged_builder()
        if builder is not None:
            builder.look_at(self)
        settle(self)
        if self._type.device is None:
            with commit_lock:
                materialise(self)
        if watched:
            release(self._buf)
        return Shared(self._type, self._buf)

    @staticmethod
    def from_dlpack(dlpack: object) -> Tensor:
        """Return a tensor that shares the memory of an object with `__dlpack__`, or of a capsule.

        Memory of the host becomes host data, which is copied if it is read-only or not dense.
        Memory of another kind is used without a copy, if possible, by the current device or, if
        that cannot, by the first device that can.

        Raises:
            BufferError: no device here can use the memory.
            TypeError: `dlpack` is no such object, or its elements have a type that duograph lacks.
        """
        source = source_of(dlpack)
        where = dlpack_device_of(source)
        if where == HOST:
            return from_numpy(array_of_dlpack(source))
        return Tensor._make(*imported(source, where))

    @staticmethod
    def from_numpy(array: Array) -> Tensor:
        """Return a tensor that shares the memory of a NumPy array.

        An array that is not C-contiguous, not writable or not in native byte order is copied
        instead.
        """
        return from_numpy(array)

    def __float__(self) -> float:
        return float(self._one("float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __index__(self) -> int:
        if self._type.dtype.kind not in "iub" or self._type.size != 1:
            raise ArgumentError(
                f"index: got a {self._type.dtype.name} tensor of shape {self.shape}; "
                f"wanted one integer element"
            )
        return int(self._one("index"))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __bool__(self) -> bool:
        if self._type.size == 0:
            raise ArgumentValueError(
                f"bool: got an empty tensor of shape {self.shape}; wanted one element"
            )
        return bool(self._one("bool"))

    def _one(self, what: str) -> Any:
        """Return a one-element tensor's value as a Python number; errors begin with `what`."""
        if self._type.size != 1:
            raise ArgumentValueError(
                f"{what}: got a tensor of shape {self.shape}; "
                + (
                    "the truth of several elements is ambiguous, wanted one element (use .any(), "
                    ".all() or an index)"
                    if what == "bool"
                    else "wanted one element (.mean(), .sum() or an index such as [0] gives one)"
                )
            )
        return python_number(self.asnumpy())

    def __len__(self) -> int:
        if not self._type.shape:
            raise ArgumentError(
                "len: got a 0-d tensor; wanted at least one axis (a single number has no length; "
                "its .size is 1)"
            )
        return self._type.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._type.shape:
            raise ArgumentError(
                "iter: got a 0-d tensor; wanted at least one axis. It is one number, which cannot "
                "be looped over or unpacked: use it without a loop, or float(...) of it (max, min "
                "and median give two results with an axis)"
            )
        return (self[i] for i in range(self._type.shape[0]))

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        if self.has_init and self._buf is None:
            return self.__repr__()
        return str(self._values())

    def __repr__(self) -> str:
        type_ = self._type
        if self.has_init and self._buf is None:
            return uninitialised_text(type_, self._init)
        return tensor_text(self._values(), type_.dtype)

    def _repr_html_(self) -> str:
        """Return the HTML with which a notebook shows the tensor."""
        type_ = self._type
        if self.has_init and self._buf is None:
            title = f"{self._title()}{type_.shape}, {type_.dtype.name}"
            return notebook.heading(title) + notebook.line(f"will be made by {self._init}")
        place = "" if type_.device is None else f" on {type_.device}"
        title = f"{self._title()}{type_.shape}, {type_.dtype.name}{place}"
        return tensor_html(title, self._values(), type_.dtype)

    def _title(self) -> str:
        return "Tensor "

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self._type.size == 1:
            return format(self.item(), spec)
        raise ArgumentError(
            f"format: got a tensor of shape {self.shape} with the format {spec!r}; "
            f"wanted one element"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self.asnumpy(), self._type.dtype.name)

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        made = Tensor(self)
        memo[id(self)] = made
        return made

    # ---- initial values -----------------------------------------------------------------------

    def init_data(
        self, slice_index: int | None = None, shape: object = None, opt_shard_group: object = None
    ) -> Tensor:
        """Run the Initializer of a tensor made with `init`, if it has not run; return the tensor.

        Raises:
            RuntimeError: an argument is given, which asks for a slice of the tensor; ranks divide
                tensors by `parallel.shard`.
        """
        given = {"slice_index": slice_index, "shape": shape, "opt_shard_group": opt_shard_group}
        for name, value in given.items():
            if value is not None:
                raise UnsupportedOpError(
                    f"init_data: got {name}={value!r}; wanted None, since the whole tensor is made "
                    "(ranks divide tensors by `parallel.shard`)"
                )
        if self.has_init:
            materialise(self)
        return self

    def value(self) -> Tensor:
        """Return the tensor itself; `Parameter.value` returns a new Tensor."""
        return self


def _holds_recorded(data: object) -> bool:
    """Return whether data for a new tensor is, or contains, a tensor that a tape records."""
    if isinstance(data, Tensor):
        return bool(data._type.level) and is_recorded(data)
    return isinstance(data, (list, tuple)) and any(map(_holds_recorded, data))


def host_array(data: object, dtype: DType | None) -> Array:
    """Convert data that may contain tensors to a new C-contiguous NumPy array of a dtype.

    With None, the dtype follows from the data.

    Raises:
        DTypeError: `data` is not made of numbers.
        ArgumentValueError: a ragged sequence, or an int of more than 64 bits.
    """
    if isinstance(data, Tensor):
        return np.array(data.asnumpy(), dtype=None if dtype is None else dtype.np, order="C")
    return array_of(_with_arrays(data), dtype, type(data).__name__)


def _with_arrays(data: object) -> object:
    """Return `data` with the tensors inside nested sequences replaced by NumPy arrays.

    The sequences are copied to lists.
    """
    if isinstance(data, Tensor):
        return data.asnumpy()
    if isinstance(data, (list, tuple)):
        return [_with_arrays(v) for v in data]
    return data


def _unpickle(array: Array, dtype: str) -> Tensor:
    return Tensor(array, dtype)


def tensor(
    input_data: object = None,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int | Symbol | None] | None = None,
    init: Initializer | str | float | None = None,
    const_arg: bool = False,
    device: str | None = None,
) -> Tensor:
    """Return a new Tensor; the arguments are those of the class (`mindspore.tensor`).

    Examples:
        >>> import duograph as ms
        >>> ms.tensor(3.5).dtype
        duograph.float32
    """
    return Tensor(input_data, dtype, shape, init, const_arg, device)


def from_numpy(array: Array) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array (`mindspore.from_numpy`).

    An array that is not C-contiguous, not writable or not in native byte order is copied instead.

    Raises:
        TypeError: `array` is not a NumPy array of numbers.
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy: got {type(array).__name__}; wanted a NumPy array")
    if not array.flags.c_contiguous or not array.flags.writeable or not array.dtype.isnative:
        return Tensor(array)
    return Tensor._make(TensorType.of(array.shape, as_dtype(array.dtype)), array)


def is_tensor(obj: object) -> bool:
    """Return whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)
