"""Compiles one call of a function: the front end makes a graph, which is then lowered.

`compiler.jit_call` and `train.exported` call `compile_program`. Evaluation starts over when it
finds a write to a location that it has already read as a constant. It must never run a side effect
of the user's code twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..effects import Communicates
from ..errors import DuographError, JoinError, UnsupportedSyntaxError
from ..execution.lower import Optimised
from ..frontend.diagnostics import located
from ..frontend.evaluation.dispatch import Dead
from ..frontend.evaluation.evaluator import Evaluator
from ..frontend.evaluation.exceptions import raise_when_run
from ..frontend.evaluation.outside import reachable
from ..frontend.evaluation.spans import error_spans
from ..frontend.state.evaluation import Evaluation
from ..frontend.state.freshness import require_present
from ..frontend.state.inputs import shared_objects
from ..frontend.state.journal import Key
from ..frontend.state.outside import Restart
from ..frontend.types import Args, GraphValue, Kwargs, Value
from ..frontend.values.nested import reaches_graph_value
from ..ir.graph import Graph
from ..ir.values import NeedsValue
from ..nn.cell import Cell
from ..parameter import Parameter
from ..placement import commit
from ..runtime_state import runtime_state, thread_state
from ..scopes import Scope
from ..sharding.mode import dividing
from ..tensor import Tensor
from ..types import Device, HostType, TensorType
from .argument_captures import without_contents
from .arguments import ArgumentReader
from .compiled_program import CompiledProgram
from .inputs import Input
from .results import ArgumentContainer, template_of

if TYPE_CHECKING:
    from ..sharding.partition import Divided
    from .divide import Division

__all__ = ["Sizes", "Traced", "compile_program", "trace_call"]

T = TypeVar("T")

# The most evaluations of one call; each knows of one more location that the call writes.
_RESTARTS = 50


def compile_program(
    target: Value,
    args: Args,
    kwargs: Kwargs,
    strict: bool,
    device: Device,
    name: str,
    level: str = "O0",
    shared: Mapping[int, int | None] | None = None,
) -> CompiledProgram:
    """Compile one call of a function: trace its source into a graph and lower the graph.

    Returns the compiled program. The arguments and errors are those of `trace_call`.
    """
    start = time.perf_counter()
    program = trace_call(
        target, args, kwargs, strict, device, name, level, shared, finish=Traced.program
    )
    program.seconds = time.perf_counter() - start
    return program


def trace_call(
    target: Value,
    args: Args,
    kwargs: Kwargs,
    strict: bool,
    device: Device,
    name: str,
    level: str = "O0",
    shared: Mapping[int, int | None] | None = None,
    sizes: Sizes | None = None,
    *,
    finish: Callable[[Traced], T],
) -> T:
    """Trace one call of a function into a graph; return the result of `finish` for it.

    Args:
        target: the function, Cell or callable object.
        args: all positional arguments, including the receiver of a method.
        kwargs: the keyword arguments.
        strict: whether to refuse code that only Python can run.
        device: the device on which the program will run.
        name: name of the function, for messages.
        level: the optimisation level: "O0", "O1" or "O2".
        shared: which tensor arguments are the same object, as `CompiledProgram.shared` returns it.
        sizes: the scope of the symbolic sizes, and the symbolic type of each tensor argument, by
            position; None if all sizes are numbers.
        finish: function that is called with the evaluated call. The user's source line is added to
            errors that it raises.

    Raises:
        UnsupportedSyntaxError: the code has something that compiled code cannot have.
        NeedsValue: the code needs a value that is known only when it runs.
    """
    written: set[Key] = set()
    keep: list[Value] = []
    for _ in range(_RESTARTS):
        ev = Evaluator(strict, written, device)
        ev.keep.append(keep)
        ev.scope = None if sizes is None else sizes.scope
        runtime_state.enter_staging()
        before = thread_state.builder
        thread_state.builder = ev.root
        try:
            traced = _Tracing(ev, shared or {}, _division(), sizes)
            traced.call(target, args, kwargs)
            found = traced.finished(device, name, level)
            with _not_staging():
                if traced.division is not None:
                    traced.division.take_parts()
                return finish(found)
        except Restart:
            keep += ev.keep
            continue
        except RecursionError as error:
            raise _too_deep(ev, error) from None
        except Exception as error:
            spans = error_spans(ev, error)
            if traced.depends_on_identity() and not _is_refusal(error):
                raise located(_with_this_argument(error), spans) from None
            if _must_act_first(ev, error):
                raise located(_too_early(error), spans) from None
            located(error, spans)
            raise
        finally:
            ev.calls.trails.clear()
            thread_state.builder = before
            runtime_state.leave_staging()
    raise UnsupportedSyntaxError(
        f"{name}: the evaluation started over {_RESTARTS} times because of what it writes",
        construct="setattr",
        remedy="Write fewer attributes of different objects",
    )


def _division() -> Division | None:
    """Return a `Division` for the next program, or None if it is not divided among ranks."""
    if dividing() is None:
        return None
    from .divide import division  # loads the collectives, which few programs have

    return division()


def _must_act_first(ev: Evaluation, error: Exception) -> bool:
    """Return whether an error from the traced code cannot be raised while compiling.

    That is so in three cases: the graph has side effects already, which take place only when it
    runs and would have to precede the error; the error holds a graph value (a value that is unknown
    until the graph runs); or a condition that the graph computes decides whether the raising code
    is reached. The third case does not count for a NameError or an error of duograph. An error that
    says what cannot be compiled (such as UnsupportedSyntaxError) can always be raised.
    """
    if _is_refusal(error) and not isinstance(error, NameError):
        return False
    if ev.has_effects() or reaches_graph_value([error.args, vars(error)]):
        return True
    if isinstance(error, (DuographError, NameError)):
        return False
    return ev.calls.conditions_of(error, 0) > 0


def _too_early(error: Exception) -> UnsupportedSyntaxError:
    """Return the error that refuses code whose own `error` cannot be raised while compiling.

    The code raises after side effects that happen only when the graph runs, or under a condition
    that the graph computes.
    """
    return UnsupportedSyntaxError(
        f"{type(error).__name__}: {error}; compiled code could not carry out first what precedes "
        "the error, or decide whether it is reached",
        construct="effect",
    )


def _with_this_argument(error: Exception) -> UnsupportedSyntaxError:
    """Return the error that refuses code which raises only for certain argument objects.

    An example is code that raises if `x is self.weight`. Another call, with other Tensors, may not
    raise.
    """
    return UnsupportedSyntaxError(
        f"{type(error).__name__}: {error}; whether the code raises it depends on which Tensor an "
        "argument is",
        construct="Compare",
        remedy="Compare numbers or names that tell the Tensors apart",
    )


def _is_refusal(error: Exception) -> bool:
    """Return whether an error is about compiling the code rather than one that the code raises.

    A NameError counts, and so does `Restart`, which starts the evaluation again.
    """
    return isinstance(error, (UnsupportedSyntaxError, NeedsValue, JoinError, NameError, Restart))


def _too_deep(ev: Evaluation, error: RecursionError) -> RecursionError:
    """Return the error to raise for a RecursionError during compilation, with source lines.

    A RecursionError of Python itself is replaced by one about the depth of the user's calls.
    """
    chain = error_spans(ev, error)
    if "maximum recursion depth" in str(error):  # Python's own
        error = RecursionError(
            "Exceed function call depth limit: the function calls itself without end, or too deep"
        )
    return located(error, chain)


@contextlib.contextmanager
def _not_staging() -> Iterator[None]:
    """Return a context manager in which ops run immediately instead of being added to the graph."""
    thread_state.builder = None
    runtime_state.leave_staging()
    try:
        yield
    finally:
        runtime_state.enter_staging()


def _place(ev: Evaluation) -> str:
    """Return the source location that is being evaluated, as text for messages.

    The text is "file:line", or "" if the location is unknown.
    """
    span = getattr(thread_state.builder, "span", None) or ev.root.span
    return "" if span is None else f"{os.path.basename(span.file)}:{span.line}"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The symbolic sizes of a call's arguments.

    Attributes:
        scope: the symbols; the evaluation adds its guards on sizes to it.
        types: the type of each tensor argument, by position, with symbols in its shape.
    """

    scope: Scope
    types: Sequence[TensorType]


@dataclasses.dataclass(frozen=True)
class Traced:
    """An evaluated call: the graph before optimisation, and what else a compiled program needs.

    Attributes:
        graph, inputs, template, writes, evaluation, device, name, level, for_shared_tensors: see
            `CompiledProgram`.
        divided, only_for: see the attributes of `CompiledProgram`.
    """

    graph: Graph
    inputs: list[Input]
    template: Value
    writes: list[tuple[str, Value, int]]
    evaluation: Evaluation
    device: Device
    name: str
    level: str
    for_shared_tensors: bool
    divided: Divided | None
    only_for: dict[int, Value]

    def program(self, optimised: Optimised | None = None) -> CompiledProgram:
        """Lower the graph and return the compiled program, ready to run.

        `optimised` is the graph after the passes of the level; if it is None, the passes run now.
        """
        program = CompiledProgram(
            self.graph, self.inputs, self.template, self.writes, self.evaluation, self.device,
            self.name, self.level, self.for_shared_tensors, optimised,
        )  # fmt: skip
        program.divided = self.divided
        program.only_for = self.only_for
        return program


class _Tracing:
    """One evaluation of a function call into a graph, from arguments to a compiled program.

    Args:
        ev: the state of the evaluation.
        shared: which tensor arguments are the same object, as `CompiledProgram.shared` returns it.
        division: how the program is divided among ranks, or None.
        sizes: the symbolic sizes of the arguments; None if all sizes are numbers.

    Attributes:
        leaves: for each tensor argument, its graph value and the id that this value had before any
            write; for an argument that is also a state tensor, the tensor itself and None.
        containers: copies of the lists, dicts and sets among the arguments.
        objects: arrays, frozen dataclasses and Parameters among the arguments.
        arguments: all arguments of the call.
        numbers: how many number arguments marked mutable have been visited.
        outputs: the outputs of the graph.
        template: the Python structure of the result, with placeholders for run-time values.
    """

    def __init__(
        self,
        ev: Evaluator,
        shared: Mapping[int, int | None],
        division: Division | None,
        sizes: Sizes | None,
    ) -> None:
        self.ev = ev
        self.sizes = sizes
        if sizes is not None:
            sizes.scope.locate = lambda: _place(ev)
        self.shared = shared
        self.division = division
        self.leaves: list[tuple[Value, int | None]] = []
        self.containers: list[Value] = []
        self.objects: list[Value] = []
        self.arguments: tuple[Value, ...] = ()
        self.numbers = 0
        self.outputs: list[GraphValue] = []
        self.template: Value = None
        self._given: list[Tensor] = []  # the arguments that are graph values
        self._index: dict[int, int] = {}  # value id -> position of the output

    def call(self, target: Value, args: Args, kwargs: Kwargs) -> None:
        """Evaluate the function on graph values for its arguments; store its result's template.

        The attribute `template` is set to the Python structure of the result, with placeholders for
        run-time values. It is None if the function always raises.
        """
        enter = ArgumentReader(self._tensor, self._number, self._container, self.objects.append)
        self.arguments = (*args, *kwargs.values())
        given = tuple(enter(v) for v in args)
        named = {k: enter(v) for k, v in kwargs.items()}
        if args and isinstance(args[0], Cell):  # the receiver of a compiled method
            self.ev.captures.members(args[0])
        try:
            result = self.ev.call(target, given, named)
            self._check_aliases()
            self.template = template_of(self.ev, result, self._put, self.leaves, self.containers)
        except Dead:
            self.template = None
        except Exception as error:
            if not self.ev.strict or not self.ev.outside.has_writes or _is_refusal(error):
                raise
            raise_when_run(self.ev, error)
            self.template = None

    def _check_aliases(self) -> None:
        """Start over if several graph inputs stand for one tensor that is written in place.

        The next evaluation uses one input for all locations of the tensor. If there is no such
        tensor but the function writes in place, a capture records which locations hold the same
        tensor. The guard then checks before each call that this is still so.

        Raises:
            Restart: several inputs stand for one tensor that is written.
        """
        ev = self.ev
        aliases = ev.inputs.written_aliases()
        if aliases:
            ev.keep += aliases
            ev.outside.written |= {("aliased", id(t), None) for t in aliases}
            raise Restart("a tensor at several locations")
        locations = tuple([location for _, _, _, location in ev.inputs.objects])
        if locations and ev.inputs.writes_in_place():
            question = (locations, ev.inputs.plain_state())
            ev.captures.add("answer", shared_objects, question, shared_objects(*question),
                            "which Tensors are one object", exact=True)  # fmt: skip

    def depends_on_identity(self) -> bool:
        """Return whether code compares tensors by `is` and this call has the same tensor twice.

        A tensor is in a call twice if two arguments are the same object, or if the function also
        reads an argument from outside, such as from an attribute. The program then serves only
        calls with the same repetitions.
        """
        inputs = self.ev.inputs
        state = [s.tensor for s in inputs.slots.values() if not s.fresh]
        known = list(map(id, self._given + state))
        return inputs.compared and len(set(known)) < len(known)

    def finished(self, device: Device, name: str, level: str) -> Traced:
        """Finish the graph of the evaluated call; return all that a compiled program needs."""
        ev = self.ev
        writes = self._writes()
        require_present(ev, reachable)
        graph = ev.root.whole(self.outputs)
        divided: Divided | None = None
        if self.division is not None:
            divided = self.division.divided(graph, ev.inputs.entries, writes)
            graph = divided.graph
        if Communicates() in graph.effects:
            from ..ops.collective_primitives import with_comparison  # loaded with the first of them

            graph = with_comparison(graph)
        entries = ev.inputs.entries
        written = {id(v) for kind, v, _ in writes if kind == "state"}
        for tensor in [v for kind, v in entries if kind == "state"]:
            if tensor._type.device is None:
                commit(tensor, device, own=id(tensor) in written)
        without_contents(ev.captures, self.arguments)
        used = {**ev.outside.targets, **ev.outside.given, **ev.captures.arrays}
        only_for = {i: v for i, v in enumerate(self.objects) if id(v) in used}
        return Traced(graph, entries, self.template, writes, ev, device, name, level,
                      bool(self.shared), divided, only_for)  # fmt: skip

    def _writes(self) -> list[tuple[str, Value, int]]:
        """Return the tensors that the call changes, with the outputs that are their new values.

        Returns:
            tuples ("arg", position of the argument, position of the output) or ("state", tensor,
                position of the output).
        """
        writes: list[tuple[str, Value, int]] = []
        for i, (made, first) in enumerate(self.leaves):
            if i not in self.shared and made._id != first:
                writes.append(("arg", i, self._written(made)))
        for slot in self.ev.inputs.slots.values():
            if not slot.fresh and slot.current._id != slot.incoming._id:
                writes.append(("state", slot.tensor, self._written(slot.current)))
        return writes

    def _written(self, value: Value) -> int:
        """Make the new value of a tensor an output of the graph, and return the output's position.

        In a program that is divided among ranks, the value gets its own output even if it is also a
        result, because the rank writes only its shard but returns the whole value.
        """
        if self.division is not None:
            self._index.pop(self.ev.root.value(value)._id, None)
        return self._put(value)

    def _put(self, value: Value) -> int:
        """Return the position of a value among the graph's outputs; append it if it is missing."""
        root = self.ev.root
        found = root.value(value)
        k = self._index.get(found._id)
        if k is None:
            k = self._index[found._id] = len(self.outputs)
            self.outputs.append(root.tensor(found._id))
        return k

    def _tensor(self, value: Tensor) -> Value:
        """Return the graph value for the next tensor argument, in the order of the arguments.

        It is a new parameter of the graph, unless `shared` says that the tensor is the same object
        as an earlier argument, whose graph value is returned, or as a state tensor (which the
        function also reads from outside its arguments), which is returned itself.
        """
        leaves, inputs = self.leaves, self.ev.inputs
        first = self.shared.get(len(leaves), -1)
        if first is None:
            leaves.append((value, None))
            return value
        if first >= 0:
            leaves.append(leaves[first])
            return leaves[first][0]
        self.ev.check_device(value._type.device, "an argument on")
        kind = value._type.plain
        if self.division is not None:
            kind = self.division.argument_type(len(leaves), value)
        if self.sizes is not None:
            kind = self.sizes.types[len(leaves)]
        made = self.ev.root.parameter(kind)
        if isinstance(value, Parameter):
            inputs.parameters[id(made)] = value
        inputs.entries.append(("arg", len(leaves)))
        self._given.append(value)
        inputs.arguments.append((made, made._id, len(leaves)))
        leaves.append((made, made._id))
        return made

    def _number(self, kind: HostType) -> Value:
        """Append a graph parameter for a number argument marked mutable and return its value."""
        made = self.ev.root.parameter(kind)
        self.ev.inputs.entries.append(("number", self.numbers))
        self.numbers += 1
        return made

    def _container(self, value: Value) -> tuple[Value, Value]:
        """Return two copies of a container argument: an empty one to fill, and the one in use.

        Evaluated code sees the copy in use. The two are the same object, unless the container was
        also passed as an earlier argument; then the copy in use is the one made for that argument.
        """
        ev = self.ev
        copy: Value = [] if isinstance(value, list) else {} if isinstance(value, dict) else set()
        used = ev.copies.arguments.get(id(value))
        if used is None:
            used = ev.copies.arguments[id(value)] = copy
            ev.owned.objects[id(copy)] = copy
            order = tuple(value) if isinstance(value, set) else ()
            argument = ArgumentContainer(ev, len(self.containers), order)
            ev.copies.originals[id(copy)] = argument
            ev.keep.append(copy)
        self.containers.append(used)
        return copy, used
