"""The state of a Cell: which attributes are Parameters, child Cells and buffers; saving it.

`Cell` derives from `KeepsState`, whose methods assign members, save and load them as dictionaries,
and cast or move them (`Cell.to`). Nothing here may call a Cell or depend on what it computes.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..call_errors import explain_methods
from ..dtype import DType
from ..errors import ArgumentError
from ..option_checks import warn_moot
from ..parameter import Parameter, ParameterTuple
from ..runtime_state import runtime_state
from ..tensor import Tensor
from . import _tree
from ._hooks import HookHandle, add_hook
from ._members import Members

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["KeepsState"]

Own = TypeVar("Own", bound="KeepsState")
_NO_HOOKS: Mapping[int, Callable[..., object]] = {}


class KeepsState:
    """Base class of Cell: its members, which are state, and methods that save and convert them."""

    _params: Members[Parameter]
    _cells: Members[Cell]
    _buffers: Members[Tensor]
    _transient: set[str]
    _auto_prefix: bool
    # made when the first hook is registered; most Cells have none
    _state_hooks: dict[str, OrderedDict[int, Callable[..., object]]]

    # ---- attributes -----------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        runtime_state.cells_version += 1
        own = self.__dict__
        if isinstance(value, Parameter):
            self._members("_params")
            if name in own and name not in own["_params"]:
                del own[name]
                if name in own["_cells"]:
                    del own["_cells"][name]
            self.insert_param_to_cell(name, value)
        elif isinstance(value, KeepsState):
            cells = self._members("_cells")
            if name in own["_params"]:
                raise ArgumentError(
                    f"{type(self).__name__}: got a Cell for {name!r}, which is a Parameter; "
                    f"wanted another name, or `del` the Parameter first"
                )
            if own["_auto_prefix"]:
                cast("Cell", value).update_parameters_name(name + ".")
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

    def _members(self, kind: str) -> Members[Any]:
        """Return the dictionary of this Cell's Parameters, child Cells or buffers.

        `kind` is `_params`, `_cells` or `_buffers`.
        """
        found = self.__dict__.get(kind)
        if found is None:
            raise AttributeError(
                f"{type(self).__name__}: call super().__init__() before setting Parameters or Cells"
            )
        return found

    def _replace_parameter(self, name: str, value: object) -> None:
        """Assign a value that is not a Parameter to the attribute `name` that holds a Parameter.

        A Tensor becomes the value of the Parameter, which remains the same object; so does a number
        if the Parameter has one element. None removes the Parameter: the attribute is then None,
        and a Tensor assigned later becomes the value of a new Parameter.

        Raises:
            ArgumentError: any other value.
        """
        present = self._params[name]
        if value is None:
            self._params[name] = None
        elif isinstance(value, Tensor):
            if present is None:
                self.insert_param_to_cell(name, Parameter(value, name))
            else:
                present.set_data(value, slice_shape=True)
        elif isinstance(value, (int, float)) and present is not None and present.size == 1:
            present.set_data(Tensor(value, present.dtype).reshape(present.shape))
        else:
            raise ArgumentError(_tree.no_value(cast("Cell", self), name, value))

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
        """Add a Parameter, or None as an absent one, to this Cell under a name.

        A Parameter without a name of its own takes this name.

        Raises:
            KeyError: the name is empty, names another attribute, or contains a dot although
                `check_name_contain_dot` is True.
            TypeError: `param` is neither a Parameter nor None.
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
        """Add a child Cell, or None as an absent one, without prefixing its Parameters' names.

        `child_name` is the name of the child in this Cell.

        Raises:
            KeyError: the name is empty or in use.
            TypeError: `child_cell` is neither a Cell nor None.
        """
        cells = self._members("_cells")
        if not isinstance(child_name, str) or not child_name:
            raise KeyError(f"insert_child_to_cell: got child_name={child_name!r}; wanted a name")
        if child_name in self.__dict__ or child_name in cells:
            raise KeyError(
                f"insert_child_to_cell: {type(self).__name__} has an attribute {child_name!r} "
                "already"
            )
        if child_cell is not None and not isinstance(child_cell, KeepsState):
            raise ArgumentError(
                f"insert_child_to_cell: got {type(child_cell).__name__} for {child_name!r}; "
                f"wanted a Cell or None"
            )
        cells[child_name] = child_cell

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a Tensor that is state of this Cell but not a Parameter.

        None as `tensor` stands for an absent buffer. `state_dict` saves the buffer if `persistent`
        is True. An existing buffer of the same name is replaced.

        Raises:
            TypeError: `tensor` is neither a Tensor nor None.
            KeyError: the name is empty, contains a dot or is that of another attribute.
        """
        buffers = self._members("_buffers")
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"register_buffer: got name={name!r}; wanted a name without a dot")
        if name in self.__dict__ and name not in buffers:
            raise KeyError(f"register_buffer: {type(self).__name__} has an attribute {name!r}")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"register_buffer: got {type(tensor).__name__} for {name!r}; wanted a Tensor or "
                "None"
            )
        buffers[name] = tensor
        self._transient.discard(name) if persistent else self._transient.add(name)

    # ---- buffers --------------------------------------------------------------------------------

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers (non-trained state tensors) of this Cell.

        With `recurse`, also those of its descendants.
        """
        return (b for _, b in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) of this Cell; with `recurse`, of all its descendants too.

        `prefix` begins each path. With `remove_duplicate`, a Tensor that is a buffer under several
        names is yielded once.
        """
        seen: set[int] = set()
        own = cast("Cell", self)
        for path, cell in _tree.walk_cells(own, prefix) if recurse else [(prefix, own)]:
            for name, buffer in cell._buffers.items():
                if buffer is None or (remove_duplicate and id(buffer) in seen):
                    continue
                seen.add(id(buffer))
                yield (f"{path}.{name}" if path else name), buffer

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path such as ``"backbone.0.mean"``.

        Raises:
            AttributeError: the path does not exist, or is no buffer.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.SequentialCell(ms.nn.ReLU())
            >>> net[0].register_buffer("scale", ms.Tensor([2.0]))
            >>> print(net.get_buffer("0.scale"))
            [2.]
        """
        path, _, name = target.rpartition(".")
        owner = cast("Cell", self).get_sub_cell(path)
        if name not in owner._buffers:
            what = "is no buffer" if hasattr(owner, name) else "does not exist"
            raise AttributeError(f"{type(owner).__name__}: {name!r} {what} ({target})")
        found: Tensor = owner._buffers[name]
        return found

    # ---- state dictionaries ---------------------------------------------------------------------

    def get_extra_state(self) -> object:
        """Return additional state for `state_dict` to save; a subclass may override this method.

        The state is saved under the Cell's path and ``_extra_state``. `load_state_dict` passes it
        to `set_extra_state`. Without an override, NotImplementedError is raised.
        """
        raise NotImplementedError(f"{type(self).__name__}: get_extra_state is not defined")

    def set_extra_state(self, state: object) -> None:
        """Restore state from `get_extra_state`; a subclass overrides both methods or neither."""
        raise NotImplementedError(f"{type(self).__name__}: set_extra_state is not defined")

    def register_state_dict_pre_hook(self, hook: Callable[..., object]) -> HookHandle:
        """Register `hook(cell, prefix, keep_vars)`, called before this Cell's state is collected.

        Returns a handle whose `remove()` unregisters the hook.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.Dense(2, 1)
            >>> say = lambda cell, prefix, keep_vars: print("saving")
            >>> handle = net.register_state_dict_pre_hook(say)
            >>> list(net.state_dict())
            saving
            ['weight', 'bias']
        """
        return self._add_state_hook("save", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., object]) -> HookHandle:
        """Register `hook(cell, state_dict, prefix, local_metadata)`, called after collection.

        It runs when the values of the Cell and its descendants are in the dictionary, which it may
        change; it returns None. Returns a handle whose `remove()` unregisters the hook.
        """
        return self._add_state_hook("saved", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., object]) -> HookHandle:
        """Register a hook that `load_state_dict` calls before it compares names.

        It is called as `hook(cell, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` and may change the dictionary, which is a copy. Returns a
        handle whose `remove()` unregisters the hook.
        """
        return self._add_state_hook("load", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., object]) -> HookHandle:
        """Register `hook(cell, incompatible_keys)`, called after the values were written.

        The hook may change the lists `missing_keys` and `unexpected_keys`, and returns None.
        Returns a handle whose `remove()` unregisters the hook.
        """
        return self._add_state_hook("loaded", hook)

    def _add_state_hook(self, kind: str, hook: Callable[..., object]) -> HookHandle:
        if not callable(hook):
            raise ArgumentError(f"state_dict hook: got {type(hook).__name__}; wanted a function")
        own = self.__dict__.setdefault("_state_hooks", {})
        return add_hook(own.setdefault(kind, OrderedDict()), hook)

    def _hooks_of(self, kind: str) -> list[Callable[..., object]]:
        hooks: Mapping[int, Callable[..., object]] = self.__dict__.get("_state_hooks", {}).get(
            kind, _NO_HOOKS
        )
        return list(hooks.values())

    def state_dict(
        self,
        *args: Any,
        destination: OrderedDict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> OrderedDict[str, Any]:
        """Return a dictionary of the Parameters and persistent buffers of this Cell by path.

        The entries are added to `destination` if it is given; `prefix` precedes each path. The
        dictionary contains the Parameters themselves, but copies of the buffers unless `keep_vars`
        is set.
        """
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        found: OrderedDict[str, Any] = OrderedDict() if destination is None else destination
        for hook in self._hooks_of("save"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, child in self._cells.items():
            if child is not None:
                child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooks_of("saved"):
            if hook(self, found, prefix, {}) is not None:
                raise RuntimeError("state_dict: a post hook returned a value; wanted None")
        return found

    def _save_to_state_dict(
        self, destination: MutableMapping[str, object], prefix: str, keep_vars: bool
    ) -> None:
        """Add this Cell's own state to a dictionary, without its children; may be overridden."""
        for name, parameter in self._params.items():
            if parameter is not None:
                destination[prefix + name] = parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._transient:
                destination[prefix + name] = buffer if keep_vars else buffer.copy()
        if type(self).get_extra_state is not KeepsState.get_extra_state:
            destination[prefix + _tree.EXTRA_STATE] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, object], strict: bool = True
    ) -> _tree.IncompatibleKeys:
        """Copy the values of `state_dict`, by path, into this Cell and its descendants.

        Returns (keys missing in `state_dict`, keys of it for which the Cells have no entry).

        Raises:
            ValueError: a shape differs or, with `strict`, keys are missing or unexpected. No value
                is changed then. Only if a post hook is registered, keys are checked after the
                values were loaded and the hook has run.
        """
        return _tree.load_state_dict(cast("Cell", self), state_dict, strict)

    # ---- copies and pickles ---------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
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
                self.__dict__[kind] = Members.of(cast("Cell", self), state[kind])

    # ---- conversion -----------------------------------------------------------------------------

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """Cast or move all Parameters and buffers of this Cell, in place; return the Cell.

        ``net.to(ms.float16)``, ``net.to("CPU")``, ``net.to(device=..., dtype=...)``, or
        ``net.to(tensor)`` for the dtype and device of a Tensor. The Parameters stay the same
        objects, so that optimisers see the new values. Integers and bools keep their dtype.

        Raises:
            TypeError: the dtype is neither floating nor complex.
            RuntimeError: no such device here.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.Dense(2, 1).to(ms.float16)
            >>> net.weight.dtype
            duograph.float16
        """
        like = Tensor(0.0).to(*args, **kwargs)  # checks the arguments
        given = [*args, kwargs.get("dtype")]
        wanted = next((a for a in given if isinstance(a, (DType, Tensor))), None)
        dtype = like.dtype if wanted is not None else None
        if dtype is not None and not (dtype.is_floating or dtype.is_complex):
            raise ArgumentError(f"to: got {dtype!r}; wanted a floating or complex dtype")
        device = like.device if like._type.device is not None else None

        def converted(x: Tensor) -> Tensor:
            change = dtype is not None and (x.dtype.is_floating or x.dtype.is_complex)
            return x.to(dtype=dtype if change else None, device=device)

        self._convert(converted)
        return self

    def to_empty(self: Own, *, device: str | None = None, recurse: bool = True) -> Own:
        """Give all Parameters and buffers new values, which are zeros here; return the Cell.

        Args:
            device: the device of the values; None keeps each on its device.
            recurse: whether the descendants' Parameters and buffers are included.
        """
        self._convert(lambda x: x.new_zeros(x.shape).to(device=device), recurse)
        return self

    def _convert(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> None:
        own = cast("Cell", self)
        for _, cell in _tree.walk_cells(own) if recurse else [("", own)]:
            for parameter in cell._params.values():
                if parameter is not None:
                    parameter.data = function(parameter.value())
            for name, buffer in cell._buffers.items():
                if buffer is not None:
                    cell._buffers[name] = function(buffer)
            cell.__dict__.pop("_graph", None)

    def set_data_parallel(self) -> None:
        """Accept MindSpore's option of dividing batches, without effect; one warning says so."""
        warn_moot("nn.Cell.set_data_parallel")

    def update_cell_prefix(self) -> None:
        """Set `param_prefix` of every descendant Cell to its path from this Cell."""
        for path, cell in _tree.walk_cells(cast("Cell", self)):
            cell.__dict__["_param_prefix"] = path


# Python's own errors name a method by its qualified name; users know the class as Cell.
for _name, _method in vars(KeepsState).items():
    if isinstance(_method, types.FunctionType):
        _method.__qualname__ = f"Cell.{_name}"
explain_methods(KeepsState, "state_dict")
