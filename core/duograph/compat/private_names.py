"""Private names of MindSpore that published packages import.

Programs import them by MindSpore's paths, as in `from mindspore.parallel._utils import
_get_device_num`, which `paths.PATHS` maps to this module; nothing in duograph imports it. Each name
does what those packages need of it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

from .. import communication, context
from ..common.initializer import _fans
from ..errors import UnsupportedOpError
from ..execution.device import synchronize
from ..nn import Cell
from ..ops import constexpr

F = TypeVar("F", bound=Callable[..., object])


# ---- parallel._utils ---------------------------------------------------------------------------


def _get_parallel_mode() -> object:
    """Return the setting `parallel_mode` of `set_auto_parallel_context`, default "stand_alone"."""
    return context.get_auto_parallel_context("parallel_mode")


def _get_device_num() -> int:
    """Return the number of processes."""
    return communication.get_group_size()


def _get_global_rank() -> int:
    """Return the rank of this process."""
    return communication.get_rank()


def _get_gradients_mean() -> bool:
    """Return the setting `gradients_mean`: whether ranks average their gradients or add them."""
    return bool(context.get_auto_parallel_context("gradients_mean"))


def _get_pipeline_stages() -> int:
    """Return the setting `pipeline_stages`: into how many stages a pipeline divides a network."""
    return int(context.get_auto_parallel_context("pipeline_stages"))


def _is_sharding_propagation() -> bool:
    """Return False; MindSpore returns whether shardings propagate from marked ops to others."""
    return False


def _is_pynative_parallel() -> bool:
    """Return False; MindSpore returns whether eager code runs on several devices."""
    return False


# ---- optimisers and Cells ----------------------------------------------------------------------


def opt_init_args_register(fn: F) -> F:
    """Decorate the `__init__` of an optimiser so that the optimiser keeps its arguments.

    They are kept in `init_params` (the parameters), `init_learning_rate`, and `init_args` (the
    rest).
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Any, *args: object, **kwargs: object) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        for name, kind in signature.parameters.items():
            if kind.kind is kind.VAR_KEYWORD:
                given.update(given.pop(name))
        fn(self, *args, **kwargs)
        self.init_params = {"params": given.pop("params", None)}
        self.init_learning_rate = given.pop("learning_rate", None)
        self.init_args = given

    return init  # type: ignore[return-value]


def cell_attr_register(fn: F | None = None, attrs: object = None) -> F | Callable[[F], F]:
    """Decorate the `__init__` of a Cell without changing it.

    MindSpore's decorator marks attributes on which compiled code depends; duograph needs no marks.
    With `fn` it returns `fn`; without `fn`, as in ``@cell_attr_register(attrs=...)``, it returns a
    decorator. `attrs` is ignored.
    """
    if fn is None:
        return cast("Callable[[F], F]", functools.partial(cell_attr_register, attrs=attrs))
    return fn


@contextlib.contextmanager
def no_init_parameters() -> Iterator[None]:
    """Return a context manager without effect, for making Cells whose Parameters will be loaded.

    In MindSpore it avoids computing initial values. duograph computes the initial value of a
    Parameter at its first use, and never if a loaded value has replaced it before.
    """
    yield


class _VirtualDatasetCell(Cell):
    """A Cell that calls another Cell with its inputs.

    MindSpore's Cell of this name divides each batch among devices; in duograph one process has the
    whole batch.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: object) -> Any:
        return self._backbone(*inputs)


def _calculate_fan_in_and_fan_out(shape: Sequence[int]) -> tuple[int, int]:
    """Return (number of inputs, number of outputs) of a weight of shape (out, in, kernel...)."""
    return _fans(tuple(shape))


# ---- primitives and executors ------------------------------------------------------------------


def _get_cache_prim(cls: type) -> Callable[..., object]:
    """Return a function that creates primitives of class `cls` and caches them by arguments.

    Two calls with equal arguments return the same primitive.
    """

    def make(*args: object, **kwargs: object) -> object:
        key = (cls, args, tuple(sorted(kwargs.items())))
        try:
            found = _primitives.get(key)
        except TypeError:  # an argument without a hash, such as a list
            return cls(*args, **kwargs)
        if found is None:
            found = _primitives[key] = cls(*args, **kwargs)
        return found

    return make


_primitives: dict[Hashable, object] = {}
_primexpr = constexpr


class _PyNativeExecutor:
    """A stand-in for MindSpore's executor of eager code, with the methods that packages call."""

    def sync(self) -> None:
        """Wait until all work of the current device has finished."""
        synchronize()

    def enable_grad(self) -> bool:
        """Return True: duograph can always take gradients, by `grad` and similar functions."""
        return True

    def set_enable_grad(self, flag: bool) -> None:
        """Accept True and refuse False: only `grad` and similar functions record operations.

        Raises:
            NotImplementedError: `flag` is False.
        """
        if not flag:
            raise UnsupportedOpError(
                "set_enable_grad(False): nothing is recorded outside grad; use ops.stop_gradient "
                "for values that get no gradient"
            )


_pynative_executor = _PyNativeExecutor()


class _CellGraphExecutor:
    """A stand-in for MindSpore's executor of graphs, with the methods that packages call."""

    def compile(self, obj: Cell, *args: object, **kwargs: object) -> tuple[str, bool]:
        """Compile a Cell for the types of its arguments; return (a name for the program, True)."""
        obj.compile(*args, **kwargs)
        return f"{type(obj).__name__}.{id(obj)}", True

    def __call__(self, obj: Cell, *args: object, phase: str = "predict") -> Any:
        """Call a Cell and return its result; `phase` is ignored."""
        del phase
        return obj(*args)


_cell_graph_executor = _CellGraphExecutor()
cells_compile_cache: dict[int, object] = {}


class MSContext:
    """A stand-in for MindSpore's C++ context, which packages ask for an Ascend chip's version."""

    _instance: MSContext | None = None

    @classmethod
    def get_instance(cls) -> MSContext:
        """Return the only instance of this class."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def get_ascend_soc_version(self) -> str:
        """Return "", because duograph runs on no Ascend chip."""
        return ""


# ---- files -------------------------------------------------------------------------------------


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Create a folder if it does not exist; return its absolute path without symbolic links.

    `arg_name` is the name of the argument in the error message.

    Raises:
        TypeError: `path` is no string, or is empty or blank.
    """
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"{arg_name}: got {path!r}; wanted the path of a folder")
    found = os.path.realpath(path)
    os.makedirs(found, exist_ok=True)
    return found


def _function_forbid_reuse(fn: F) -> F:
    """Return `fn` unchanged.

    In MindSpore, this decorator forbids compiled functions to share the code of `fn`; in duograph
    they never do.
    """
    return fn
