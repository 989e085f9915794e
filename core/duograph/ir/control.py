"""Ops that exist only in graphs: control flow, calls, stacks of residuals, Python values.

Their operands may be tensors or values that Python computes (`HostType`): Python numbers, other
Python objects, and stacks. Sub-graphs are attributes and have no free variables: the node passes
every value that a branch or loop body uses. No backend has kernels for these ops: `execution` runs
them, or lowers them to instructions of a native program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence

from ..dims import text_of
from ..dtype import DType, bool_, uint32
from ..effects import IO, Random
from ..errors import GraphError
from ..op import op
from ..tensor import Tensor
from ..types import BOOL, FLOAT, INT, OBJECT, STACK, HostType, TensorType, ValueType
from .graph import Graph, NamedGraph

__all__ = [
    "switch",
    "while_loop",
    "call",
    "custom_call",
    "stack_new",
    "stack_push",
    "stack_pop",
    "stack_holds",
    "scalar",
    "to_host",
    "to_tensor",
    "host_call",
    "HostCall",
    "random_state",
    "host_constant",
    "HostConstant",
    "SCALAR_FUNCTIONS",
    "scalar_type",
    "region",
    "unfused",
    "SUBGRAPH_OPS",
    "is_single_op",
]


def _results(graph: Graph) -> tuple[ValueType, ...]:
    return tuple(graph.types[i] for i in graph.outputs)


def _check_parameters(what: str, graph: Graph, types: Sequence[ValueType]) -> None:
    wanted = [graph.types[i] for i in range(graph.n_params)]
    if list(types) != wanted:
        raise GraphError(f"{what}: got operands {list(types)}; its graph takes {wanted}")


# ---- control flow -------------------------------------------------------------------------------


@op(composite=False, graph_only=True)
def switch(operands: Sequence[Tensor], branches: Sequence[Graph]):
    """Run one of several branches, chosen by an index (graph op).

    The operands are (index, *xs); every branch is a graph that takes xs. The index is a 0-d bool or
    integer tensor, or a Python bool or int; False selects branch 0. All branches return values of
    the same types.
    """


@switch.infer
def _(types, branches):
    index, *rest = types
    scalar_index = isinstance(index, TensorType) and not index.shape and index.dtype.kind in "biu"
    if index not in (BOOL, INT) and not scalar_index:
        raise GraphError(
            f"switch: got an index {index}; wanted a 0-d bool or integer, or a host one"
        )
    for i, branch in enumerate(branches):
        _check_parameters(f"switch, branch {i}", branch, rest)
        if _results(branch) != _results(branches[0]):
            raise GraphError(
                f"switch: branch {i} returns {_results(branch)}, branch 0 {_results(branches[0])}"
            )
    return _results(branches[0])


@op(composite=False, graph_only=True)
def while_loop(operands: Sequence[Tensor], body: Graph, n_carry: int):
    """Repeat a body graph while a predicate holds (graph op).

    The operands are (predicate, *carries, *invariants), where the `n_carry` carries are the loop
    variables. The body takes (*carries, *invariants) and returns (predicate, *carries). The results
    are the carries of the last iteration.
    """


@while_loop.infer
def _(types, body, n_carry):
    predicate, *rest = types
    if not 0 <= n_carry <= len(rest):
        raise GraphError(f"while_loop: got n_carry={n_carry} of {len(rest)} operands")
    is_bool = predicate is BOOL or predicate is TensorType.of((), bool_)
    if not is_bool:
        raise GraphError(
            f"while_loop: got a predicate {predicate}; wanted a 0-d bool or a host bool"
        )
    _check_parameters("while_loop", body, rest)
    wanted = (predicate, *rest[:n_carry])
    if _results(body) != wanted:
        raise GraphError(f"while_loop: its body returns {_results(body)}; wanted {wanted}")
    return tuple(rest[:n_carry])


@op(composite=False, graph_only=True)
def call(operands: Sequence[Tensor], target: NamedGraph):
    """Call a graph by its name (`NamedGraph`), which allows recursion (graph op)."""


@call.infer
def _(types, target: NamedGraph):
    if target.graph is not None:
        _check_parameters(f"call of {target}", target.graph, types)
    return tuple(target.result_types)


@op(composite=False, graph_only=True)
def custom_call(operands: Sequence[Tensor], graph: Graph, backward: Graph, n_args: int, name: str):
    """Run a graph whose gradient the user wrote as another graph (graph op).

    `graph` takes the operands; `backward` takes (*operands, *results, *cotangents) and returns the
    cotangents of the first `n_args` operands. The other operands are captured values, which get no
    cotangent. `name` is the name of the user's class or function, for messages.
    """


@custom_call.infer
def _(types, graph, backward, n_args, name):
    _check_parameters("custom_call", graph, types)
    results = _results(graph)
    if not 0 <= n_args <= len(types):
        raise GraphError(f"custom_call: got n_args={n_args} of {len(types)} operands")
    _check_parameters("custom_call, backward", backward, [*types, *results, *results])
    if len(backward.outputs) != n_args:
        raise GraphError(
            f"custom_call: its backward returns {len(backward.outputs)} cotangents; wanted {n_args}"
        )
    return results


# Ops whose sub-graphs are executed. `region` is not among them: its body is one kernel.
SUBGRAPH_OPS = frozenset({switch, while_loop, call, custom_call})


def is_single_op(graph: Graph) -> bool:
    """Return whether a graph has at most one node, and that node has no sub-graph.

    Such a graph stands for a call of one op, for example in eager mode, and graph passes need not
    process it.
    """
    nodes = graph.nodes
    return not nodes or (len(nodes) == 1 and nodes[0].op not in SUBGRAPH_OPS)


# ---- fused regions ------------------------------------------------------------------------------


@op(composite=False, graph_only=True, differentiable=False)
def region(operands: Sequence[Tensor], body: Graph):
    """Compute the `body` graph by one generated kernel (graph op); fusion inserts it."""


@region.infer
def _(types, body):
    _check_parameters("region", body, types)
    return _results(body)[0] if body.single else _results(body)


@op(composite=False, graph_only=True, differentiable=False)
def unfused(operands: Sequence[Tensor], body: Graph):
    """Call the single op in `body`, which no pass may fuse or replace (graph op).

    `passes.keep_added_kernels` inserts it around ops for which a plugin has added a kernel.
    """


@unfused.infer
def _(types, body):
    _check_parameters("unfused", body, types)
    return _results(body)[0] if body.single else _results(body)


# ---- residual stacks ----------------------------------------------------------------------------


@op(composite=False, graph_only=True, differentiable=False)
def stack_new():
    """Return an empty stack, on which loops save residuals for their gradient (graph op)."""


@stack_new.infer
def _():
    return STACK


@op(composite=False, graph_only=True, differentiable=False)
def stack_push(operands: Sequence[Tensor]):
    """Return a stack with one more entry; the operands are (stack, *values) (graph op).

    The operand stack does not change.
    """


@stack_push.infer
def _(types):
    if types[0] is not STACK:
        raise GraphError(f"stack_push: got {types[0]}; wanted a stack")
    return STACK


@op(composite=False, graph_only=True, differentiable=False)
def stack_pop(operands: Sequence[Tensor], types: Sequence[ValueType]):
    """Pop a stack's last entry: return (stack, whether entries remain, *values) (graph op).

    The operand is (stack,); `types` are the types of the popped values. A graph must not pop an
    empty stack.
    """


@stack_pop.infer
def _(operands, types):
    if operands != (STACK,):
        raise GraphError(f"stack_pop: got {operands}; wanted a stack")
    return (STACK, BOOL, *types)


@op(composite=False, graph_only=True, differentiable=False)
def stack_holds(operands: Sequence[Tensor]):
    """Return, as a Python bool, whether the operand, a stack, has any entry (graph op)."""


@stack_holds.infer
def _(operands):
    if operands != (STACK,):
        raise GraphError(f"stack_holds: got {operands}; wanted a stack")
    return BOOL


# ---- numbers on the host ------------------------------------------------------------------------

# Python's own functions: compiled programs compute with host numbers exactly as Python does.
SCALAR_FUNCTIONS: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "abs": abs,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "not": operator.not_,
    "int": int,
    "float": float,
    "bool": bool,
    "round": round,
}
_ALWAYS = {
    "lt": BOOL,
    "le": BOOL,
    "gt": BOOL,
    "ge": BOOL,
    "eq": BOOL,
    "ne": BOOL,
    "not": BOOL,
    "bool": BOOL,
    "int": INT,
    "float": FLOAT,
    "round": INT,
}
_RANK = {BOOL: 0, INT: 1, FLOAT: 2}


def scalar_type(function: str, types: Sequence[HostType]) -> HostType:
    """Return the result type (bool, int or float) of a function in `SCALAR_FUNCTIONS`.

    `types` are the operand types. `int ** int` is an int in graphs. For a negative exponent, where
    Python returns a float, the running graph raises an error.
    """
    found = _ALWAYS.get(function)
    if found is not None:
        return FLOAT if function == "round" and len(types) == 2 and types[0] is FLOAT else found
    widest = max(types, key=lambda t: _RANK[t])
    if function == "truediv":
        return FLOAT
    if widest is BOOL and function not in ("and", "or", "xor"):
        return INT
    return widest


@op(composite=False, graph_only=True)
def scalar(operands: Sequence[Tensor], function: str):
    """Apply a function of `SCALAR_FUNCTIONS`, such as add, to Python numbers (graph op)."""


@scalar.infer
def _(types, function):
    for t in types:
        if t not in _RANK:
            raise GraphError(f"scalar {function}: got {t}; wanted host numbers")
    return scalar_type(function, types)


class HostConstant:
    """A Python object as a hashable attribute of a graph node.

    Two instances are equal if they hold the same object, or numbers or strings of the same class
    and printed form.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def _key(self) -> Hashable:
        plain = isinstance(self.value, (bool, int, float, str))
        return (type(self.value), text_of(self.value)) if plain else id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostConstant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"host({self.value!r})"


@op(composite=False, graph_only=True, differentiable=False)
def host_constant(value: HostConstant):
    """Return a Python object that was known when the graph was built (graph op)."""


@host_constant.infer
def _(value):
    kinds = {bool: BOOL, int: INT, float: FLOAT}
    return kinds.get(value.value.__class__, OBJECT)  # of a symbolic size: int


@op(composite=False, graph_only=True, differentiable=False)
def to_host(operands: Sequence[Tensor], kind: HostType):
    """Read the only element of a tensor as a Python number, waiting for the device (graph op)."""


@to_host.infer
def _(types, kind):
    (x,) = types
    if not isinstance(x, TensorType) or x.size != 1 or kind not in _RANK:
        shape = getattr(x, "shape", None)
        got = f"{x}" if shape is None else f"a Tensor of shape {tuple(shape)}"
        raise GraphError(
            f"got {got} where Python needs one {kind}; wanted a Tensor of one element: take one "
            "with an index, [0], or with .max()"
        )
    return kind


@op(composite=False, graph_only=True)
def to_tensor(operands: Sequence[Tensor], dtype: DType):
    """Convert a Python number to a 0-d tensor; ints wrap to the dtype's range (graph op)."""


@to_tensor.infer
def _(types, dtype):
    if types[0] not in _RANK:
        raise GraphError(f"to_tensor: got {types[0]}; wanted a host number")
    return TensorType.of((), dtype)


# ---- what only Python can run -------------------------------------------------------------------


class HostCall:
    """A Python function as an attribute of a graph node, compared by identity, printed by name.

    Attributes:
        function: the function.
        name: its name in printed graphs.
    """

    __slots__ = ("function", "name")

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self.function = function
        self.name = name

    def __repr__(self) -> str:
        return f"host.{self.name}"


@op(composite=False, graph_only=True, effects=[IO()])
def host_call(operands: Sequence[Tensor], run: HostCall, types: Sequence[ValueType]):
    """Call a Python function; such calls keep their program order (graph op).

    The function `run.function` receives an eager Tensor for each tensor operand and the Python
    object for each other operand. It must return a tuple with an eager Tensor, or a Python object,
    for each entry of `types`.
    """


@host_call.infer
def _(operands, run, types):
    return tuple(types)


@op(composite=False, graph_only=True, effects=[Random()], differentiable=False)
def random_state(take: HostCall):
    """Advance the random generator and return its state, a uint32 tensor of shape (4,) (graph op).

    `take.function()` advances the generator and returns its state as an array.
    """


@random_state.infer
def _(take):
    return TensorType.of((4,), uint32)
