"""Private names of MindSpore that published packages import.

The table of paths serves them, as in `from mindspore.parallel._utils import _get_device_num`;
nothing in duograph imports this module. Each name does what those packages use it for.
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
    """Return the recorded parallel mode, ``"stand_alone"`` by default."""
    return context.get_auto_parallel_context("parallel_mode")


def _get_device_num() -> int:
    """Return the number of processes."""
    return communication.get_group_size()


def _get_global_rank() -> int:
    """Return the rank of this process."""
    return communication.get_rank()


def _get_gradients_mean() -> bool:
    """Return the recorded setting `gradients_mean`: whether devices average their gradients."""
    return bool(context.get_auto_parallel_context("gradients_mean"))


def _get_pipeline_stages() -> int:
    """Return the recorded setting `pipeline_stages`, a number of stages."""
    return int(context.get_auto_parallel_context("pipeline_stages"))


def _is_sharding_propagation() -> bool:
    """Return False; in MindSpore, whether shardings are propagated from marked ops to others."""
    return False


def _is_pynative_parallel() -> bool:
    """Return False; in MindSpore, whether eager code runs on several devices."""
    return False


# ---- optimisers and Cells ----------------------------------------------------------------------


def opt_init_args_register(fn: F) -> F:
    """Decorate the `__init__` of an optimiser to keep its arguments on it.

    `init_params`, `init_learning_rate` and `init_args` hold the parameters, the rate and the rest.
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
    """Decorate the `__init__` of a Cell; compiled code compares attributes without a mark."""
    if fn is None:
        return cast("Callable[[F], F]", functools.partial(cell_attr_register, attrs=attrs))
    return fn


@contextlib.contextmanager
def no_init_parameters() -> Iterator[None]:
    """Make Cells whose Parameters are about to be loaded, without computing initial values.

    Initial values are always computed at their first use, so those that are loaded before are not
    computed at all, inside this context and elsewhere.
    """
    yield


class _VirtualDatasetCell(Cell):
    """Cell that calls another one with its inputs.

    MindSpore's Cell of this name cuts each batch into one part per device; one process has it all.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: object) -> Any:
        return self._backbone(*inputs)


def _calculate_fan_in_and_fan_out(shape: Sequence[int]) -> tuple[int, int]:
    """Return (inputs, outputs) that a weight of shape (out, in, kernel...) connects."""
    return _fans(tuple(shape))


# ---- primitives and executors ------------------------------------------------------------------


def _get_cache_prim(cls: type) -> Callable[..., object]:
    """Return a function that creates a primitive of class `cls`, or returns an earlier equal one.

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
    """The methods of MindSpore's executor of eager code that published packages call."""

    def sync(self) -> None:
        """Wait until all work of the current device has finished."""
        synchronize()

    def enable_grad(self) -> bool:
        """Return True: gradients can always be taken, by `grad` and similar functions."""
        return True

    def set_enable_grad(self, flag: bool) -> None:
        """Accept True and refuse False: recording depends on `grad` and similar functions alone.

        Raises:
            NotImplementedError: False.
        """
        if not flag:
            raise UnsupportedOpError(
                "set_enable_grad(False): nothing is recorded outside grad; use ops.stop_gradient "
                "for values that get no gradient"
            )


_pynative_executor = _PyNativeExecutor()


class _CellGraphExecutor:
    """The methods of MindSpore's executor of graphs that published packages call."""

    def compile(self, obj: Cell, *args: object, **kwargs: object) -> tuple[str, bool]:
        """Compile a Cell for the types of its arguments; return (a name of the program, True)."""
        obj.compile(*args, **kwargs)
        return f"{type(obj).__name__}.{id(obj)}", True

    def __call__(self, obj: Cell, *args: object, phase: str = "predict") -> Any:
        """Call a Cell, which GRAPH_MODE compiles; return its result. `phase` is ignored."""
        del phase
        return obj(*args)


_cell_graph_executor = _CellGraphExecutor()
cells_compile_cache: dict[int, object] = {}


class MSContext:
    """MindSpore's C++ context; packages ask it for the version of an Ascend chip."""

    _instance: MSContext | None = None

    @classmethod
    def get_instance(cls) -> MSContext:
        """Return the only instance."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def get_ascend_soc_version(self) -> str:
        """Return "": there is no Ascend chip."""
        return ""


# ---- files -------------------------------------------------------------------------------------


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Create a folder if it does not exist; return its absolute path.

    Raises:
        TypeError: no string, or an empty one.
    """
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"{arg_name}: got {path!r}; wanted the path of a folder")
    found = os.path.realpath(path)
    os.makedirs(found, exist_ok=True)
    return found


def _function_forbid_reuse(fn: F) -> F:
    """Return `fn` unchanged.

    MindSpore's decorator forbids that compiled functions share the code of `fn`; here they never
    do.
    """
    return fn
