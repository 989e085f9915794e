"""The parts of a cell of the outside matrix: kind, question, change, and how a program is run."""

from __future__ import annotations

import dataclasses

__all__ = ["GRADIENTS", "LEVELS", "POLICIES", "SYNTAX", "Cell", "Change", "Config", "Kind"]

POLICIES = ("recompile", "warn", "error", "ignore")
LEVELS = ("O0", "O1")
SYNTAX = ("LAX", "STRICT")
# no gradient; `value_and_grad` of the compiled function; a compiled function that calls it
GRADIENTS = ("none", "outside", "inside")


@dataclasses.dataclass(frozen=True)
class Change:
    """Statements that change an outside object between two calls or during one.

    Attributes:
        name: names the change in the table.
        code: statements; `{o}` is the object, `{n}` a float that differs from call to call.
        rebinds: the statements assign to the location `{o}` itself.
        only: the places where the change makes sense ("outside", "inside"); "" for all.
        state: compiled code sees the change at every policy, because it is state and no constant.
    """

    name: str
    code: str
    rebinds: bool = False
    only: str = ""
    state: bool = False


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of outside object, with the questions it answers and the ways to change it.

    Attributes:
        name: names the kind in the table.
        make: an expression for a new object; `n` is a float that decides its contents.
        asks: names of the groups of common questions that apply.
        changes: ways to change the object; assigning a new one to its location is always added.
        setup: definitions that `make` needs.
        own: questions of this kind alone, from name to statements that assign `k`.
        state: contents are state: compiled code sees them at every policy.
        used: asking changes the object, so there is no old value: calls are right at every policy.
        roots: further expressions to compare after each call.
        names: words of which one appears in every warning about a change, besides those of the
            location.
        slow: cells of this kind take long; only the full run has them.
    """

    name: str
    make: str
    asks: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    setup: str = ""
    own: dict[str, str] = dataclasses.field(default_factory=dict)
    state: bool = False
    used: bool = False
    roots: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    slow: bool = False


@dataclasses.dataclass(frozen=True)
class Config:
    """How a program is compiled and called."""

    policy: str
    level: str
    syntax: str
    gradient: str

    def __str__(self) -> str:
        return f"{self.policy} {self.level} {self.syntax} gradient={self.gradient}"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell: a kind of object at a location, a question, a change and where it happens."""

    kind: Kind
    question: str
    code: str
    location: str
    change: Change
    where: str
    config: Config

    def __str__(self) -> str:
        return (
            f"{self.kind.name} | {self.question} | {self.location} | {self.change.name} | "
            f"{self.where} | {self.config}"
        )
