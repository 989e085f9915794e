"""What a compiled function asks of outside objects, and that changes between calls.

Each row is a program that line-by-line execution answers otherwise after the change.
"""

from __future__ import annotations

import textwrap

import pytest
from jit.changed import check

# thing: (what precedes the function, its body, the change, what undoes the program)
ROWS: dict[str, tuple[str, str, str, str]] = {}


def rows(setup: str, undo: str = "", **given: tuple[str, str]) -> None:
    """Add a row to `ROWS` for each keyword, whose value is (body, change).

    All these rows have the same `setup` and `undo`.
    """
    for name, (body, change) in given.items():
        key = name.replace("_", " ")
        assert key not in ROWS
        ROWS[key] = (setup, body, change, undo)


def row(name: str, setup: str, body: str, change: str, undo: str = "") -> None:
    assert name not in ROWS
    ROWS[name] = (setup, body, change, undo)


# ---- methods of a class that decide order and equality ----------------------------------------

ORDERED = """
import dataclasses
SIGN = [1]

PLAIN = [(1, 2)]

class L:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return SIGN[0] * self.v < SIGN[0] * other.v

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return SIGN[0] == 1 and self.v == getattr(other, "v", other)

    def __radd__(self, other):
        return [len(other) + SIGN[0]]
"""
rows(
    ORDERED,
    order_of_sort=("s = [L(3), L(1)]\ns.sort()\nreturn x * s[0].v", "SIGN[0] = -1"),
    order_of_sort_by_a_key=("s = [3, 1]\ns.sort(key=L)\nreturn x * s[0]", "SIGN[0] = -1"),
    order_of_a_reversed_sort=(
        "s = [3, 1]\ns.sort(key=L, reverse=True)\nreturn x * s[0]", "SIGN[0] = -1"
    ),
    equality_in_a_nested_tuple=("return x * (2 if (1, L(1)) in [(1, L(1))] else 1)", "SIGN[0] = 0"),
    equality_of_tuples=("return x * (2 if (1, L(1)) == (1, L(1)) else 1)", "SIGN[0] = 0"),
    equality_of_lists=("return x * (2 if [1, (2, L(1))] != [1, (2, L(1))] else 1)", "SIGN[0] = 0"),
    equality_of_dicts=("return x * (2 if {'a': L(1)} == {'a': L(1)} else 1)", "SIGN[0] = 0"),
    equality_with_an_outside_list=("return x * (2 if PLAIN == [(1, L(2))] else 1)", "SIGN[0] = 0"),
    equality_among_values=("return x * (2 if L(1) in {'a': L(1)}.values() else 1)", "SIGN[0] = 0"),
    equality_in_a_count=("return x * [(1, L(1))].count((1, L(1)))", "SIGN[0] = 0"),
    order_of_tuples=("return x * (2 if (1, L(1)) < (1, L(2)) else 1)", "SIGN[0] = -1"),
    order_of_the_largest=("return x * max([(1, L(1)), (1, L(2))])[1].v", "SIGN[0] = -1"),
    order_of_sorted_tuples=("return x * sorted([(1, L(1)), (1, L(2))])[0][1].v", "SIGN[0] = -1"),
    equality_in_an_update=("s = set()\ns.update([L(1), L(1)])\nreturn x * len(s)", "SIGN[0] = 0"),
    equality_in_a_union=("return x * len({1}.union([L(1), L(1)]))", "SIGN[0] = 0"),
    equality_in_a_dict=(
        "d = {}\nd.update([(L(1), 1), (L(1), 2)])\nreturn x * len(d)", "SIGN[0] = 0"
    ),
    equality_of_tuples_as_keys=("return x * len({(1, (2, L(1))), (1, (2, L(1)))})", "SIGN[0] = 0"),
    addition_in_place_to_a_list=("s = [1]\ns += L(1)\nreturn x * s[0]", "SIGN[0] = 5"),
    new_addition_in_place_to_a_list=(
        "s = [1]\ntry:\n    s += N()\nexcept TypeError:\n    return x\nreturn x * s[0]",
        "N.__radd__ = lambda self, other: [7]",
    ),
)  # fmt: skip
ROWS["new addition in place to a list"] = (
    ORDERED + "class N:\n    pass\n", *ROWS["new addition in place to a list"][1:]
)  # fmt: skip
row(
    "__new__ of a dataclass",
    "import dataclasses\nK = [2]\n@dataclasses.dataclass\nclass Q:\n    a: int\n"
    "    def __new__(cls, *a):\n        made = object.__new__(cls)\n        made.k = K[0]\n"
    "        return made\n",
    "q = Q(4)\nreturn x * q.a * q.k",
    "K[0] = 3",
)


# ---- Parameters and Tensors --------------------------------------------------------------------

rows(
    "p = Parameter(Tensor([1.0]), name='p')\np.tag = [2.0]\n",
    attribute_of_a_parameter=("return x * p.tag[0]", "p.tag = [3.0]"),
    item_of_an_attribute_of_a_parameter=("return x * p.tag[0]", "p.tag[0] = 3.0"),
    deleted_attribute_of_a_parameter=("return x * (2 if hasattr(p, 'tag') else 1)", "del p.tag"),
    new_attribute_of_a_parameter=("return x * getattr(p, 'other', 2.0)", "p.other = 3.0"),
    attribute_that_hides_a_method=("return x * len(str(p.unique))", "p.unique = 3"),
    tried_attribute_of_a_parameter=(
        "try:\n    return x * p.other\nexcept AttributeError:\n    return x",
        "p.other = 3.0",
    ),
    shape_of_a_parameter=("return x * p.shape[0]", "p.set_data(Tensor([1.0, 2.0]), True)"),
    size_of_a_parameter=("return x * p.size", "p.set_data(Tensor([1.0, 2.0]), True)"),
    axes_of_a_parameter=("return x * p.ndim", "p.set_data(Tensor([[1.0]]), True)"),
    length_of_a_parameter=("return x * len(p)", "p.set_data(Tensor([1.0, 2.0]), True)"),
    dtype_of_a_parameter=("return x if p.dtype is ms.float32 else x * 2",
                          "p.set_dtype(ms.float16)"),
    name_of_a_parameter=("return x * len(p.name)", "p.name = 'other'"),
    flag_of_a_parameter=("return x * (2 if p.requires_grad else 1)", "p.requires_grad = False"),
    option_of_a_parameter=("return x * (2 if p.layerwise_parallel else 1)",
                           "p.layerwise_parallel = True"),
)  # fmt: skip
rows(
    "Tensor.scaled = lambda self, k=2: self * k\n",
    "del Tensor.scaled",
    method_given_to_tensor=("return x.scaled()", "Tensor.scaled = lambda self: self * 5"),
    defaults_of_a_method_given_to_tensor=("return x.scaled()", "Tensor.scaled.__defaults__ = (5,)"),
)
rows(
    "class A:\n    def __class_getitem__(cls, i):\n        return 2.0 + i\n"
    "class B(A):\n    pass\n",
    item_of_a_class=("return x * A[1]", "A.__class_getitem__ = classmethod(lambda cls, i: 4.0)"),
    item_of_a_derived_class=(
        "return x * B[1]", "B.__class_getitem__ = classmethod(lambda cls, i: 4.0)"
    ),
    item_of_a_class_by_a_static_method=(
        "return x * A[1]", "A.__class_getitem__ = staticmethod(lambda i: 4.0)"
    ),
    item_of_a_class_that_is_gone=(
        "try:\n    return x * A[1]\nexcept TypeError:\n    return x", "del A.__class_getitem__"
    ),
)  # fmt: skip
rows(
    "held = Tensor([1.0])\n",
    "del Tensor.scaled",
    new_method_of_tensor=("return x * (2 if hasattr(x, 'scaled') else 1)",
                          "Tensor.scaled = lambda self: self"),
    new_method_of_a_held_tensor=("return x * (2 if hasattr(held, 'scaled') else 1)",
                                 "Tensor.scaled = lambda self: self"),
)  # fmt: skip
rows(
    "Tensor.scale = property(lambda self: 2.0)\n",
    "del Tensor.scale",
    property_given_to_tensor=("return x * x.scale", "Tensor.scale = property(lambda self: 3.0)"),
)

# ---- Cells -------------------------------------------------------------------------------------

NET = """class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.v = 2.0
        self.fc = nn.Dense(2, 2)
    def construct(self, x):
        return self.fc(x) * self.v
net = Net()
relu = nn.ReLU()
dense = nn.Dense(2, 2)
"""
rows(
    NET,
    construct_of_an_object=("return net(x)", "net.construct = lambda x: x * 5"),
    construct_of_a_layer=("return dense(x)", "dense.construct = lambda x: x * 5"),
    construct_of_a_child=("return net(x)", "net.fc.construct = lambda x: x * 5"),
    call_of_a_class=("return net(x)", "Net.__call__ = lambda self, x: x * 5"),
    code_of_construct=("return net(x)", "def go(self, x):\n    return x * 5\n"
                       "Net.construct.__code__ = go.__code__"),
    class_of_a_cell=("return x * (2 if isinstance(net, nn.ReLU) else 1)",
                     "class Both(Net, nn.ReLU):\n    pass\nnet.__class__ = Both"),
    to_float=("return dense(x * 1.00123)", "dense.to_float(ms.float16)"),
    amp=("return net(x * 1.00123)", "ms.amp.auto_mixed_precision(net, 'O3')"),
    activation=("return dense(x)", "dense.activation, dense.activation_flag = nn.Sigmoid(), True"),
    flags=("return x * len(net.get_flags())", "net.add_flags(new=True)"),
    buffers=("return x * len(list(net.buffers()))", "net.register_buffer('b', Tensor([1.0]))"),
    buffers_of_children=("return x * len(list(net.named_buffers()))",
                         "net.fc.register_buffer('b', Tensor([1.0]))"),
    state=("return x * len(net.state_dict())", "net.register_buffer('b', Tensor([1.0]))"),
    parameters=("return x * len(list(net.get_parameters()))", "net.more = nn.Dense(2, 2)"),
    trained=("return x * len(net.trainable_params())", "net.fc.weight.requires_grad = False"),
    children=("return x * len(list(net.cells()))", "net.more = nn.ReLU()"),
    new_attribute_of_a_class=("return x * getattr(net, 'other', 2.0)", "Net.other = 3.0"),
    new_property_of_a_cell=("return net(x)", "Net.v = property(lambda self: 7.0)"),
    cell_in_a_list=("return x * (2 if net in [relu] else 1)", "Net.__eq__ = lambda s, o: True"),
    cells_that_count=("return x * (2 if all([net, relu]) else 1)",
                      "Net.__bool__ = lambda s: False"),
)  # fmt: skip
rows(
    NET + "kept = nn.Dense.construct\n",
    "nn.Dense.construct = kept",
    construct_of_a_class=("return dense(x)", "nn.Dense.construct = lambda self, x: x * 5"),
    construct_of_a_childs_class=("return net(x)", "nn.Dense.construct = lambda self, x: x * 5"),
)
rows(
    NET + "nn.Cell.scaled = lambda self, x: x * 2\n",
    "del nn.Cell.scaled",
    method_given_to_cell=("return net.scaled(x)", "nn.Cell.scaled = lambda self, x: x * 5"),
)
MADE = """K = 2.0
class Made(nn.Cell):
    def __init__(self, more=1.0):
        super().__init__()
        self.k = K * more
        self.relu = nn.ReLU()
    def construct(self, x):
        return self.relu(x) * self.k
"""
rows(
    MADE,
    init_of_a_cell_made_inside_reads=("return Made(2.0)(x)", "K = 5.0"),
    init_of_a_cell_made_inside=("return Made()(x)", "def init(self):\n"
                                "    nn.Cell.__init__(self)\n    self.k = 7.0\n"
                                "    self.relu = nn.ReLU()\nMade.__init__ = init"),
)  # fmt: skip

# ---- classes, their bases and how they make objects --------------------------------------------

BASES = """class A:
    def go(self, x):
        return x * 2
class B:
    def go(self, x):
        return x * 5
class C(A):
    pass
class NA(nn.Cell):
    construct = A.go
class NB(nn.Cell):
    construct = B.go
class NC(NA):
    pass
class EA(Exception):
    pass
class EB(Exception):
    pass
class EC(EA):
    pass
o, net = C(), NC()
"""
rows(
    BASES,
    bases_and_a_method=("return o.go(x)", "C.__bases__ = (B,)"),
    bases_and_an_object_made_inside=("return C().go(x)", "C.__bases__ = (B,)"),
    bases_of_a_cell=("return net(x)", "NC.__bases__ = (NB,)"),
    bases_and_isinstance=("return x * (2 if isinstance(o, B) else 1)", "C.__bases__ = (B,)"),
    bases_and_isinstance_of_a_cell=("return x * (2 if isinstance(net, NB) else 1)",
                                    "NC.__bases__ = (NB,)"),
    bases_and_an_object_asked_inside=("return x * (2 if isinstance(C(), B) else 1)",
                                      "C.__bases__ = (B,)"),
    bases_and_issubclass=("return x * (2 if issubclass(C, B) else 1)", "C.__bases__ = (B,)"),
    bases_read=("return x * (2 if C.__mro__[1] is B else 1)", "C.__bases__ = (B,)"),
    bases_of_an_exception=("try:\n    raise EC\nexcept EB:\n    return x * 2\n"
                           "except EA:\n    return x", "EC.__bases__ = (EB,)"),
    registered_class=("return x * (2 if isinstance(o, collections.abc.Sequence) else 1)",
                      "collections.abc.Sequence.register(C)"),
)  # fmt: skip
META = """K = 2.0
TABLE = {"other": 2.0}
class Plain(type):
    pass
class Meta(type):
    @property
    def scale(cls):
        return K * cls.factor
    def __getattr__(cls, name):
        return TABLE[name]
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.of_meta = K
        return made
class C(metaclass=Meta):
    factor = 1.0
class D(metaclass=Plain):
    of_meta = 2.0
def call(cls, *args):
    made = type.__call__(cls, *args)
    made.of_meta = 7.0
    return made
class Abstract(abc.ABC):
    def __init__(self):
        self.k = K
class Derived(Abstract):
    pass
"""
rows(
    META,
    property_of_a_metaclass=("return x * C.scale", "K = 5.0"),
    attribute_in_a_property_of_a_metaclass=("return x * C.scale", "C.factor = 5.0"),
    getattr_of_a_metaclass=("return x * C.other", "TABLE['other'] = 5.0"),
    call_of_a_metaclass_reads=("return x * C().of_meta", "K = 5.0"),
    call_of_a_metaclass=("return x * C().of_meta", "Meta.__call__ = call"),
    new_call_of_a_metaclass=("return x * D().of_meta", "Plain.__call__ = call"),
    init_of_an_abstract_class_reads=("return x * Derived().k", "K = 5.0"),
)
EQUAL = """for kind in (C, Late):
    kind.__hash__ = lambda self: 1
    kind.__eq__ = lambda self, other: True
"""
CLASSES = """class Base:
    items = [2.0]
    table = {"a": 2.0}
    k = 2.0
class C(Base):
    def __init__(self):
        self.a = 1.0
class Open:
    def __getattr__(self, name):
        return K
K = 2.0
class Field:
    k = 2.0
    def __get__(self, owner, kind):
        return self.k * K
class Holder:
    d = Field()
class Late:
    def __init__(self):
        self.k = 1.0
class Matched:
    __match_args__ = ("a",)
    a, b = 2.0, 3.0
@dataclasses.dataclass
class Data:
    a: float = 2.0
class Error(Exception):
    def __init__(self, a):
        self.a = a
Pair = collections.namedtuple("Pair", "a b", defaults=(2.0,))
class Items(list):
    def __init__(self, items):
        super().__init__(items)
        self.k = K
class Partial(functools.partial):
    pass
class Static:
    __call__ = staticmethod(lambda x: x * 2)
class Unfinished(abc.ABC):
    @abc.abstractmethod
    def go(self):
        pass
class Ordered:
    def __init__(self, k):
        self.k = k
    def __lt__(self, other):
        return self.k < other.k
class Arrays:
    def __array__(self, *args, **options):
        return np.float32([4.0])
class Indexed:
    def __len__(self):
        return 1
    def __getitem__(self, i):
        return [5.0][i]
class Mode(enum.Enum):
    A = 2.0
    B = 3.0
o, q, late, holder, data, other = Open(), C(), Late(), Holder(), Data(), Data()
static, arrays, indexed = Static(), Arrays(), Indexed()
part = Partial(lambda k, x: x * k, 2.0)
factory = collections.defaultdict(lambda: 2.0)
"""
rows(
    CLASSES,
    item_of_an_inherited_list=("return x * C.items[0]", "Base.items[0] = 5.0"),
    item_of_an_inherited_dict=("return x * C.table['a']", "Base.table['a'] = 5.0"),
    inherited_number=("return x * C.k", "Base.k = 5.0"),
    attribute_beside_getattr=("return x * o.other", "Open.other = 5.0"),
    getattr_of_an_object_made_inside=("return x * Open().other", "K = 5.0"),
    get_of_a_descriptor=("return x * holder.d", "Field.__get__ = lambda self, o, t: 5.0"),
    get_of_a_descriptor_of_an_object_made_inside=("return x * Holder().d", "K = 5.0"),
    get_of_a_descriptor_of_a_class=("return x * Holder.d", "K = 5.0"),
    attribute_of_a_descriptor=("return x * holder.d", "Holder.__dict__['d'].k = 5.0"),
    new_property=("late.k = 2.0\nreturn x * late.k",
                  "Late.k = property(lambda self: 7.0, lambda self, value: None)"),
    match_args=("match late:\n    case Late(a):\n        return x * a\nreturn x",
                "Late.__match_args__ = ('k',)"),
    other_match_args=("match Matched():\n    case Matched(a):\n        return x * a\nreturn x",
                      "Matched.__match_args__ = ('b',)"),
    defaults_of_a_dataclass=("return x * Data().a", "Data.__init__.__defaults__ = (5.0,)"),
    init_of_a_dataclass=("return x * Data().a",
                         "def init(self):\n    self.a = 5.0\nData.__init__ = init"),
    setattr_of_a_dataclass=("return x * Data().a", "def put(self, name, value):\n"
                            "    object.__setattr__(self, name, K)\n"
                            "Data.__setattr__ = put\nK = 7.0"),
    equality_of_a_dataclass=("return x * (2 if data == other else 1)",
                             "Data.__eq__ = lambda self, o: False"),
    text_of_a_dataclass=("return x * len(repr(data))", "Data.__repr__ = lambda self: 'a'"),
    init_of_an_exception=("try:\n    raise Error(2.0)\nexcept Error as e:\n    return x * e.a",
                          "def init(self, a):\n    self.a = 5.0\nError.__init__ = init"),
    defaults_of_a_named_tuple=("return x * Pair(1.0).b", "Pair.__new__.__defaults__ = (5.0,)"),
    init_of_a_list=("return x * Items([1.0]).k", "K = 5.0"),
    new_init=("return x * getattr(Matched(), 'c', 1.0)",
              "def init(self):\n    self.c = 5.0\nMatched.__init__ = init"),
    static_call=("return static(x)", "Static.__call__ = staticmethod(lambda x: x * 5)"),
    abstract_class=("try:\n    Unfinished()\nexcept TypeError:\n    return x * 2\nreturn x",
                    "Unfinished.__abstractmethods__ = frozenset()"),
    sorted_list=("made = [Ordered(3.0), Ordered(2.0)]\nmade.sort()\nreturn x * made[0].k",
                 "Ordered.__lt__ = lambda self, o: self.k > o.k"),
    set_of_objects=("return x * len(set([late, q]))", EQUAL),
    set_display=("return x * len({late, q})", EQUAL),
    dict_of_pairs=("return x * len(dict([(late, 1), (q, 2)]))", EQUAL),
    key_of_a_dict=("made = {late: 1}\nmade[q] = 2\nreturn x * len(made)", EQUAL),
    array_of_an_object=("return x * Tensor(arrays)",
                        "Arrays.__array__ = lambda self, *a, **k: np.float32([9.0])"),
    sequence_pattern=("match indexed:\n    case [a]:\n        return x * a\nreturn x",
                      "collections.abc.Sequence.register(Indexed)"),
    call_of_a_partial=("return part(x)", "Partial.__call__ = lambda self, x: x * 5"),
    items_that_are_equal=("return x * (2 if q in [late] else 1)", "C.__eq__ = lambda s, o: True"),
    items_of_a_tuple=("return x * (2 if q in (late,) else 1)", "C.__eq__ = lambda s, o: True"),
    index_of_an_item=("return x * [late, q].index(q)", "Late.__eq__ = lambda s, o: True"),
    equal_lists=("return x * (2 if [late] == [q] else 1)", "Late.__eq__ = lambda s, o: True"),
    factory_of_a_dict=("return x * (2 if factory.default_factory is None else 1)",
                       "factory.default_factory = None"),
    members_of_an_enum=("return x * len(list(Mode))", "Mode._member_names_.append('A')"),
    number_of_members=("return x * len(Mode)", "Mode._member_names_.append('A')"),
    member_by_name=("return x * Mode['A'].value", "Mode._member_map_['A'] = Mode.B"),
    member_by_value=("return x * Mode(2.0).value", "Mode._value2member_map_[2.0] = Mode.B"),
    value_of_a_member=("return x * Mode.A.value", "Mode.A._value_ = 5.0"),
    text_of_a_member=("return x * len(str(Mode.A))", "Mode.__str__ = lambda self: 'a'"),
    truth_of_a_member=("return x * (2 if Mode.A else 1)", "Mode.__bool__ = lambda self: False"),
)  # fmt: skip

# ---- modules, built-in names and settings ------------------------------------------------------

for place, name, new in (
    ("ops", "relu", "lambda x: x * 5"), ("math", "sqrt", "lambda x: 7.0"),
    ("np", "prod", "lambda x: 7.0"), ("builtins", "oct", "lambda n: 7 * 'a'"),
):  # fmt: skip
    asked = {"ops": "ops.relu(x)", "math": "x * math.sqrt(4.0)", "builtins": "x * len(oct(8))"}
    row(
        f"replaced {place}.{name}",
        f"kept = {place}.{name}",
        f"return {asked.get(place, 'x * float(np.prod((2, 3)))')}",
        f"{place}.{name} = {new}",
        f"{place}.{name} = kept",
    )
rows(
    "builtins.SHARED = 2.0\n",
    "vars(builtins).pop('SHARED', None)",
    value_in_builtins=("return x * SHARED", "builtins.SHARED = 5.0"),
    deleted_from_builtins=("try:\n    return x * SHARED\nexcept NameError:\n    return x",
                           "del builtins.SHARED"),
)  # fmt: skip
row("new in builtins", "", "try:\n    return x * LATE\nexcept NameError:\n    return x",
    "builtins.LATE = 5.0", "del builtins.LATE")  # fmt: skip
MODULE = """def module(k):
    made = types.ModuleType("changing")
    made.k = k
    return made
sys.modules["changing"] = module(2.0)
"""
rows(
    MODULE,
    "del sys.modules['changing']",
    imported_module=("import changing\nreturn x * changing.k",
                     "sys.modules['changing'] = module(5.0)"),
    attribute_of_an_imported_module=("import changing as c\nreturn x * c.k",
                                     "sys.modules['changing'].k = 5.0"),
    imported_name=("from changing import k\nreturn x * k", "sys.modules['changing'].k = 5.0"),
    imported_name_of_another_module=("from changing import k\nreturn x * k",
                                     "sys.modules['changing'] = module(5.0)"),
    missing_name=("try:\n    from changing import late\nexcept ImportError:\n    late = 1.0\n"
                  "return x * late", "sys.modules['changing'].late = 5.0"),
    missing_module=("try:\n    import absent\n    return x * absent.k\n"
                    "except ImportError:\n    return x",
                    "sys.modules['absent'] = module(5.0)\ndel sys.modules['changing']\n"
                    "sys.modules['changing'] = sys.modules['absent']"),
)  # fmt: skip
ROWS["missing module"] = (*ROWS["missing module"][:3], "del sys.modules['absent']")
rows(
    "array = np.array([1.23456789])\n",
    "np.set_printoptions(precision=8)",
    print_options=("return x * np.get_printoptions()['precision']",
                   "np.set_printoptions(precision=2)"),
    print_options_of_a_text=("return x * len(str(array))", "np.set_printoptions(precision=2)"),
)  # fmt: skip
for option, first, later in (
    ("deterministic", "OFF", "ON"), ("max_call_depth", 1000, 900), ("mode", 1, 0),
    ("pynative_synchronize", False, True),
):  # fmt: skip
    row(
        f"setting {option}",
        f"ms.set_context({option}={first!r})",
        f"return x * len(str(ms.get_context({option!r}))) + (ms.get_context({option!r}) == "
        f"{later!r})",
        f"ms.set_context({option}={later!r})",
        f"ms.set_context({option}={first!r})",
    )
row(
    "setting of auto_parallel",
    "ms.reset_auto_parallel_context()",
    "return x * len(ms.get_auto_parallel_context('parallel_mode'))",
    "ms.set_auto_parallel_context(parallel_mode='data_parallel')",
    "ms.reset_auto_parallel_context()",
)

IMPORTS = """import abc, builtins, collections, collections.abc, dataclasses, enum, functools
import math, sys, types
"""


@pytest.mark.parametrize("name", ROWS)
def test_change_between_calls(name: str) -> None:
    setup, body, change, undo = ROWS[name]
    program = f"{IMPORTS}{setup}\n@jit\ndef f(x):\n{textwrap.indent(body, '    ')}\n"
    check(program, change, undo)
