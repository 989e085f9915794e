"""The Cell: a piece of a network, with Parameters and child Cells, that is called like a function.

`Cell.__call__` is as short as it can be. Whatever a Cell may have besides `construct` (hooks, a
cast, its own `bprop`, checkpointing) sends the call down `_call_slow`; the flag `_plain` says that
there is none of it.

The module is as long as the public class is wide: walks over trees, hooks and printing stand in
`_tree` and `_hooks`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..context import GRAPH_MODE, PYNATIVE_MODE, settings
from ..dtype import bfloat16, float16, float32
from ..errors import ArgumentError, ArgumentValueError
from ..parameter import Parameter, ParameterTuple
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor
from . import _hooks, _tree
from ._hooks import HookHandle
from .recompute import run_again as recompute

__all__ = ["Cell", "epoch"]


def epoch() -> int:
    """How often any attribute of any Cell was set: what was read from Cells is still right while
    this stands.
    """
    return runtime_state.cells_version


class _Members(OrderedDict[str, Any]):
    """The Parameters, Cells or buffers of a Cell; each is also a plain attribute, so that reading
    one is cheap.
    """

    __slots__ = ("_owner",)
    _owner: Cell

    @classmethod
    def of(cls, owner: Cell, items: Iterable[tuple[str, Any]] = ()) -> _Members:
        made = cls()
        made._owner = owner
        for name, value in items:
            made[name] = value
        return made

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._owner.__dict__[name] = value
        self._owner.__dict__["_plain"] = False
        runtime_state.cells_version += 1

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._owner.__dict__.pop(name, None)
        runtime_state.cells_version += 1

    def add_unnamed(self, name: str, value: Any) -> None:
        """Keep an item that is no attribute: one of a ParameterTuple."""
        super().__setitem__(name, value)
        self._owner.__dict__["_plain"] = False


class Cell:
    """Base class of layers and networks (`mindspore.nn.Cell`); override `construct`.

    Args:
        auto_prefix: put the attribute's name before the names of a child's Parameters.
        flags: flags to set, see `add_flags`.

    Attributes:
        training: True after `set_train()`; Dropout and BatchNorm ask it.
        requires_grad: what `set_grad` last said.

    Raises:
        AttributeError: an attribute is set before `super().__init__()` ran.
        ValueError: at the first call: two Parameters of the tree have one name.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn, ops
        >>> class Net(nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.fc = nn.Dense(3, 2)
        ...     def construct(self, x):
        ...         return ops.relu(self.fc(x))
        >>> net = Net()
        >>> net(ms.ops.ones((4, 3), ms.float32)).shape
        (4, 2)
        >>> [p.name for p in net.trainable_params()]
        ['fc.weight', 'fc.bias']
    """

    training: bool
    requires_grad: bool
    _params: _Members
    _cells: _Members
    _buffers: _Members
    _transient: set[str]
    _auto_prefix: bool
    _flags: dict[str, Any]
    _plain: bool
    _float_type: Any
    _recompute: bool
    _param_prefix: str
    _inputs: Any
    _jit_config: Any
    _compiled: Any
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_always: set[int]
    _backward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]

    def __init__(self, auto_prefix: bool = True, flags: Mapping[str, Any] | None = None) -> None:
        own = self.__dict__
        own["_params"] = _Members.of(self)
        own["_cells"] = _Members.of(self)
        own["_buffers"] = _Members.of(self)
        own["_transient"] = set()
        own["_auto_prefix"] = auto_prefix
        own["_flags"] = {}
        own["_plain"] = False
        own["_float_type"] = None
        own["_recompute"] = False
        own["_param_prefix"] = ""
        own["_inputs"] = None
        own["_jit_config"] = None
        own["_compiled"] = None
        own["_forward_pre_hooks"] = OrderedDict()
        own["_forward_hooks"] = OrderedDict()
        own["_forward_hooks_always"] = set()
        own["_backward_hooks"] = OrderedDict()
        own["_backward_pre_hooks"] = OrderedDict()
        own["training"] = False
        own["requires_grad"] = False
        if flags:
            self.add_flags(**flags)

    # ---- calling --------------------------------------------------------------------------------

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; every subclass writes its own."""
        raise AttributeError(
            f"{type(self).__name__}: has no construct; write the computation in a method of that name"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._plain and not runtime_state.staging and settings.mode == PYNATIVE_MODE:
            return self.construct(*args, **kwargs)
        return self._call_slow(args, kwargs)

    def _call_slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "_params" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() first")
        if runtime_state.staging:
            builder = staged_builder()
            if builder is not None:
                return builder.evaluation.call_cell(self, args, kwargs)
        if settings.mode == GRAPH_MODE or self._compiled is not None:
            found = runtime_state.load_compiler().graph_call(self, args, kwargs)
            if found is not NotImplemented:
                return found
        _tree.check_names(self)
        hooked = bool(
            self._forward_pre_hooks or self._forward_hooks
            or self._backward_hooks or self._backward_pre_hooks
        )  # fmt: skip
        own_bprop = hasattr(type(self), "bprop")
        special = hooked or own_bprop or self._recompute or self._float_type is not None
        if not special:
            self.__dict__["_plain"] = self._compiled is None
            return self.construct(*args, **kwargs)
        run: Callable[..., Any] = self.construct
        if own_bprop:
            run = lambda *a, **k: _hooks.call_with_bprop(self, a, k)  # noqa: E731
        if self._recompute:
            inner = run
            run = lambda *a, **k: recompute(inner, *a, weights=self.trainable_params(), **k)  # noqa: E731
        if self._float_type is not None:
            cast = run
            run = lambda *a, **k: self._run_cast(cast, a, k)  # noqa: E731
        if hooked:
            return _hooks.call_with_hooks(self, args, kwargs, run)
        return run(*args, **kwargs)

    def _run_cast(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run with floating inputs and own trainable Parameters cast to the type that `to_float`
        named.
        """
        target = self._float_type
        kept: dict[str, Parameter] = {}
        for name, p in self._params.items():
            if p is not None and p.requires_grad and p.dtype.is_floating and p.dtype is not target:
                kept[name] = p
                self.__dict__[name] = p.astype(target)
        try:
            return run(*_cast(args, target), **_cast(kwargs, target))
        finally:
            self.__dict__.update(kept)

    # ---- attributes -----------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        runtime_state.cells_version += 1
        own = self.__dict__
        if isinstance(value, Parameter):
            self._members("_params")
            if name in own and name not in own["_params"]:
                del own[name]
                if name in own["_cells"]:
                    del own["_cells"][name]
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            cells = self._members("_cells")
            if name in own["_params"]:
                raise ArgumentError(
                    f"{type(self).__name__}: got a Cell for {name!r}, which is a Parameter; "
                    f"wanted another name, or `del` the Parameter first"
                )
            if own["_auto_prefix"]:
                value.update_parameters_name(name + ".")
            cells[name] = value
        elif isinstance(value, ParameterTuple):
            for p in value:
                self._members("_params").add_unnamed(p.name, p)
            own[name] = value
        elif own.get("_params") is not None and name in own["_params"]:
            self._replace_parameter(name, value)
        elif own.get("_cells") is not None and name in own["_cells"]:
            if value is not None:
                raise ArgumentError(
                    f"{type(self).__name__}: got {type(value).__name__} for the child {name!r}; "
                    f"wanted a Cell or None"
                )
            own["_cells"][name] = None
        elif own.get("_buffers") is not None and name in own["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise ArgumentError(
                    f"{type(self).__name__}: got {type(value).__name__} for the buffer {name!r}; "
                    f"wanted a Tensor or None"
                )
            own["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _members(self, kind: str) -> _Members:
        found = self.__dict__.get(kind)
        if found is None:
            raise AttributeError(
                f"{type(self).__name__}: call super().__init__() before setting Parameters or Cells"
            )
        return found

    def _replace_parameter(self, name: str, value: Any) -> None:
        if value is None:
            self._params[name] = None
        elif isinstance(value, Tensor):
            present = self._params[name]
            if present is None:
                self.insert_param_to_cell(name, Parameter(value, name))
            else:
                present.set_data(value, slice_shape=True)
        else:
            raise ArgumentError(
                f"{type(self).__name__}: got {type(value).__name__} for the Parameter {name!r}; "
                f"wanted a Parameter, a Tensor or None"
            )

    def __delattr__(self, name: str) -> None:
        runtime_state.cells_version += 1
        for kind in ("_params", "_cells", "_buffers"):
            members = self.__dict__.get(kind)
            if members is not None and name in members:
                del members[name]
                return
        object.__delattr__(self, name)

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Add a Parameter under a name.

        Raises:
            KeyError: the name is empty, has a dot, or is taken by something else.
            TypeError: `param` is no Parameter.
        """
        params = self._members("_params")
        if not isinstance(param_name, str) or not param_name:
            raise KeyError(f"insert_param_to_cell: got param_name={param_name!r}; wanted a name")
        if check_name_contain_dot and "." in param_name:
            raise KeyError(f"insert_param_to_cell: got {param_name!r}; wanted a name without a dot")
        if param_name in self.__dict__ and param_name not in params:
            raise KeyError(
                f"insert_param_to_cell: {type(self).__name__} has another attribute {param_name!r}"
            )
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                f"insert_param_to_cell: got {type(param).__name__} for {param_name!r}; "
                f"wanted a Parameter or None"
            )
        if param is not None and param.name == "Parameter":
            param.name = param_name
        params[param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: Cell | None) -> None:
        """Add a child under a name, without prefixing its Parameters.

        Raises:
            KeyError: the name is empty or taken.
            TypeError: `child_cell` is no Cell.
        """
        cells = self._members("_cells")
        if not isinstance(child_name, str) or not child_name:
            raise KeyError(f"insert_child_to_cell: got child_name={child_name!r}; wanted a name")
        if child_name in self.__dict__ or child_name in cells:
            raise KeyError(
                f"insert_child_to_cell: {type(self).__name__} has an attribute {child_name!r} already"
            )
        if child_cell is not None and not isinstance(child_cell, Cell):
            raise ArgumentError(
                f"insert_child_to_cell: got {type(child_cell).__name__} for {child_name!r}; "
                f"wanted a Cell or None"
            )
        cells[child_name] = child_cell

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor that is part of the state but no Parameter; `persistent` ones are saved.

        Raises:
            TypeError: `tensor` is no Tensor.
            KeyError: the name is empty, has a dot or is taken.
        """
        buffers = self._members("_buffers")
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"register_buffer: got name={name!r}; wanted a name without a dot")
        if name in self.__dict__ and name not in buffers:
            raise KeyError(f"register_buffer: {type(self).__name__} has an attribute {name!r}")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"register_buffer: got {type(tensor).__name__} for {name!r}; wanted a Tensor or None"
            )
        buffers[name] = tensor
        self._transient.discard(name) if persistent else self._transient.add(name)

    # ---- parameters -----------------------------------------------------------------------------

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, Parameter) of this Cell, with `expand` of the whole tree."""
        return _tree.walk_parameters(self, name_prefix, expand)

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """The Parameters of this Cell, with `expand` of the whole tree, each once."""
        return (p for _, p in _tree.walk_parameters(self, "", expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with `requires_grad`.

        Raises:
            ValueError: two Parameters have one name.
        """
        _tree.check_names(self)
        return [p for p in self.get_parameters(recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters without `requires_grad`."""
        return [p for p in self.get_parameters(recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """The Parameters by name.

        Raises:
            ValueError: two Parameters have one name.
        """
        _tree.check_names(self)
        return OrderedDict((p.name, p) for p in self.get_parameters(recurse))

    def check_names(self) -> None:
        """Raise ValueError, naming both, when two Parameters of the tree have one name."""
        _tree.check_names(self)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every Parameter `prefix` + its path.

        Raises:
            TypeError: `prefix` is no string.
        """
        if not isinstance(prefix, str):
            raise ArgumentError(f"update_parameters_name: got prefix={prefix!r}; wanted a string")
        for path, p in _tree.walk_parameters(self, "", recurse):
            p.name = prefix + path
        if prefix:
            for path, own in _tree.walk_cells(self, prefix.rstrip(".")):
                own.__dict__["_param_prefix"] = path
                own.__dict__["_plain"] = False

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Make the values of Parameters that wait for their first use; returns them, each to
        itself.
        """
        del auto_parallel_mode
        return {p: p.init_data() for p in self.get_parameters()}

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this Cell, with `recurse` of the tree."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) of this Cell, with `recurse` of the tree."""
        seen: set[int] = set()
        for path, cell in _tree.walk_cells(self, prefix) if recurse else [(prefix, self)]:
            for name, buffer in cell._buffers.items():
                if buffer is None or (remove_duplicate and id(buffer) in seen):
                    continue
                seen.add(id(buffer))
                yield (f"{path}.{name}" if path else name), buffer

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Tensor]:
        """Parameters and persistent buffers by path."""
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        return _tree.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Put the values of `state_dict` in; returns `(missing_keys, unexpected_keys)`.

        Raises:
            ValueError: with `strict`, keys are missing or too many; a shape differs. Nothing is
                changed then.
        """
        return _tree.load_state_dict(self, state_dict, strict)

    # ---- children -------------------------------------------------------------------------------

    def cells(self) -> Any:
        """The child Cells."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The child Cells by name."""
        return OrderedDict((n, c) for n, c in self._cells.items() if c is not None)

    def cells_and_names(
        self, cells: Any = None, name_prefix: str = ""
    ) -> Iterator[tuple[str, Cell]]:
        """(path, Cell) of the tree, this one first, each once."""
        del cells
        return _tree.walk_cells(self, name_prefix)

    def get_sub_cell(self, target: str) -> Cell:
        """The Cell at a path such as ``"backbone.0"``.

        Raises:
            AttributeError: there is none.
        """
        found: Cell = self
        for name in target.split(".") if target else []:
            if name not in found._cells:
                raise AttributeError(f"{type(found).__name__}: has no child {name!r} ({target})")
            found = found._cells[name]
        return found

    def apply(self, fn: Callable[[Cell], Any]) -> Cell:
        """Call `fn` with every Cell of the tree, children first; returns this Cell."""
        for child in self.cells():
            child.apply(fn)
        fn(self)
        return self

    # ---- flags ----------------------------------------------------------------------------------

    def set_train(self, mode: bool = True) -> Cell:
        """Set `training` in the whole tree; returns this Cell.

        Raises:
            TypeError: `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise ArgumentError(f"set_train: got mode={mode!r}; wanted True or False")
        for _, cell in _tree.walk_cells(self):
            cell.training = mode
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Record that gradients are wanted; returns this Cell."""
        self.requires_grad = requires_grad
        return self

    def add_flags(self, **flags: Any) -> Cell:
        """Set flags: entries of `get_flags()` that are attributes too; returns this Cell."""
        for name, value in flags.items():
            self._flags[name] = value
            setattr(self, name, value)
        return self

    def add_flags_recursive(self, **flags: Any) -> Cell:
        """`add_flags` in the whole tree; returns this Cell."""
        for _, cell in _tree.walk_cells(self):
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The flags that `add_flags` set."""
        return self._flags

    @property
    def param_prefix(self) -> str:
        """What stands before the names of this Cell's Parameters."""
        return self._param_prefix

    @property
    def cls_name(self) -> str:
        """Name of the class."""
        return type(self).__name__

    @property
    def phase(self) -> str:
        """``"train"`` or ``"predict"``."""
        return "train" if self.training else "predict"

    def to_float(self, dst_type: Any) -> Cell:
        """Run the whole tree in another float type: inputs and weights are cast when used; returns
        this Cell.

        Raises:
            ValueError: `dst_type` is not float16, float32 or bfloat16.
        """
        if dst_type not in (float16, float32, bfloat16):
            raise ArgumentValueError(
                f"to_float: got {dst_type!r}; wanted float16, float32 or bfloat16"
            )
        for _, cell in _tree.walk_cells(self):
            cell._float_type = dst_type
            cell._plain = False
        return self

    def recompute(self, **options: Any) -> None:
        """Keep no intermediate values of this Cell for its gradient: compute them again in the
        backward pass.
        """
        if options.get("output_recompute") not in (None, False):
            raise ArgumentValueError("recompute: output_recompute is not offered; wanted False")
        self._recompute = True
        self._plain = False

    def set_jit_config(self, jit_config: Any) -> None:
        """Set the options of the compiled form of this Cell.

        Raises:
            TypeError: no JitConfig.
        """
        if not hasattr(jit_config, "jit_config_dict"):
            raise ArgumentError(
                f"set_jit_config: got {type(jit_config).__name__}; wanted a JitConfig"
            )
        self._jit_config = jit_config

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running; calls with matching arguments use that graph
        in either mode.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.ReLU()
            >>> net.compile(ms.Tensor([-1.0, 2.0]))
            >>> print(net(ms.Tensor([-1.0, 3.0])))
            [0. 3.]
        """
        runtime_state.load_compiler().compile_cell(self, args, kwargs)

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Record what inputs this Cell will get (None in a shape stands for any length)."""
        if inputs and kwargs:
            raise ArgumentValueError("set_inputs: got both forms; wanted positions or keywords")
        self._inputs = kwargs if kwargs else inputs

    def get_inputs(self) -> Any:
        """What `set_inputs` recorded, or None."""
        return self._inputs

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> None:
        """Accepted for scripts written for several devices; on one device there is nothing to
        split.
        """

    # ---- hooks ----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call `hook_fn(cell, args)` before `construct`; what it returns replaces the arguments."""
        _callable("register_forward_pre_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._forward_pre_hooks, (hook_fn, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook_fn: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call `hook_fn(cell, args, output)` after `construct`; what it returns replaces the
        output.
        """
        _callable("register_forward_hook", hook_fn)
        self._plain = False
        handle = _hooks.add_hook(self._forward_hooks, (hook_fn, with_kwargs), prepend)
        if always_call:
            self._forward_hooks_always.add(handle.handle_id)
        return handle

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_input, grad_output)` in the backward pass; it may return a new
        grad_input.
        """
        _callable("register_backward_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._backward_hooks, hook_fn)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_output)` before this Cell's backward; it may return a new
        grad_output.
        """
        _callable("register_backward_pre_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._backward_pre_hooks, hook_fn)

    # ---- printing and copying -------------------------------------------------------------------

    def extend_repr(self) -> str:
        """What stands between the parentheses of the printed form; override it."""
        return ""

    def __repr__(self) -> str:
        return _tree.describe(self)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for kind in ("_params", "_cells", "_buffers"):
            members = state.get(kind)
            if members is not None:
                for name in members:
                    state.pop(name, None)
                state[kind] = list(members.items())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for kind in ("_params", "_cells", "_buffers"):
            if kind in state:
                self.__dict__[kind] = _Members.of(self, state[kind])


def _cast(value: Any, target: Any) -> Any:
    if isinstance(value, Tensor):
        return (
            value.astype(target) if value.dtype.is_floating and value.dtype is not target else value
        )
    if isinstance(value, (tuple, list)):
        return type(value)(_cast(v, target) for v in value)
    if isinstance(value, dict):
        return {k: _cast(v, target) for k, v in value.items()}
    return value


def _callable(what: str, hook: Any) -> None:
    if not callable(hook):
        raise ArgumentError(f"{what}: got {type(hook).__name__}; wanted a function")
