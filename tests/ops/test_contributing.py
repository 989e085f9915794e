"""The examples in CONTRIBUTING.md of adding an op and a spelling work as shown."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.backend.codegen import C, print_function, trace_scalar
from duograph.dtype import float32
from duograph.op import OPS, Op
from duograph.ops import FAMILIES
from duograph.ops.primitive import spelled_classes

CONTRIBUTING = pathlib.Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
IMPORTS = """\
from duograph.dtype import FLOATING
from duograph.op import op
from duograph.ops.elementwise import square
from duograph.ops.powers import sqrt
from duograph.tensor import Tensor
"""


def examples() -> list[str]:
    section = CONTRIBUTING.read_text().split("## How to add an op")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.fixture
def family() -> Iterator[ModuleType]:
    """A module made of the two examples; its op is removed afterwards."""
    module = ModuleType("family")
    exec(IMPORTS + "\n".join(examples()), vars(module))
    yield module
    del OPS["squareplus"]


def test_examples_are_short() -> None:
    new_op, new_spelling = examples()
    assert len(new_op.splitlines()) < 15
    assert len(new_spelling.splitlines()) == 1


def test_new_op_has_value_type_and_gradient(family: ModuleType) -> None:
    x = ms.Tensor(np.array([[0.0, 1.5]], np.float32))
    np.testing.assert_allclose(family.squareplus(x).asnumpy(), [[1.0, 2.0]])
    np.testing.assert_allclose(family.squareplus(x, 1.0).asnumpy(), [[0.5, 1.6513878]], rtol=1e-6)
    assert family.squareplus(x).dtype is float32
    gradient = ms.grad(lambda v: family.squareplus(v).sum())(x)
    np.testing.assert_allclose(gradient.asnumpy(), [[0.5, 0.8]], rtol=1e-6)
    with pytest.raises(TypeError, match=r"squareplus: .*int32"):
        family.squareplus(ms.Tensor([1], ms.int32))


def test_new_op_has_a_kernel(family: ModuleType) -> None:
    op = family.squareplus
    expression = trace_scalar(op.scalar_rule, [("input", float32)], {"b": 4.0}, float32)
    printed = print_function(C, "squareplus", [("input", float32)], expression)
    assert "sqrt" in printed


def test_new_op_has_a_primitive_class_and_a_method(family: ModuleType) -> None:
    primitive = spelled_classes([family])["SquarePlus"]
    x = ms.Tensor([0.0, 1.5])
    np.testing.assert_allclose(primitive()(x).asnumpy(), [1.0, 2.0])
    np.testing.assert_allclose(primitive(b=1.0)(x).asnumpy(), family.squareplus(x, 1.0).asnumpy())
    assert family.squareplus.methods == ("squareplus",)


def test_new_spelling_is_the_same_function(family: ModuleType) -> None:
    assert family.smooth_relu is family.squareplus


def unexported(family: ModuleType, exported: set[str]) -> Iterator[str]:
    """Yield the names of what a family defines with an example and does not export."""
    for name, value in vars(family).items():
        is_own = getattr(value, "__module__", None) == family.__name__
        names = {name, value.name} if isinstance(value, Op) else {name}
        hidden = name.startswith("_") or hasattr(value, "tensor_methods")
        if is_own and not hidden and ">>> " in (value.__doc__ or "") and not names & exported:
            yield name


def test_what_is_documented_is_exported() -> None:
    exported = {name for family in FAMILIES for name in family.__all__}
    missing = {family.__name__: [*unexported(family, exported)] for family in FAMILIES}
    assert {k: v for k, v in missing.items() if v} == {}, "add the names to __all__"


@pytest.mark.parametrize(
    "made, shown",
    [
        (ms.ops.Add(), "Prim[Add]"),
        (ms.ops.Concat(1), "Prim[Concat]<axis=1>"),
        (ms.ops.Elu(alpha=0.5), "Prim[Elu]<alpha=0.5>"),
        (ms.ops.MatMul(True), "Prim[MatMul]<transpose_a=True, transpose_b=False>"),
        (ms.ops.ReduceSum(keep_dims=True), "Prim[ReduceSum]<keep_dims=True, skip_mode=False>"),
        (ms.ops.Primitive("mine"), "Prim[mine]"),
    ],
)
def test_repr_of_a_primitive_shows_its_arguments(made: ms.ops.Primitive, shown: str) -> None:
    assert repr(made) == shown


@pytest.mark.filterwarnings("ignore::duograph.errors.OptionWarning")
def test_attributes_of_a_primitive() -> None:
    add = ms.ops.Add().add_prim_attr("colour", 1).set_stage(0).set_device("CPU").recompute()
    assert add.attrs == {"colour": 1, "stage": 0, "primitive_target": "CPU", "recompute": True}
    assert add.colour == 1 and ms.ops.Add().attrs == {}
    assert repr(add.del_prim_attr("colour").del_prim_attr("absent")).startswith("Prim[Add]<stage=0")
    assert not hasattr(add, "colour") and add.init_attrs == {"name": "Add"}
    add.init_prim_io_names(["x", "y"], ["sum"])
    assert (add.input_names, add.output_names) == (["x", "y"], ["sum"])
    assert add.set_prim_instance_name("one").instance_name == "one"
    concat = ms.ops.Concat(0)
    concat.add_prim_attr("axis", 1)
    assert concat.attrs == {"axis": 1}


@pytest.mark.parametrize("base", [ms.ops.PrimitiveWithInfer, ms.ops.PrimitiveWithCheck])
@pytest.mark.parametrize("register", [ms.ops.prim_attr_register, ms.ops.prim_arg_register])
def test_constructors_of_a_users_primitive_are_registered(base: type, register: Any) -> None:
    class Scale(base):
        @register
        def __init__(self, factor: int, offset: int = 2) -> None:
            self.seen = self.factor + self.offset

    made = Scale(offset=3, factor=1)
    assert (made.seen, made.name, repr(made)) == (4, "Scale", "Prim[Scale]<factor=1, offset=3>")
    with pytest.raises(ms.errors.UnsupportedOpError, match=r"Scale: .* ops\.Custom"):
        made(ms.Tensor([1.0]))
    with pytest.raises(TypeError):
        Scale()
