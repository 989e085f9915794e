"""The Cell: a part of a network, with Parameters and child Cells, that is called like a function.

Layers, losses and optimisers derive from `Cell`. `Cell.__call__` is the eager hot path: the flag
`_plain` says that the Cell has no hooks, casts or compilation, so that only `construct` runs; the
module `_calls` handles all other calls. The base
class in `_state` says what an assignment to an attribute does. Walks over the tree of Cells are in
`_tree`, hooks in `_hooks`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

from ..advice import near
from ..call_errors import explain_methods
from ..call_names import LAYER, name_cell
from ..context import PYNATIVE_MODE, settings
from ..dtype import DType, bfloat16, float16, float32
from ..errors import ArgumentError, ArgumentValueError, DuographError
from ..option_checks import check_options
from ..parameter import Parameter
from ..runtime_state import runtime_state
from ..status_line import counted, status_line
from ..tensor import Tensor
from ..tracebacks import hide_own_frames
from . import _calls, _hooks, _sharding, _tree
from ._hooks import HookHandle
from ._members import Members
from ._state import KeepsState

if TYPE_CHECKING:
    from ..compiler.explain import Explanation
    from ..compiler.options import JitConfig
    from ..pages import Page

__all__ = ["Cell"]


class Cell(KeepsState):
    """Base class of layers and networks (`mindspore.nn.Cell`); override `construct`.

    Args:
        auto_prefix: whether to prefix the names of a child's Parameters with the name of the
            child's attribute.
        flags: flags to set, see `add_flags`.

    Attributes:
        training: True after `set_train()`; layers such as Dropout and BatchNorm depend on it.
        requires_grad: the value last passed to `set_grad`.

    Raises:
        AttributeError: an attribute is set before `super().__init__()` ran.
        ValueError: at the first call, if two Parameters of the tree have the same name.

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
    _params: Members[Parameter]
    _cells: Members[Cell]
    _buffers: Members[Tensor]
    _transient: set[str]
    _auto_prefix: bool
    _flags: dict[str, object]
    _plain: bool = False  # so that a call before `super().__init__()` says so
    _float_type: DType | None
    _recompute: bool
    _param_prefix: str
    _inputs: dict[str, object] | tuple[object, ...] | None
    _jit_config: JitConfig | None
    _compiled: object
    _sharding: _sharding.Sharding | None = None  # what `shard` leaves
    _pipeline_stage: int | None = None
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_always: set[int]
    _backward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]
    # What messages of errors say about the Cell, see `call_names`.
    call_role = LAYER

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, auto_prefix: bool = True, flags: Mapping[str, object] | None = None) -> None:
        if flags is not None and not isinstance(flags, Mapping):
            got = type(flags).__name__
            raise ArgumentError(f"{type(self).__name__}: got {got} for flags; wanted a dictionary")
        own = self.__dict__
        own["_params"] = Members.of(self)
        own["_cells"] = Members.of(self)
        own["_buffers"] = Members.of(self)
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
        """Compute the output of the Cell; every subclass overrides this method."""
        own = [n for n in vars(type(self)) if not n.startswith("_")]
        meant = "forward" if "forward" in own else near("construct", own)
        advice = (
            f"rename its method {meant!r} to 'construct'"
            if meant
            else "write the computation in a method of that name"
        )
        raise AttributeError(f"{type(self).__name__}: has no construct; {advice}")

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        try:
            if self._plain and not runtime_state.staging and settings.mode == PYNATIVE_MODE:
                return self.construct(*args, **kwargs)
            return _calls.call(self, args, kwargs)
        except Exception as error:
            if isinstance(error, DuographError):
                name_cell(error, self)
            elif isinstance(error, (AttributeError, TypeError)):
                _calls.refuse_operand(self, args, kwargs, error)
            hide_own_frames(error)
            raise

    # ---- parameters -----------------------------------------------------------------------------

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, Parameter) of this Cell; with `expand`, of all its descendants too.

        Each path begins with `name_prefix`. A shared Parameter is yielded once.
        """
        return _tree.walk_parameters(self, name_prefix, expand)

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield the Parameters of this Cell, each once.

        With `expand`, the Parameters of all its descendants are included.
        """
        return (p for _, p in _tree.walk_parameters(self, "", expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the Parameters of this Cell that are trained (`requires_grad` is True).

        With `recurse`, the Parameters of all its descendants are included.

        Raises:
            ValueError: two Parameters have the same name.
        """
        _tree.check_names(self)
        return [p for p in self.get_parameters(recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the Parameters of this Cell that are not trained (`requires_grad` is False).

        With `recurse`, the Parameters of all its descendants are included.
        """
        return [p for p in self.get_parameters(recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Return an ordered dictionary of the Parameters of this Cell by name.

        With `recurse`, the Parameters of all its descendants are included.

        Raises:
            ValueError: two Parameters have the same name.
        """
        _tree.check_names(self)
        return OrderedDict((p.name, p) for p in self.get_parameters(recurse))

    def check_names(self) -> None:
        """Raise ValueError if two Parameters of this Cell's tree have the same name."""
        _tree.check_names(self)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Rename every Parameter of this Cell to `prefix` + its path.

        With `recurse`, the Parameters of all its descendants are renamed as well.

        Raises:
            TypeError: `prefix` is not a string.
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
        """Run the Initializers of all Parameters that have no value yet.

        Returns a dict from each Parameter to itself. `auto_parallel_mode` has no effect.
        """
        check_options("nn.Cell.init_parameters_data", auto_parallel_mode=auto_parallel_mode)
        parameters = list(self.get_parameters())
        total = sum(p.size for p in parameters)
        with status_line("initialising Parameters", total, "values") as line:
            return {p: p.init_data() for p in counted(parameters, line, lambda p: p.size)}

    # ---- children -------------------------------------------------------------------------------

    def cells(self) -> ValuesView[Cell]:
        """Return a view of the direct child Cells of this Cell."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Return an ordered dictionary of the direct child Cells of this Cell by name."""
        return OrderedDict((n, c) for n, c in self._cells.items() if c is not None)

    def cells_and_names(
        self, cells: Iterable[Cell] | None = None, name_prefix: str = ""
    ) -> Iterator[tuple[str, Cell]]:
        """Yield (path, Cell) for this Cell and all its descendants, parents first.

        Each Cell occurs once. The Cells in `cells` are left out, but not their descendants. Each
        path begins with `name_prefix`.
        """
        known = {id(c) for c in cells or ()}
        return ((p, c) for p, c in _tree.walk_cells(self, name_prefix) if id(c) not in known)

    def get_sub_cell(self, target: str) -> Cell:
        """Return the Cell at a path such as ``"backbone.0"``.

        Raises:
            AttributeError: the path does not exist.
        """
        if not isinstance(target, str):
            raise ArgumentError(f"get_sub_cell: got {target!r}; wanted a path such as 'backbone.0'")
        found: Cell = self
        for name in target.split(".") if target else []:
            if name not in found._cells:
                raise AttributeError(f"{type(found).__name__}: has no child {name!r} ({target})")
            found = found._cells[name]
        return found

    def apply(self, fn: Callable[[Cell], object]) -> Cell:
        """Call `fn` with this Cell and every descendant Cell, children first; return this Cell."""
        for child in self.cells():
            child.apply(fn)
        fn(self)
        return self

    # ---- flags ----------------------------------------------------------------------------------

    def set_train(self, mode: bool = True) -> Cell:
        """Set training or evaluation mode of this Cell and all its descendants; return this Cell.

        Raises:
            TypeError: `mode` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ArgumentError(f"set_train: got mode={mode!r}; wanted True or False")
        for _, cell in _tree.walk_cells(self):
            cell.training = mode
            cell.__dict__["_phase"] = "train" if mode else "predict"
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set this Cell's flag `requires_grad`, which only records that gradients are wanted.

        Returns the Cell.
        """
        self.requires_grad = requires_grad
        return self

    def add_flags(self, **flags: object) -> Cell:
        """Set named flags of this Cell, which are attributes and entries of `get_flags()`.

        Returns this Cell.
        """
        for name, value in flags.items():
            self._flags[name] = value
            setattr(self, name, value)
        return self

    def add_flags_recursive(self, **flags: object) -> Cell:
        """Set named flags of this Cell and of all its descendants; return this Cell."""
        for _, cell in _tree.walk_cells(self):
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, object]:
        """Return the flags set with `add_flags`."""
        return self._flags

    @property
    def param_prefix(self) -> str:
        """Return the prefix of the names of this Cell's Parameters, "" until one has been set."""
        return self._param_prefix

    @property
    def cls_name(self) -> str:
        """Return the name of this Cell's class."""
        return type(self).__name__

    @property
    def phase(self) -> str:
        """The mode of this Cell: ``"train"``, or ``"predict"`` after `set_train(False)`.

        Older programs set it to a string, which stays until the next `set_train`; nothing depends
        on it.
        """
        return self.__dict__.get("_phase", "train")

    @phase.setter
    def phase(self, value: str) -> None:
        if not isinstance(value, str):
            raise ArgumentError(f"phase: got {value!r}; wanted a string")
        self.__dict__["_phase"] = value

    @property
    def pipeline_stage(self) -> int | None:
        """The stage of a pipeline that this Cell belongs to, or None; can be set.

        The Cells inside it that have no stage of their own belong to the same one. It has an effect
        in compiled programs of several ranks with
        `set_auto_parallel_context(pipeline_stages=...)`.

        Raises:
            TypeError: the stage is not an int.
            ValueError: it is negative.
        """
        return self._pipeline_stage

    @pipeline_stage.setter
    def pipeline_stage(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"pipeline_stage: got {value!r}; wanted an int")
        if value < 0:
            raise ArgumentValueError(f"pipeline_stage: got {value}; wanted 0 or more")
        self.__dict__["_pipeline_stage"] = value
        runtime_state.cells_version += 1

    def to_float(self, dst_type: DType) -> Cell:
        """Make this Cell and its descendants compute in another float type; return this Cell.

        Inputs and weights are cast at each call; the Parameters keep their dtype.

        Raises:
            ValueError: `dst_type` is not float16, float32 or bfloat16.
        """
        if dst_type not in (float16, float32, bfloat16):
            raise ArgumentValueError(
                f"to_float: got {dst_type!r}; wanted ms.float16, ms.float32 or ms.bfloat16"
            )
        for _, cell in _tree.walk_cells(self):
            cell._float_type = dst_type
            cell._plain = False
        return self

    def recompute(self, **options: bool) -> None:
        """Enable gradient checkpointing: backward recomputes the Cell's intermediate values.

        `options` are those of MindSpore. They have no effect, except that `output_recompute=True`
        raises ArgumentValueError.
        """
        check_options("nn.Cell.recompute", **options)
        self._recompute = True
        self._plain = False

    def set_jit_config(self, jit_config: object) -> None:
        """Set the options with which GRAPH_MODE and `compile` compile this Cell.

        Args:
            jit_config: a JitConfig, or a dictionary of its options.

        Raises:
            TypeError: `jit_config` is neither.
        """
        make = runtime_state.load_compiler().JitConfig.of
        self._jit_config = make("set_jit_config", jit_config)
        self._forget_graph()

    def explain(self, *args: object, **kwargs: object) -> Explanation:
        """Return a report on this Cell compiled for the given arguments; see `show`.

        It is that of the `explain` of a compiled function: `str()` formats it, and its method
        `details` returns everything that the page of `show` has, as text.

        Examples:
            >>> import duograph as ms
            >>> print(ms.nn.ReLU().explain(ms.Tensor([1.0])).host_calls)
            []
        """
        return runtime_state.load_compiler().explain_cell(self, args, kwargs)

    def show(self, *args: object, **kwargs: object) -> Page:
        """Return an HTML page about this Cell compiled for the given arguments (`Page`).

        It shows the source beside the graph after each pass, why nodes were fused, the generated
        kernels, the memory plan, captures and the gradient. Compiles the Cell for these arguments
        if GRAPH_MODE has not, and times its kernels, as the `show` of a compiled function does.

        Examples:
            >>> import duograph as ms
            >>> from duograph import nn
            >>> page = nn.Dense(3, 2).show(ms.ops.ones((4, 3), ms.float32))
            >>> "<svg" in str(page)
            True
        """
        return runtime_state.load_compiler().show_cell(self, args, kwargs)

    def compile(self, *args: object, **kwargs: object) -> None:
        """Compile this Cell for the given arguments without running the computation.

        Later calls with matching arguments use the compiled graph in either mode.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.ReLU()
            >>> net.compile(ms.Tensor([-1.0, 2.0]))
            >>> print(net(ms.Tensor([-1.0, 3.0])))
            [0. 3.]
        """
        runtime_state.load_compiler().compile_cell(self, args, kwargs)

    def set_inputs(self, *inputs: object, **kwargs: object) -> None:
        """Declare the shapes and dtypes of the inputs; None in a shape stands for any size.

        The declarations, such as Tensors without data, are passed like the inputs of `construct`,
        but either all by position or all by name. A call in GRAPH_MODE, or after `compile`, with
        other inputs raises ValueError.
        """
        if inputs and kwargs:
            raise ArgumentValueError("set_inputs: got both forms; wanted positions or keywords")
        self._inputs = kwargs if kwargs else inputs
        self._forget_graph()

    def _forget_graph(self) -> None:
        """Discard this Cell's compiled graph, because an option that it depends on has changed."""
        self.__dict__.pop("_graph", None)

    def get_inputs(self) -> Any:
        """Return the inputs declared with `set_inputs`, or None."""
        return self._inputs

    def shard(
        self, in_strategy: object, out_strategy: object = None, parameter_plan: object = None
    ) -> None:
        """Divide inputs, outputs and Parameters among ranks (`mindspore.nn.Cell.shard`).

        It has an effect on several ranks in the parallel mode ``"semi_auto_parallel"``. The Cell is
        then compiled in both modes; the layouts of all values inside are derived from those given.

        Args:
            in_strategy: tuple with a `Layout`, or a tuple of numbers of parts, per Tensor input.
            out_strategy: the same for the outputs; None derives their layouts.
            parameter_plan: dict from names of Parameters to a `Layout` or a tuple of numbers.

        Raises:
            TypeError: an argument of another form.
            ValueError: a layout does not fit the ranks or, when the Cell is called, the inputs.

        Examples:
            >>> import duograph as ms
            >>> net = ms.nn.Dense(4, 2)
            >>> net.shard(((1, 1),), parameter_plan={"weight": (1, 1)})  # one rank: no effect
        """
        _sharding.shard_cell(self, in_strategy, out_strategy, parameter_plan)

    # ---- hooks ----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., object], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Register `hook_fn(cell, args)`, called before `construct`.

        The hook's result, unless None, replaces `args`. With `with_kwargs` it is called as
        `hook_fn(cell, args, kwargs)` and returns both. With `prepend` it runs before the hooks
        registered so far. Returns a handle whose `remove()` unregisters the hook.
        """
        _check_callable("register_forward_pre_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._forward_pre_hooks, (hook_fn, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook_fn: Callable[..., object],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Register `hook_fn(cell, args, output)`, called after `construct`.

        The hook's result, unless None, replaces the output. With `with_kwargs` it is called as
        `hook_fn(cell, args, kwargs, output)`. With `prepend` it runs before the hooks registered so
        far. With `always_call` it also runs, with None as the output, if `construct` raises.
        Returns a handle whose `remove()` unregisters the hook.
        """
        _check_callable("register_forward_hook", hook_fn)
        self._plain = False
        handle = _hooks.add_hook(self._forward_hooks, (hook_fn, with_kwargs), prepend)
        if always_call:
            self._forward_hooks_always.add(handle.handle_id)
        return handle

    def register_backward_hook(self, hook_fn: Callable[..., object]) -> HookHandle:
        """Register `hook_fn(cell, grad_input, grad_output)`, called in the backward pass.

        The hook's result, unless None, replaces grad_input.
        """
        _check_callable("register_backward_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._backward_hooks, hook_fn)

    def register_backward_pre_hook(self, hook_fn: Callable[..., object]) -> HookHandle:
        """Register `hook_fn(cell, grad_output)`, called before this Cell's backward pass.

        The hook's result, unless None, replaces grad_output.
        """
        _check_callable("register_backward_pre_hook", hook_fn)
        self._plain = False
        return _hooks.add_hook(self._backward_pre_hooks, hook_fn)

    # ---- printing and copying -------------------------------------------------------------------

    def extend_repr(self) -> str:
        """Return the text between the parentheses of this Cell's printed form.

        Subclasses override it.
        """
        return ""

    def __repr__(self) -> str:
        return _tree.describe(self)

    def _repr_html_(self) -> str:
        return _tree.describe_html(self)


explain_methods(
    Cell, "apply", "parameters_dict", "to_float", "trainable_params",
    "untrainable_params", "update_parameters_name",
)  # fmt: skip


def _check_callable(method: str, hook: object) -> None:
    if not callable(hook):
        raise ArgumentError(f"{method}: got {type(hook).__name__}; wanted a function")
