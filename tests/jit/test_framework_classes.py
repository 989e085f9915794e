"""A program may replace methods of the framework's own classes, before and between calls."""

from __future__ import annotations

import abc
import collections.abc
import dataclasses
import decimal
import types
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops

X = Tensor([1.0, 2.0, 3.0])
WEIGHT = Parameter(Tensor([1.0, 1.0, 1.0]), name="w")
RELU = nn.ReLU()
PRIMITIVE = ops.ReLU()
FACTOR = 2


class Doubling(Tensor):
    """A Tensor with an operator of its own."""

    def __mul__(self, other: Any) -> Tensor:
        return Tensor.__mul__(self, other) * 2


class Derived(nn.ReLU):
    """Calls the method of the framework's class."""

    def construct(self, x: Tensor) -> Any:
        return super().construct(x)


DOUBLING = Doubling([1.0, 2.0, 3.0])
DERIVED = Derived()


def item(self: Tensor) -> float:
    return 9.0


def truth(a: Tensor) -> Tensor:
    return a if a.sum() else a * 7


def kind(a: Tensor) -> Tensor:
    return a * 2 if a.dtype == ms.float32 else a * 3


def optional(a: Tensor) -> Tensor:
    return a * RELU.factor if hasattr(RELU, "factor") else a


def in_place(a: Tensor) -> Tensor:
    a = a * 1
    a += 1
    a += 2
    return a


ORIGINAL_CALL = nn.Cell.__call__

# What is replaced, by what, and a function that uses it.
CASES: list[tuple[type, str, object, Callable[[Any], Any]]] = [
    (Tensor, "__add__", lambda s, o: s - 100, lambda a: a + a),
    (Tensor, "__mul__", lambda s, o: s - 100, lambda a: a * 2),
    (Tensor, "__rmul__", lambda s, o: s - 100, lambda a: 2 * a),
    (Tensor, "__rsub__", lambda s, o: s - 100, lambda a: 2 - a),
    (Tensor, "__matmul__", lambda s, o: s - 100, lambda a: a @ a),
    (Tensor, "__pow__", lambda s, o: s - 100, lambda a: a**2),
    (Tensor, "__neg__", lambda s: s - 100, lambda a: -a),
    (Tensor, "__lt__", lambda s, o: s - 100, lambda a: a < 2),
    (Tensor, "__gt__", lambda s, o: s - 100, lambda a: 2 < a),
    (Tensor, "__eq__", lambda s, o: s - 100, lambda a: a == 2),
    (Tensor, "__eq__", lambda s, o: s - 100, lambda a: 2 == a),
    (Tensor, "__ne__", lambda s, o: s - 100, lambda a: 2 != a),
    (Tensor, "__pow__", lambda s, o, m=None: s - 100, lambda a: pow(a, 2)),
    (Tensor, "__iadd__", lambda s, o: s - 100, in_place),
    (Tensor, "__iadd__", lambda s, o: NotImplemented if o == 1 else s - 100, in_place),
    (Tensor, "__add__", lambda s, o: s - 100, in_place),
    (Tensor, "__getitem__", lambda s, o: s - 100, lambda a: a[0]),
    (Tensor, "__len__", lambda s: 77, lambda a: a * len(a)),
    (Tensor, "__iter__", lambda s: iter([1, 2]), lambda a: a * sum(v for v in a)),
    (Tensor, "__abs__", lambda s: s - 100, lambda a: abs(a)),
    (Tensor, "__contains__", lambda s, o: True, lambda a: a * 3 if 99.0 in a else a),
    (Tensor, "__bool__", lambda s: False, truth),
    (Tensor, "__float__", lambda s: 9.0, lambda a: a * float(a[0])),
    (Tensor, "__int__", lambda s: 9, lambda a: a * int(a[0])),
    (Tensor, "sum", lambda s: s * 7, lambda a: a.sum()),
    (Tensor, "shape", property(lambda s: (1, 2, 3, 4)), lambda a: a * len(a.shape)),
    (Tensor, "dtype", property(lambda s: ms.int32), kind),
    (Tensor, "T", property(lambda s: s * 5), lambda a: a.T),
    (Tensor, "of_mine", lambda s: s * 5, lambda a: a.of_mine() if hasattr(a, "of_mine") else a),
    (Tensor, "sum", lambda s: s * 7, lambda a: Tensor.sum(a)),
    (Tensor, "sum", lambda s: s * 7, lambda a: next(map(Tensor.sum, [a]))),
    (Tensor, "item", item, lambda a: a * a[0].item()),
    (Tensor, "__getattr__", lambda s, n: s * 5, lambda a: getattr(a, "of_mine", a)),
    (Doubling, "__mul__", lambda s, o: o - 100, lambda a: DOUBLING * a),
    (Doubling, "__add__", lambda s, o: o - 100, lambda a: DOUBLING + a),
    (Doubling, "__len__", lambda s: 77, lambda a: a * len(DOUBLING)),
    (Parameter, "sum", lambda s: 50.0, lambda a: a * WEIGHT.sum()),
    (Parameter, "__mul__", lambda s, o: o * 50, lambda a: WEIGHT * a),
    (nn.ReLU, "construct", lambda s, a: a * 9, lambda a: RELU(a - 2)),
    (nn.ReLU, "construct", lambda s, a: a * 9, lambda a: nn.ReLU.construct(RELU, a - 2)),
    (nn.ReLU, "construct", lambda s, a: a * 9, lambda a: DERIVED(a - 2)),
    (nn.ReLU, "__call__", lambda s, a: a * 9, lambda a: RELU(a - 2)),
    (nn.Cell, "__call__", lambda s, a: a * 9, lambda a: RELU(a - 2)),
    (nn.Cell, "__call__", lambda s, a: ORIGINAL_CALL(s, a) * 9, lambda a: RELU(a - 2)),
    (nn.Cell, "factor", 4.0, optional),
    (nn.Cell, "trainable_params", lambda s: [3.0], lambda a: a + sum(RELU.trainable_params())),
    (ops.ReLU, "__call__", lambda s, a: a * 9, lambda a: ops.ReLU()(a - 2)),
]  # fmt: skip
IDS = [f"{n}-{c[0].__name__}.{c[1]}" for n, c in enumerate(CASES)]


@pytest.fixture
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    owner, name, value, function = request.param
    return function, lambda: monkeypatch.setattr(owner, name, value, raising=False)


def text(value: object) -> str:
    return repr(value.asnumpy() if isinstance(value, Tensor) else value)


@pytest.mark.parametrize("case", CASES, ids=IDS, indirect=True)
def test_replaced_before_the_first_call(case: Any) -> None:
    function, replace = case
    replace()
    assert text(ms.jit(function)(X)) == text(function(X))


@pytest.mark.parametrize("case", CASES, ids=IDS, indirect=True)
def test_replaced_between_calls(restored: None, case: Any) -> None:
    function, replace = case
    ms.set_context(stale_captures="recompile")
    compiled = ms.jit(function)
    before = text(compiled(X))
    replace()
    want = text(function(X))
    assert want != before
    assert text(compiled(X)) == want


@pytest.mark.parametrize("case", CASES, ids=IDS, indirect=True)
def test_the_old_result_comes_with_a_warning(restored: None, case: Any) -> None:
    function, replace = case
    ms.set_context(stale_captures="warn")
    compiled = ms.jit(function)
    before = text(compiled(X))
    replace()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        after = text(compiled(X))
    told = any("when the function was compiled" in str(w.message) for w in said)
    assert after == text(function(X)) or (after == before and told)


@pytest.mark.parametrize("function", [lambda a: a * 2, lambda a: a * FACTOR], ids=["no", "global"])
def test_one_warning_per_replaced_method(
    restored: None, function: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another method is replaced meanwhile; again after the old method was there."""
    ms.set_context(stale_captures="warn")
    compiled = ms.jit(function)
    compiled(X)
    counts = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as said, monkeypatch.context() as patch:
            warnings.simplefilter("always")
            patch.setattr(Tensor, "__mul__", lambda s, o: s - 100)
            for k in range(4):
                compiled(X)
                patch.setattr(Tensor, f"other_{k}", k, raising=False)
            counts.append(len(said))
        compiled(X)
    assert counts == [1, 1]


def test_the_code_of_the_compiled_function(restored: None) -> None:
    """It is compared if the function reads anything from outside."""

    def function(a: Tensor) -> Tensor:
        return a * FACTOR

    ms.set_context(stale_captures="recompile")
    compiled = ms.jit(function)
    np.testing.assert_array_equal(compiled(X), [2, 4, 6])
    function.__code__ = (lambda a: a * 3).__code__
    np.testing.assert_array_equal(compiled(X), [3, 6, 9])


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a * float(decimal.Decimal(1) / decimal.Decimal(3)),
        lambda a: a * float(decimal.Decimal(2).sqrt()),
        lambda a: a * float(sum([decimal.Decimal(1) / 7, decimal.Decimal(2)])),
        lambda a: a * float(+decimal.Decimal("1.23456789")),
    ],
    ids=["division", "root", "sum", "plus"],
)
def test_the_precision_of_decimals(
    restored: None, function: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    ms.set_context(stale_captures="recompile")
    compiled = ms.jit(function)
    with decimal.localcontext() as now:
        compiled(X)
        now.prec = 3
        np.testing.assert_array_equal(compiled(X), function(X))


@pytest.mark.parametrize(
    "of",
    [
        lambda p: sum(getattr(p, f.name) for f in dataclasses.fields(p)),
        lambda p: len(dataclasses.asdict(p)),
        lambda p: len(dataclasses.astuple(p)),
        lambda p: len(dataclasses.asdict([p][0])),
    ],
    ids=["fields", "asdict", "astuple", "asdict of an item"],
)
def test_the_fields_of_a_dataclass(restored: None, of: Callable[[Any], float]) -> None:
    @dataclasses.dataclass
    class Point:
        a: float = 1.0
        b: float = 2.0

    point = Point()
    ms.set_context(stale_captures="recompile")
    compiled = ms.jit(lambda a: a * of(point))
    before = compiled(X).asnumpy()
    del Point.__dataclass_fields__["b"]
    assert not np.array_equal(before, (X * of(point)).asnumpy())
    np.testing.assert_array_equal(compiled(X), X * of(point))


def test_reports_name_no_methods_of_the_framework() -> None:
    compiled = ms.jit(lambda a: a * a + a.sum())
    compiled(X)
    assert compiled.explain(X).captures == []


@pytest.mark.parametrize("base", [abc.ABC, collections.abc.Sized, Generic[TypeVar("V")]], ids=str)
@pytest.mark.parametrize("kind", [Tensor, Parameter])
def test_tensors_with_abstract_bases(kind: Any, base: Any) -> None:
    made: Any = types.new_class("Made", (kind, base))
    x = made(Tensor([1.0, 2.0]))
    assert isinstance(x, kind) and isinstance(x, base if isinstance(base, type) else Generic)
    np.testing.assert_array_equal(ms.jit(lambda a: a * x)(Tensor([3.0, 4.0])), [3, 8])


def test_a_tensor_is_no_instance_of_an_abstract_subclass() -> None:
    class Abstract(Tensor, abc.ABC):
        @abc.abstractmethod
        def half(self) -> Tensor: ...

    assert not isinstance(X, Abstract)
    with pytest.raises(TypeError, match="half"):
        Abstract([1.0])


@pytest.mark.parametrize(
    "kind, function",
    [
        (nn.ReLU, lambda a: a * RELU.ratio),
        (nn.Cell, lambda a: a * RELU.ratio),
        (ops.ReLU, lambda a: a * PRIMITIVE.ratio),
        (Tensor, lambda a: a * a.ratio),
        (Parameter, lambda a: a * WEIGHT.ratio),
    ],
)
def test_a_number_that_a_program_gives_to_a_class(
    restored: None, kind: Any, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ms.set_context(stale_captures="recompile")
    compiled = ms.jit(function)
    for ratio in (2.0, 3.0):
        monkeypatch.setattr(kind, "ratio", ratio, raising=False)
        np.testing.assert_array_equal(compiled(X), X * ratio)
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="ratio"):
        compiled(X)
