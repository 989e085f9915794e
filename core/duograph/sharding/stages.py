"""Cuts a program into pipeline stages: each rank keeps its stage's nodes and exchanges values.

`compiler.divide` calls `cut` before the SPMD partitioner when `pipeline_stages` is set. All ranks
trace the same program, assign its nodes to stages in the same way, and keep different nodes. The
module must not look at anything that may differ between ranks, such as values of tensors: a node
that two ranks assign differently would never receive its operand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ..dtype import DType, bool_, float64, int32, int64
from ..effects import IO, Communicates, Random
from ..errors import ArgumentValueError, UnsupportedOpError
from ..ir.control import to_host, to_tensor
from ..ir.graph import Graph, GraphNode
from ..ops.collective_primitives import receive, start_send
from ..types import BOOL, FLOAT, INT, TensorType, ValueType
from .schedule import one_forward_one_backward

__all__ = ["EVERYWHERE", "Message", "Stages", "cut"]

# The stage of a value that every stage has or computes: inputs of the program, and constants.
EVERYWHERE = None
# Numbers of the messages between stages begin here; those of users' messages are usually small.
FIRST_TAG = 16384
# The dtypes in which numbers of Python are sent; ints of Python are 64 bits wide in graphs.
NUMBERS: dict[ValueType, DType] = {BOOL: bool_, INT: int64, FLOAT: float64}


@dataclasses.dataclass(frozen=True)
class Message:
    """A value that one stage sends to another in every run of a program.

    Attributes:
        source, target: the stages.
        value: the number of the value in the program.
        type: the type of the value.
        why: the op that computes the value, with its source location, or the name of the input.
    """

    source: int
    target: int
    value: int
    type: TensorType
    why: str


@dataclasses.dataclass(frozen=True)
class Stages:
    """A program that is cut into pipeline stages, and what one stage runs.

    Attributes:
        graph: the graph of this stage. It has all inputs and outputs of the program; the outputs
            that belong to other stages are inputs that it passes on.
        stage: the number of this stage.
        count: the number of stages.
        owners: position of an input -> the stage that it belongs to. Other inputs are on all.
        nodes: the number of nodes that each stage alone runs.
        messages: number of a message -> what it sends.
    """

    graph: Graph
    stage: int
    count: int
    owners: Mapping[int, int]
    nodes: tuple[int, ...]
    messages: Mapping[int, Message]

    def report(self) -> tuple[str, ...]:
        """Return lines on the stages and on what they send, for `explain`."""
        lines = [f"stage {self.stage} of a pipeline of {self.count} stages:"]
        lines += [f"  stage {s}: {n} nodes" for s, n in enumerate(self.nodes)]
        sizes: dict[tuple[int, int], list[int]] = {}
        for m in self.messages.values():
            sizes.setdefault((m.source, m.target), []).append(m.type.nbytes)
        for (a, b), found in sorted(sizes.items()):
            lines.append(f"  stage {a} to {b}: {len(found)} messages, {sum(found)} bytes")
        return tuple(lines)


def cut(
    graph: Graph,
    count: int,
    stage: int,
    known: Mapping[int, int],
    parameters: Collection[int],
    written: Mapping[int, int],
    peer: Callable[[int], int],
    group: str,
    scheduler: str,
) -> Stages:
    """Cut a program into pipeline stages; return what one of them runs.

    A node belongs to the stage of the Cell that it was traced in, and so do the nodes of its
    gradient. Other nodes, such as those of a loss and of an optimiser, belong to the stage that has
    most of their operands. Nodes that depend on no input run on all stages that need them.

    Args:
        graph: the program on global tensors.
        count: the number of stages.
        stage: the number of this rank's stage.
        known: position of an input -> its stage, for inputs that an earlier program has placed.
        parameters: positions of the inputs that may belong to one stage: Parameters.
        written: position of an output -> position of the input whose new value it is.
        peer: function from a stage to the rank of `group` there with which this rank communicates.
        group: name of the group of all ranks.
        scheduler: "1f1b" for the order of `schedule.one_forward_one_backward`, "gpipe" for that of
            the program: all forward passes, then all backward passes.

    Raises:
        ArgumentValueError: a Cell has a stage that the pipeline lacks.
        UnsupportedOpError: the program has collectives of its own, a Cell with a stage is called
            within a loop or branch on Tensors of another stage, or a value that is no tensor would
            have to be sent.
    """
    cutter = _Cutter(graph, count, known, parameters, written, scheduler)
    return cutter.stage_graph(stage, peer, group)


class _Cutter:
    """Assigns the values of a program to stages.

    Attributes:
        graph: the program.
        count: the number of stages.
        stages: for each value, its stage or EVERYWHERE.
        node_stages: for each node, its stage or EVERYWHERE.
        owners: position of an input -> the stage that it belongs to.
        wanted: value -> the stages that read it and do not have it.
        order: positions of the nodes, in the order in which the stages run them.
    """

    def __init__(
        self,
        graph: Graph,
        count: int,
        known: Mapping[int, int],
        parameters: Collection[int],
        written: Mapping[int, int],
        scheduler: str,
    ) -> None:
        self.graph, self.count, self.written = graph, count, written
        self.stages: list[int | None] = [EVERYWHERE] * len(graph.types)
        self.node_stages: list[int | None] = [EVERYWHERE] * len(graph.nodes)
        self.owners = dict(known)
        self._tags = [self._tag(node) for node in graph.nodes]
        self._constants = _constants(graph)
        for i, owner in known.items():
            self.stages[i] = owner
        while True:
            self._assign()
            if not self._own(parameters):
                break
        self.wanted = self._wanted()
        self.order = list(range(len(graph.nodes)))
        if scheduler == "1f1b":
            self.order = one_forward_one_backward(graph, self.node_stages, count)

    # ---- stages ---------------------------------------------------------------------------------

    def _tag(self, node: GraphNode) -> int | None:
        """Return the stage of the Cell that a node was traced in, or None."""
        tags = set(_tags(node))
        if Communicates() in node.effects:
            raise UnsupportedOpError(
                f"pipeline_stages: got {node.op.name}{_place(node)}; wanted no collectives or "
                "messages in a program that is cut into stages, which makes its own"
            )
        if not tags:
            return None
        if len(tags) > 1:
            raise UnsupportedOpError(
                f"pipeline_stages: got Cells of the stages {sorted(tags)} inside one loop or "
                f"branch on Tensors{_place(node)}; wanted loops and branches within one stage"
            )
        (tag,) = tags
        if tag >= self.count:
            raise ArgumentValueError(
                f"pipeline_stages: got a Cell with pipeline_stage={tag}{_place(node)}; wanted "
                f"stages from 0 to {self.count - 1}"
            )
        return tag

    def _assign(self) -> None:
        """Assign all nodes, given the stages of the inputs."""
        types = self.graph.types
        for k, node in enumerate(self.graph.nodes):
            found = self._tags[k]
            if k in self._constants:
                found = EVERYWHERE
            elif found is None:
                nbytes: dict[int, int] = {}
                for i in node.operands:
                    s = None if i is None else self.stages[i]
                    if s is not None and i is not None:
                        nbytes[s] = nbytes.get(s, 0) + _nbytes(types[i])
                found = max(nbytes, key=lambda s: (nbytes[s], s), default=EVERYWHERE)
            self.node_stages[k] = found
            for r in node.results:
                self.stages[r] = found

    def _own(self, parameters: Collection[int]) -> bool:
        """Find owners of further Parameters; return whether there are any.

        A Parameter that Cells with stages read belongs to the first of their stages. Another one
        belongs to the stage of its readers if they are all on one, unless all ranks compute its new
        value, such as that of a step counter.
        """
        outputs = self.graph.outputs
        counters = {i for k, i in self.written.items() if self.stages[outputs[k]] is EVERYWHERE}
        readers: dict[int, set[int | None]] = {}
        tagged: dict[int, set[int]] = {}
        for k, node in enumerate(self.graph.nodes):
            for i in node.operands:
                if i is not None and i in parameters and i not in self.owners:
                    readers.setdefault(i, set()).add(self.node_stages[k])
                    tag = self._tags[k]
                    if tag is not None:
                        tagged.setdefault(i, set()).add(tag)
        found: dict[int, int] = {}
        for i, stages in readers.items():
            known = {s for s in stages if s is not None}
            kind = self.graph.types[i]
            has_axes = isinstance(kind, TensorType) and kind.ndim > 0
            if i in tagged:
                found[i] = min(tagged[i])
            elif i not in counters and len(known) == 1 and has_axes:
                found[i] = known.pop()
        self.owners.update(found)
        for i, owner in found.items():
            self.stages[i] = owner
        return bool(found)

    # ---- what moves -----------------------------------------------------------------------------

    def _wanted(self) -> dict[int, set[int]]:
        """Return for each value the stages to which it must be sent.

        Results of the program go to all stages, and the new value of an input to its owner.
        """
        found: dict[int, set[int]] = {}

        def want(value: int, stages: Iterable[int]) -> None:
            have = self.stages[value]
            if have is not None:
                further = set(stages) - {have}
                if further:
                    found.setdefault(value, set()).update(further)

        everyone = range(self.count)
        for k, node in enumerate(self.graph.nodes):
            s = self.node_stages[k]
            for i in node.operands:
                if i is not None:
                    want(i, everyone if s is None else (s,))
        for k, i in enumerate(self.graph.outputs):
            owner = self.owners.get(self.written[k]) if k in self.written else None
            want(i, everyone if owner is None else (owner,))
        return found

    def _messages(self) -> dict[tuple[int, int], tuple[int, Message]]:
        """Return (value, target stage) -> (number of the message, message), in program order."""
        makers = {r: node for node in self.graph.nodes for r in node.results}
        found: dict[tuple[int, int], tuple[int, Message]] = {}
        for value in sorted(self.wanted):
            source, kind, node = self.stages[value], self.graph.types[value], makers.get(value)
            assert source is not None
            why = f"input {value}" if node is None else f"{node.op.name}{_place(node)}"
            if not isinstance(kind, TensorType):
                if kind not in NUMBERS:
                    raise UnsupportedOpError(
                        f"pipeline_stages: got a value of Python, {kind}, of stage {source} "
                        f"({why}) that stage {min(self.wanted[value])} needs; wanted a Tensor"
                    )
                kind = TensorType.of((), NUMBERS[kind])
            for target in sorted(self.wanted[value]):
                tag = FIRST_TAG + len(found)
                found[value, target] = tag, Message(source, target, value, kind, why)
        return found

    def stage_graph(self, stage: int, peer: Callable[[int], int], group: str) -> Stages:
        """Return what one stage runs; the arguments are those of `cut`."""
        graph = self.graph
        messages = self._messages()
        writer = _Writer(graph, stage, messages, peer, group)
        for i in range(graph.n_params):
            if self.owners.get(i) == stage:
                writer.send(i, None)
        counts = [0] * self.count
        for k in self.order:
            node, s = graph.nodes[k], self.node_stages[k]
            if s is not None:
                counts[s] += 1
            if s is not None and s != stage:
                continue
            writer.copy(node, self.stages)
            if s == stage:
                for r in node.results:
                    writer.send(r, node)
        outputs = []
        for k, i in enumerate(graph.outputs):
            place = self.written.get(k)
            if place is not None and self.owners.get(place, stage) != stage:
                outputs.append(place)  # another stage has the new value
            else:
                outputs.append(writer.value(i, self.stages[i]))
        made = Graph(graph.n_params, writer.types, writer.nodes, tuple(outputs), graph.single)
        found = dict(messages.values())
        return Stages(made, stage, self.count, dict(self.owners), tuple(counts), found)


class _Writer:
    """Writes the graph of one stage, with its messages.

    Attributes:
        types, nodes: those of the new graph, whose inputs are those of the program.
        ids: value of the program -> value of the new graph.
    """

    def __init__(
        self,
        graph: Graph,
        stage: int,
        messages: Mapping[tuple[int, int], tuple[int, Message]],
        peer: Callable[[int], int],
        group: str,
    ) -> None:
        self.graph, self.stage, self.messages = graph, stage, messages
        self.peer, self.group = peer, group
        self.types: list[ValueType] = list(graph.types[: graph.n_params])
        self.nodes: list[GraphNode] = []
        self.ids = {i: i for i in range(graph.n_params)}
        self._targets: dict[int, list[tuple[int, int]]] = {}
        for (value, target), (tag, _) in messages.items():
            self._targets.setdefault(value, []).append((target, tag))
        self._received: set[int] = set()

    def value(self, i: int, stage: int | None, node: GraphNode | None = None) -> int:
        """Return the new id of a value of stage `stage`; receive it if it is another stage's."""
        if stage is None or stage == self.stage or i in self._received:
            return self.ids[i]
        self._received.add(i)
        tag, message = self.messages[i, self.stage]
        span = None if node is None else node.span
        attributes = {
            "shape": message.type.shape, "dtype": message.type.dtype,
            "source": self.peer(message.source), "tag": tag, "group": self.group,
        }  # fmt: skip
        made = self._append(GraphNode(receive, (), attributes, (), True, span), [message.type])
        kind = self.graph.types[i]
        if not isinstance(kind, TensorType):
            made = self._append(GraphNode(to_host, made, {"kind": kind}, (), True, span), [kind])
        (self.ids[i],) = made
        return made[0]

    def send(self, i: int, node: GraphNode | None) -> None:
        """Send a value of this stage to the stages that need it; `node` has computed it."""
        targets = self._targets.get(i, ())
        span = None if node is None else node.span
        kind = self.graph.types[i]
        sent: tuple[int, ...] = (self.ids[i],)
        if targets and not isinstance(kind, TensorType):
            dtype = NUMBERS[kind]
            sent = self._append(
                GraphNode(to_tensor, sent, {"dtype": dtype}, (), True, span),
                [TensorType.of((), dtype)],
            )
        for target, tag in targets:
            attributes = {"to": self.peer(target), "tag": tag, "group": self.group}
            self._append(
                GraphNode(start_send, sent, attributes, (), False, span),
                [TensorType.of((), int32)],
            )

    def copy(self, node: GraphNode, stages: Sequence[int | None]) -> None:
        """Append a node, after the messages with its operands."""
        operands = tuple(
            [None if i is None else self.value(i, stages[i], node) for i in node.operands]
        )
        types = [self.graph.types[r] for r in node.results]
        made = self._append(dataclasses.replace(node, operands=operands, results=()), types)
        self.ids.update(zip(node.results, made, strict=True))

    def _append(self, node: GraphNode, types: Sequence[ValueType]) -> tuple[int, ...]:
        first = len(self.types)
        self.types.extend(types)
        results = tuple(range(first, len(self.types)))
        self.nodes.append(dataclasses.replace(node, results=results))
        return results


def _tags(node: GraphNode) -> Iterator[int]:
    """Yield the stages of the Cells in which a node and its sub-graphs' nodes were traced."""
    tag = getattr(node.span, "stage", None)
    if tag is not None:
        yield tag
    for graph in node.graphs:
        for inner in graph.nodes:
            yield from _tags(inner)


def _constants(graph: Graph) -> set[int]:
    """Return the positions of the nodes that depend on no input, and that all ranks may run.

    Every rank draws the states of the random generator, so that the ranks stay in step.

    Raises:
        UnsupportedOpError: a loop or branch draws random numbers, how many only a run can tell.
    """
    found: set[int] = set()
    known: set[int] = set()
    for k, node in enumerate(graph.nodes):
        if node.graphs and Random() in node.effects:
            raise UnsupportedOpError(
                f"pipeline_stages: got random numbers inside a loop or branch on Tensors"
                f"{_place(node)}; wanted them outside of it, where all stages draw them"
            )
        free = all(i is None or i in known for i in node.operands)
        if free and not any(isinstance(e, IO) for e in node.effects):
            found.add(k)
            known.update(node.results)
    return found


def _nbytes(kind: ValueType) -> int:
    return kind.nbytes if isinstance(kind, TensorType) else 1


def _place(node: GraphNode) -> str:
    return "" if node.span is None else f" at {node.span.file}:{node.span.line}"
