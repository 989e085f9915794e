"""Templates of what branches leave to the code after them, and the values made from them.

`join` makes the templates before the `switch` node exists, so they hold placeholders of its
results; `with_results` replaces these. A template of a list or dict knows the objects that it
stands for, so that variables that refer to one object still do so after the branches. Nothing here
decides whether two values can be joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...runtime_state import thread_state
from ..types import Value
from ..values.flow import Flow, Maybe
from ..values.functions import Choice
from ..values.nested import tuple_like

if TYPE_CHECKING:
    from .join import Join

# (number of a branch, the list or dict at its end), for one or both branches.
Ends: TypeAlias = Sequence[tuple[int, Value]]


class Placeholder:
    """Placeholder, in the joined value of two branches, for result `index` of the `switch` node."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Joined:
    """Base class of templates of lists and dicts that branches leave to the code after them.

    Attributes:
        join: the join that made the template.
        ends: (number of a branch, the list or dict at its end) for both branches, or for the only
            one whose value may be read later.
        of: those of these lists or dicts that existed before the branches.
        made: for each call of `with_results`, its results and the list or dict that it returned.
    """

    def _describe(self, join: Join, ends: Ends, of: Sequence[Value]) -> None:
        self.join, self.ends, self.of = join, ends, of
        self.made: list[tuple[Value, Value]] = []
        for k, value in ends:
            join.joined[k].setdefault(id(value), []).append(self)  # type: ignore[arg-type]

    def partners(self) -> list[Value]:
        """Return the templates of both branches that contain an object of this one, but this one.

        In one branch, the variable of this template and those of the partners are one object.
        """
        return [
            template
            for k, value in self.ends
            for template in self.join.joined[k][id(value)]
            if template is not self and len(template.ends) > 1
        ]


class JoinedList(list[Value], _Joined):
    """The template of a list; see `_Joined`."""

    def __init__(
        self, items: Iterable[Value], join: Join, ends: Ends, of: Sequence[Value] = ()
    ) -> None:
        super().__init__(items)
        self._describe(join, ends, of)


class JoinedDict(dict[Value, Value], _Joined):
    """The template of a dict; see `_Joined`."""

    def __init__(
        self, items: dict[Value, Value], join: Join, ends: Ends, of: Sequence[Value] = ()
    ) -> None:
        super().__init__(items)
        self._describe(join, ends, of)


def _container(template: JoinedList | JoinedDict, results: Value) -> Value:
    """Return the list or dict that a template stands for, for the results of the `switch`.

    Variables that refer to one object in each branch get one object. If variables refer to one
    object in one of the branches only, or an object from before the branches is one of two, a
    change could not be repeated on the right one: evaluated code may then not change the result.
    """
    for given, made in template.made:
        if given is results:
            return made
    partners = template.partners()
    if len(template.ends) == 1 and len(partners) == 1:
        # read only where this branch ran, in which the partner's variable is the same object
        found = with_results(partners[0], results)
    else:
        found = (
            {k: with_results(v, results) for k, v in template.items()}
            if isinstance(template, dict)
            else [with_results(v, results) for v in template]
        )
        owned = thread_state.builder.evaluation.owned  # type: ignore[union-attr]
        owned.add(found)
        if template.of or partners:
            owned.represent(found, template.of)
    template.made.append((results, found))
    return found


def with_results(template: Value, results: Value) -> Value:
    """Return a joined value with its `Placeholder`s replaced by the results of the `switch`.

    A container without placeholders is returned itself.
    """
    if isinstance(template, Placeholder):
        return results[template.index]
    if isinstance(template, (JoinedList, JoinedDict)):
        return _container(template, results)
    if isinstance(template, (list, tuple)):
        items = [with_results(v, results) for v in template]
        if all(a is b for a, b in zip(items, template)):
            return template
        owned = thread_state.builder.evaluation.owned  # type: ignore[union-attr]
        if isinstance(template, list):
            return owned.add(items)
        return owned.represent(tuple_like(template, items))
    if isinstance(template, dict):
        named = {k: with_results(v, results) for k, v in template.items()}
        if all(named[k] is v for k, v in template.items()):
            return template
        return thread_state.builder.evaluation.owned.add(named)  # type: ignore[union-attr]
    if isinstance(template, Choice):
        parts = (template.cond, template.orelse, template.then)
        return Choice(*(with_results(v, results) for v in parts))
    if isinstance(template, Maybe):
        value, bound = with_results(template.value, results), with_results(template.bound, results)
        return Maybe(template.name, value, bound)
    if isinstance(template, Flow):
        ret, brk, cont, value = (
            with_results(v, results)
            for v in (template.ret, template.brk, template.cont, template.value)
        )
        return Flow(ret, brk, cont, value, template.dead)
    return template
