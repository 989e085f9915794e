"""Lowers graph nodes to instructions over numbered value slots (`backend.program`).

`execution.lower` makes one `Lowering` per graph and reads the instructions, constants and sizes
that it collected. A *slot* is the number under which a program stores a value at run time. Nothing
here may run a kernel, except small calls without operands, whose results become constants.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import context
from ..backend.checked_calls import from_device, to_device
from ..backend.prepared import Handle, HandleFunction, PreparedCall
from ..backend.program import Alias, Choice, Copy, HostStep, Instruction, Loop, Step
from ..backend.protocol import Backend
from ..dims import is_symbolic
from ..dtype import bool_, int64
from ..ir.graph import FrozenArray, Graph, GraphNode, SourceSpan
from ..ir.liveness import live_nodes, may_raise
from ..ir.optimizer import optimizer
from ..op import Op
from ..types import BOOL, FLOAT, INT, STACK, Device, HostType, TensorType, ValueType
from .control import CONTROL_OPS, ControlNode, control_call, with_source_span
from .executable import link_steps
from .half_precision import float32_body
from .kernel_checks import checked_step
from .kernel_choice import fallback, kernel
from .observed import watched_steps
from .segments import polling

__all__ = ["Lowering", "RegionCalls"]

# Body of a `region` node -> the call that the backend compiled for it.
RegionCalls = Mapping[Graph, PreparedCall]
Types = tuple[ValueType | None, ...]

# A call without operands whose result has at most this many elements runs once, while lowering.
CONSTANT_LIMIT = 1024

# Bytes that a native program keeps for a host value.
_HOST_BYTES: Mapping[ValueType, int] = {INT: 8, FLOAT: 8, BOOL: 1, STACK: 0}
# The ops on host values that a native program can run.
_HOST_OPS = {
    "scalar",
    "to_host",
    "to_tensor",
    "stack_new",
    "stack_push",
    "stack_pop",
    "stack_holds",
}


class Lowering:
    """Lowers the nodes of one graph; collects instructions, constants and sizes of values.

    A *slot* is the number of a run-time value.

    Args:
        backend: the device's backend.
        device: the device on which the graph will run.
        regions: compiled calls of fused regions; the nodes of other regions run one by one.
        level: the jit level: "O0", "O1" or "O2".
        lower_subgraph: function that lowers a graph that a control-flow op calls.
        observed: whether steps report their calls to observers.

    Attributes:
        steps: the instructions so far.
        constants: slot of a constant -> its buffer handle or Python object.
        sizes: bytes of every slot.
        types: slot -> type of its value.
        hosts: slot that holds a Python number, object or stack -> its type.
        python: name of the first thing that only Python can run, which keeps the graph from being
            one native program; "" if there is none.
        host_constants: slots of constants that are Python objects.
        aliases: slots that refer to the memory of other slots.
        depth: how many loops and branches enclose the current node.
    """

    def __init__(
        self,
        backend: Backend,
        device: Device,
        regions: RegionCalls,
        level: str,
        lower_subgraph: Callable[[Graph, Device], HandleFunction],
        observed: bool = False,
    ) -> None:
        self.observed = observed
        self.device = device
        self.regions = regions
        self.level = level
        self.lower_subgraph = lower_subgraph
        self.backend = backend
        self.steps: list[Instruction] = []
        self.constants: dict[int, Handle] = {}
        self.sizes: list[int] = []
        self.types: dict[int, ValueType] = {}
        self.hosts: dict[int, HostType] = {}
        self.python = ""
        self.host_constants: set[int] = set()
        self.aliases: set[int] = set()
        self.depth = 0
        self.outer: tuple[SourceSpan, ...] = ()  # of the op whose decomposition is being lowered

    def slot(self, type_: ValueType) -> int:
        """Allocate and return a slot number for a run-time value of a given type."""
        slot = len(self.sizes)
        self.types[slot] = type_
        if isinstance(type_, TensorType):
            self.sizes.append(type_.nbytes)
            return slot
        self.sizes.append(_HOST_BYTES.get(type_, 0))
        self.hosts[slot] = type_
        if type_ not in _HOST_BYTES:
            self.python = self.python or "a Python object"
        return slot

    def parameters(self, graph: Graph) -> list[int]:
        """Allocate a slot for each of a graph's parameters; return the slots."""
        return [self.slot(type_) for type_ in graph.types[: graph.n_params]]

    def graph(self, graph: Graph, slots: list[int], root: bool) -> list[int]:
        """Append a graph's instructions; return the slots of its outputs.

        `slots` are the slots of the graph's parameters. `root` says that this is the whole graph
        instead of a part of it.
        """
        env = dict(enumerate(slots))
        out = set(graph.outputs)
        for node in live_nodes(graph.nodes, out):
            is_result = root and any(r in out for r in node.results)
            found = self.node(node, graph, env, is_result)
            env.update(zip(node.results, found, strict=True))
        return [env[i] for i in graph.outputs]

    def node(
        self, node: GraphNode, graph: Graph, env: Mapping[int, int], is_result: bool
    ) -> list[int]:
        """Append the instructions of one graph node; return the slots of its results.

        Args:
            node: the node.
            graph: the graph that the node is in.
            env: value of `graph` -> its slot, for all values so far.
            is_result: whether the node computes a result of the whole graph.
        """
        op = node.op
        operands = [-1 if i is None else env[i] for i in node.operands]
        if op.alias:
            return [operands[0]]
        types: Types = tuple([None if i is None else graph.types[i] for i in node.operands])
        results: tuple[ValueType, ...] = tuple([graph.types[i] for i in node.results])
        if op.name in ("constant", "host_constant"):
            return [self.constant(node, results[0])]
        if op.name == "region":
            body: Graph = node.attributes["body"]
            call = self.regions.get(body)
            if call is None:
                return self.graph(body, operands, is_result)
            return self.step(node, call, operands, types, results, True)
        if op.name == "unfused":
            return self.graph(node.attributes["body"], operands, is_result)
        if op.name == "custom_call" and self.level != "O0":
            return self.graph(node.attributes["graph"], operands, is_result)
        if self.level == "O2" and op.name in _HOST_OPS:
            return self.host_step(node, operands, types, results)
        if self.level == "O2" and op.name == "while_loop":
            return self.loop(node, operands, types)
        if self.level == "O2" and op.name == "switch":
            return self.choice(node, operands, types)
        if op.name in CONTROL_OPS:
            return self.control(node, operands, types, results)
        return self.op(node, operands, types, results, is_result)

    def control(
        self,
        node: GraphNode,
        operands: Sequence[int],
        types: Types,
        results: Sequence[ValueType],
    ) -> list[int]:
        """Append a step that runs a control-flow op in Python; return the slots of its results.

        `operands` are slots; `types` and `results` are the types of operands and results.
        """
        name = node.op.name
        call = control_call(
            name,
            ControlNode(
                self.backend,
                types,
                node.attributes,
                self.device,
                self.lower_subgraph,
            ),
        )
        converts = name in ("to_host", "to_tensor") or (name == "scalar" and may_raise(node))
        if node.span is not None and converts:
            call = with_source_span(call, node.span)
        if name != "random_state" or self.depth:
            self.python = self.python or name
        return self.step(node, PreparedCall(call), operands, types, results)

    def op(
        self,
        node: GraphNode,
        operands: list[int],
        types: Any,
        results: tuple[Handle, ...],
        is_result: bool,
    ) -> list[int]:
        """Append the instructions of a tensor op; return the slots of its results.

        A slot is the number of a run-time value; `operands` are slots. If the backend has a kernel,
        the instruction is a call of it. Otherwise the op is expanded: into the body of a composite,
        or the decomposition into other ops. If it has neither, the instruction calls its NumPy
        reference on the host. A small result of an op without operands is computed
        immediately and stored as a constant, unless it is a result of the whole graph
        (`is_result`). `types` and `results` are the types of the operands and results.
        """
        op = node.op
        call = kernel(self.backend, op, types, node.attributes, self.device)
        pure = call is not None and not op.effects
        if call is not None and call.precedes:
            self.python = self.python or f"the kernel of {call.owner}"
        inner = self.decomposition(op, types, node.attributes) if call is None else None
        if inner is not None:
            found = tuple(inner.types[i] for i in inner.outputs)
            # a handle of another size than its type says would be read past its end
            assert found == results, f"{op.name}: its body gives {found}, its infer rule {results}"
            given = [s for s in operands if s != -1]
            before, self.outer = self.outer, _spans(node) or self.outer
            slots = self.graph(inner, given, is_result)
            self.outer = before
            return slots
        if call is None:
            run = fallback(self.backend, op, types, node.attributes, self.device, results)
            if op.effects and node.span is not None:
                run = with_source_span(run, node.span)
            call = PreparedCall(run)
        slots = self.step(node, call, operands, types, results, pure)
        small = node.single and not (call.sized or is_symbolic(results[0].size))
        small = small and results[0].size <= CONSTANT_LIMIT
        if small and not operands and not is_result and not op.effects:
            (step,) = self.checked([self.steps.pop()])
            self.constants[slots[0]] = step.call.run()
        return slots

    def decomposition(
        self, op: Op, types: tuple[TensorType | None, ...], attributes: Mapping[str, object]
    ) -> Graph | None:
        """Return the graph that computes an op without a kernel, or None if there is none."""
        backends = op.name in self.backend.decompositions
        if not (backends or op.body is not None or op.decompose_rule is not None):
            return None
        wide = None if backends else float32_body(op, types, attributes)
        if wide is not None:
            return wide
        return optimizer().decomposition(self.backend, op, types, attributes)

    def constant(self, node: GraphNode, type_: ValueType) -> int:
        """Store a constant (an array copied to the device, or a Python object); return its slot."""
        slot = self.slot(type_)
        value = node.attributes["value"]
        if node.op.name == "host_constant":
            self.constants[slot] = value.value
            self.host_constants.add(slot)
        else:
            frozen: FrozenArray = value
            array = np.asarray(frozen.array, order="C")
            self.constants[slot] = to_device(self.backend, array, self.device.index)
        return slot

    def step(
        self,
        node: GraphNode,
        call: PreparedCall,
        operands: Sequence[int],
        types: Types,
        results: Sequence[ValueType],
        pure: bool = False,
    ) -> list[int]:
        """Append an instruction that calls a prepared kernel; return the slots of its results.

        `pure` says that the results depend only on the operands and do not lie in the memory of
        other values.
        """
        slots = [self.slot(t) for t in results]
        self.steps.append(
            Step(
                call,
                tuple(operands),
                tuple(slots),
                node.single,
                node.op.name,
                pure,
                node.op,
                (*types, *results),
                node.attributes,
                _spans(node) or self.outer,
            )
        )
        return slots

    def host_step(
        self, node: GraphNode, operands: Sequence[int], types: Types, results: Sequence[ValueType]
    ) -> list[int]:
        """Append an instruction on Python numbers or stacks; return the slots of its results.

        It may also convert between a number and a tensor.
        """
        slots = [self.slot(t) for t in results]
        made = HostStep(
            node.op.name, tuple(operands), tuple(slots), (*types, *results), node.attributes
        )
        self.steps.append(made)
        if node.op.name == "stack_pop":
            self.aliases.update(slots[2:])
        return slots

    def inside(self, graph: Graph, slots: list[int]) -> tuple[list[Instruction], list[int]]:
        """Lower a loop body or a branch; return its instructions and the slots of its outputs.

        `slots` are the slots of the graph's parameters.
        """
        before, self.steps = self.steps, []
        self.depth += 1
        found = self.graph(graph, slots, False)
        self.depth -= 1
        made, self.steps = self.steps, before
        return made, found

    def loop(self, node: GraphNode, operands: list[int], types: Any) -> list[int]:
        """Append the instruction of a while loop; return the slots of its results.

        The results are the values of the loop variables after the last iteration.
        """
        body: Graph = node.attributes["body"]
        n = node.attributes["n_carry"]
        first, carried, rest = operands[0], operands[1 : 1 + n], operands[1 + n :]
        predicate = self.alias(first, types[0])
        carries = [self.alias(x, t) for x, t in zip(carried, types[1:])]
        steps, found = self.inside(body, [*carries, *rest])
        own = {r for s in steps if isinstance(s, (Step, HostStep)) for r in s.results}
        own -= self.aliases
        ring = []
        for carry, slot, t in zip(carries, found[1:], types[1:]):
            if slot in own:
                own.discard(slot)  # another carry that takes this value gets a copy
            else:
                copy = self.slot(t)
                steps.append(Alias(slot, copy) if t is STACK else Copy(slot, copy))
                slot = copy
            ring.append((carry, slot, self.slot(t)))
        steps.append(Alias(found[0], predicate))
        self.steps.append(Loop(predicate, tuple(ring), tuple(steps)))
        return carries

    def choice(self, node: GraphNode, operands: list[int], types: Any) -> list[int]:
        """Append the instruction that runs one of several branches; return its results' slots.

        A result's slot is an alias: at run time it refers to the memory of the branch that ran.
        """
        branches: Sequence[Graph] = node.attributes["branches"]
        kinds = [branches[0].types[i] for i in branches[0].outputs]
        results = [self.slot(t) for t in kinds]
        self.aliases.update(results)
        made = []
        for branch in branches:
            steps, found = self.inside(branch, operands[1:])
            made.append((*steps, *[Alias(a, b) for a, b in zip(found, results)]))
        dtype = {INT: int64, BOOL: bool_}.get(types[0]) or types[0].dtype
        self.steps.append(Choice(operands[0], dtype, tuple(made)))
        return results

    def alias(self, slot: int, type_: ValueType) -> int:
        """Append an instruction that makes a new slot refer to the memory of `slot`.

        Returns the new slot; `type_` is the type of its value.
        """
        made = self.slot(type_)
        self.steps.append(Alias(slot, made))
        self.aliases.add(made)
        return made

    def checked(self, instructions: Sequence[Instruction]) -> list[Step]:
        """Return the kernel calls among instructions; in debug mode, each checks its results."""
        steps = [s for s in instructions if isinstance(s, Step)]
        if not context.settings.debug:
            return steps
        index = self.device.index
        return [
            s if s.name in CONTROL_OPS else checked_step(s, self.types, self.backend, index)
            for s in steps
        ]

    def runnable(self, instructions: Sequence[Instruction]) -> list[Step]:
        """Return the kernel calls among instructions, as the executor in Python runs them.

        In debug mode they check their results; if the program is observed, they report to
        observers.
        """
        steps = self.checked(instructions)
        return watched_steps(steps, self.backend, self.device) if self.observed else steps

    def stepwise(
        self,
        graph: Graph,
        instructions: Sequence[Instruction],
        further: Sequence[int],
        outputs: Sequence[int],
    ) -> HandleFunction | None:
        """Return a Python function that runs instructions in order, or None.

        The result is None if there are loops or branches among them, which only native programs
        run.

        Args:
            graph: the graph that was lowered.
            instructions: the instructions.
            further: slots whose handles a call passes after the parameters.
            outputs: slots of the results.
        """
        steps = self.runnable(instructions)
        if len(steps) < len(instructions):
            return None
        slots = list(outputs)
        for position, i in enumerate(slots):
            # a result may not share its buffer with a constant that lives on
            if i in self.constants and i not in self.host_constants:
                type_ = graph.types[graph.outputs[position]]
                assert isinstance(type_, TensorType)
                slot = self.slot(type_)
                fresh = functools.partial(
                    _copy, self.backend, self.device, type_, self.constants[i]
                )
                steps.append(Step(PreparedCall(fresh), (), (slot,), True))
                slots[position] = slot
        if any(step.name == "start_collective" for step in steps):
            steps = polling(steps)
        return link_steps(
            steps,
            graph.n_params,
            self.constants,
            tuple(slots),
            graph.single,
            len(self.sizes),
            self.device,
            further,
        )


def _spans(node: GraphNode) -> tuple[SourceSpan, ...]:
    """Return the source locations of a node; for a fused region, those of all its ops."""
    inside = node.attributes["body"].nodes if node.op.name == "region" else ()
    found = {(s.file, s.line): s for n in (*inside, node) if (s := n.span) is not None}
    return tuple(found.values())


def _copy(backend: Backend, device: Device, type_: TensorType, handle: object) -> object:
    """Copy a tensor's buffer to a new one on the same device; return the new handle."""
    array = from_device(backend, handle, type_.shape, type_.dtype.np, device.index)
    return to_device(backend, np.array(array), device.index)
