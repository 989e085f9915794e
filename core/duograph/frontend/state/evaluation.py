"""The state of one attempt to evaluate a function's source into a graph.

`compiler.evaluate` makes one `Evaluator` (the subclass in `frontend.evaluation.evaluator`) per
attempt to compile a call. This class holds the parts of the state and must not evaluate source.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ...errors import StrictDeviceError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import NeedsValue
from ...parameter import Parameter
from ...runtime_state import thread_state
from ...scopes import Scope
from ...tensor import Tensor
from ...types import Device
from ..types import Args, GraphValue, Kwargs, Value
from .builder import StagedBuilder
from .calls import CallStack
from .captures import Captures
from .containers import ContainerCopies
from .inputs import GraphInputs
from .journal import Journal, Key
from .outside import OutsideLocations
from .ownership import Ownership

__all__ = ["Evaluation"]


class Evaluation:
    """State of tracing one call of a user's function into a graph; base class of `Evaluator`.

    Attributes:
        strict: whether Python code that cannot become graph nodes is refused (STRICT).
        device: the device on which the program will run.
        root: the builder of the function's own graph.
        builder: the builder of the graph that is being built now; it changes with each branch.
        journal: the undo log of the open branches.
        owned: objects made by the evaluated code.
        captures: values read from outside the function as constants.
        inputs: parameters of the root graph.
        outside: locations outside the function that are read or written.
        copies: copies of containers from outside the function.
        calls: the stack of calls.
        candidates: id of a tensor chosen by a condition or loop -> (that tensor, the tensors that
            it may be).
        origins: id of a value that a branch wrote into a tensor -> (the value, that tensor).
        host_objects: id of a tensor that Python code holds at run time -> (the tensor, the graph
            value that stands for its Python Tensor object).
        choices: id of a tensor chosen by a condition -> (that tensor, the condition, [the tensor of
            the else branch, that of the other branch]). None replaces a tensor that nothing uses
            after its branch.
        joined_objects: id of a tensor of a branch -> the tensor. A `switch` returns the Python
            Tensor object of this tensor, or that of the other branch, for the chosen tensor.
        python_effects: how many calls of Python code with possible effects the graph has so far.
        scope: the symbolic sizes of the arguments; None if all sizes are numbers.
        keep: objects that must stay alive because their id is a key.
    """

    def __init__(self, strict: bool, written: set[Key], device: Device) -> None:
        self.strict = strict
        self.device = device
        self.keep: list[Value] = []
        self.journal = Journal()
        self.owned = Ownership()
        self.captures = Captures()
        self.root = StagedBuilder(self, None)
        self.inputs = GraphInputs(self.root, self.owned)
        self.outside = OutsideLocations(written)
        self.copies = ContainerCopies(self.captures, self.inputs, self.keep)
        self.calls = CallStack()
        self.candidates: dict[int, tuple[Value, list[Value]]] = {}
        self.origins: dict[int, tuple[Value, Value]] = {}
        self.host_objects: dict[int, tuple[Tensor, GraphValue]] = {}
        self.choices: dict[int, tuple[Value, Value, list[Value]]] = {}
        self.joined_objects: dict[int, Tensor] = {}
        self.python_effects = 0
        self.scope: Scope | None = None
        self._thread = thread_state

    if TYPE_CHECKING:
        builder: StagedBuilder
    else:
        builder = property(operator.attrgetter("_thread.builder"))  # no Python frame: it is hot

    def has_effects(self) -> bool:
        """Return whether the graph so far has side effects, or changes objects from outside."""
        return (
            self.outside.has_writes
            or any(n.effects for n in self.root.nodes)
            or bool(self.inputs.writes())
        )

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether an eager tensor was made while compiling and is unused by the graph."""
        return id(tensor) in self.owned.tensors and id(tensor) not in self.inputs.slots

    def ask_class(self, tensor: Value, what: str) -> None:
        """Raise if a graph tensor is an argument whose object is a Parameter.

        Evaluated code sees such an argument as a Tensor. This is called for a test, such as
        `isinstance`, whose result would differ for a Parameter.

        Args:
            tensor: any value; only arguments of the compiled call are refused.
            what: the test as text, for the message.

        Raises:
            UnsupportedSyntaxError: the tensor is an argument that is a Parameter.
        """
        if id(tensor) in self.inputs.parameters:
            raise UnsupportedSyntaxError(
                f"{what}: got a question about an argument that is a Parameter inside jit, where "
                "it is a Tensor",
                construct=what,
                remedy="Reach the Parameter from outside, e.g. as an attribute of a Cell",
            )

    def check_device(self, device: Device | None, what: str) -> None:
        """Raise if a value is on another device than the program.

        Args:
            device: the device of the value; None, for data on no device, is accepted.
            what: the value and a preposition, such as "an argument on", for the message.

        Raises:
            StrictDeviceError: the devices differ. At syntax level LAX the whole function then runs
                uncompiled.
        """
        if device is not None and device is not self.device:
            raise StrictDeviceError(
                f"jit: got {what} {device} in a function that is compiled for {self.device}, "
                "and a compiled function runs on one device",
                construct="move_to",
                remedy=f'Outside the function, move it with move_to("{self.device}")',
            )

    def require_data(self, tensor: Tensor) -> None:
        """Capture an eager tensor's data as a constant, because code at compile time reads them.

        The guard of the program then compares the data before each call. Nothing is captured for a
        tensor that was made while compiling.

        Raises:
            NeedsValue: the data are known only when the function runs.
        """
        slot = self.inputs.slots.get(id(tensor))
        written = slot is not None and slot.written
        if id(tensor) in self.owned.tensors and not written:
            return
        if isinstance(tensor, Parameter) or written:
            raise NeedsValue(
                "got the data of a Parameter (or of a Tensor that the function writes), which is "
                "known only when the compiled function runs"
            )
        self.captures.contents(tensor)

    # ---- implemented by Evaluator: these evaluate code or append nodes that run Python -----------

    def check_hash(self, tensor: GraphTensor) -> None:
        """Raise if a graph tensor to be hashed may be a Tensor from outside the function."""
        raise NotImplementedError

    def before_write(self, tensor: Tensor) -> None:
        """Raise if an in-place write to a tensor could also change another variable's value."""
        raise NotImplementedError

    def after_write(self, tensor: Tensor) -> None:
        """Append a node that stores a tensor's new value in the Python Tensor that stands for it.

        Nothing is appended if there is none. An earlier graph node that ran Python code may have
        passed it such a Tensor, which the code may have kept.
        """
        raise NotImplementedError

    def call(self, function: Value, args: Args, kwargs: Kwargs) -> Value:
        """Trace a call of any callable into the graph and return the result of the call."""
        raise NotImplementedError

    def write_slot(self, tensor: Tensor, value: GraphTensor) -> None:
        """Trace an in-place write to an eager tensor: `value` is its graph value from now on.

        The journal keeps the earlier value, so that a branch can undo the write.

        Raises:
            UnsupportedSyntaxError: the value has another shape. Code that reads the tensor's shape
                while compiling sees the old one.
        """
        self.before_write(tensor)
        slot = self.inputs.slot(tensor)
        if value.shape != slot.incoming.shape:
            raise UnsupportedSyntaxError(
                f"set_data: got a value of shape {value.shape} for a Tensor of shape "
                f"{slot.incoming.shape} inside jit",
                construct="set_data",
                remedy="Make the Tensor as large as it gets and write a part of it, or change its "
                "shape outside the compiled function",
            )
        self.journal.touch("slot", slot)
        slot.current = value._builder.tensor(value._id)
        self.after_write(tensor)
