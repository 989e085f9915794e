"""Methods of Cells that save and convert state: buffers, state dictionaries, hooks, `Cell.to`.

`Cell` derives from `KeepsState`. Its methods also cast all Parameters and buffers to another dtype
or move them to another device.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..call_errors import explain_methods
from ..dtype import DType
from ..errors import ArgumentError
from ..option_checks import warn_moot
from ..tensor import Tensor
from . import _tree
from ._hooks import HookHandle, add_hook

if TYPE_CHECKING:
    from ..parameter import Parameter
    from ._members import Members
    from .cell import Cell

__all__ = ["KeepsState"]

Own = TypeVar("Own", bound="KeepsState")
_NO_HOOKS: Mapping[int, Callable[..., object]] = {}


class KeepsState:
    """Base class of Cell: methods for buffers and state dictionaries, and `to`."""

    _params: Members[Parameter]
    _cells: Members[Cell]
    _buffers: Members[Tensor]
    _transient: set[str]
    # made when the first hook is registered; most Cells have none
    _state_hooks: dict[str, OrderedDict[int, Callable[..., object]]]

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


explain_methods(KeepsState, "state_dict")
