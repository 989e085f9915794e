"""Outside arrays, tensors, and the framework's own objects that hold them."""

from __future__ import annotations

from .parts import Change, Kind

__all__ = ["KINDS"]

ARRAY = ("len", "position", "iterate", "member", "identity", "type", "unpack", "returned")
ARRAY_CHANGES = (
    Change("item", "{o}[0] = {n}"),
    Change("last item", "{o}[-1] = {n}"),
    Change("fill", "{o}.fill({n})"),
    Change("add in place", "{o} += {n}", rebinds=True),
    Change("function", "np.multiply({o}, {n}, out={o})"),
    Change("sort", "{o}[::-1].sort()\n{o}[1] = {n}"),
)
OF_ARRAY = {
    "sum": "k = 1.0 + float({o}.sum())",
    "item": "k = float({o}.item(0))",
    "max": "k = float(np.max({o}))",
    "any": "k = 3.0 if ({o} > 6.0).any() else 2.0",
    "list": "k = {o}.tolist()[1]",
    "shape": "k = 1.0 + {o}.shape[0]",
    "dtype": "k = 3.0 if {o}.dtype == np.float64 else 2.0",
    "tensor": "k = 2.0\na = a + Tensor({o}, ms.float32)[:3]",
    "operand": "k = 2.0\na = a + Tensor({o}[:3].copy(), ms.float32)",
    "slice": "k = 1.0 + float({o}[:2].sum())",
    "truth of item": "k = 3.0 if {o}[1] > 6.0 else 2.0",
    "attribute": "k = 1.0 + {o}.nbytes + {o}.strides[0]",
    "equal": "k = 3.0 if np.array_equal({o}, make(2.0)) else 2.0",
}
LARGE = {k: v for k, v in OF_ARRAY.items() if k not in ("list",)}
TENSOR_CHANGES = (
    Change("assign", "ops.assign({o}, Tensor([{n}, 1.0, 2.0]))", state=True),
    Change("item", "{o}[0] = {n}", state=True),
    Change("slice", "{o}[:] = Tensor([{n}, {n}, 4.0])", state=True),
)
OF_TENSOR = {
    "operand": "k = 2.0\na = a * {o}",
    "left operand": "k = 2.0\na = {o} - a",
    "item": "k = 2.0\na = a * {o}[0]",
    "sum": "k = 2.0\na = a + {o}.sum()",
    "loop": "k = 2.0\nfor v in {o}:\n    a = a + v",
    "condition": "k = 2.0\nif {o}.sum() > 16.0:\n    a = a * 3.0",
    "shape": "k = 1.0 + {o}.shape[0]",
    "len": "k = 1.0 + len({o})",
    "dtype": "k = 3.0 if {o}.dtype == ms.float32 else 2.0",
    "unpack": "k = 2.0\nx, *y = {o}\na = a * x + y[1]",
    "is": "k = 3.0 if {o} is FIRST else 2.0",
    "isinstance": "k = 3.0 if isinstance({o}, Tensor) else 2.0",
    "number": "k = float({o}[0])",
    "asnumpy": "k = float({o}.asnumpy()[0])",
    "in a list": "k = 2.0\na = a + sum([{o}, {o}])",
    "name": "k = 1.0 + len(str(getattr({o}, 'name', '')))",
}
PARAMETERS = {
    "first": "k = 2.0\na = a * {o}[0]",
    "loop": "k = 2.0\nfor w in {o}:\n    a = a * w",
    "sum": "k = 2.0\na = a + sum({o})",
    "len": "k = 1.0 + len({o})",
    "stack": "k = 2.0\na = a + ops.stack(list({o})).sum(0)",
    "truth": "k = 3.0 if {o} else 2.0",
    "unpack": "k = 2.0\nx, *y = {o}\na = a * x",
    "zip": "k = 2.0\nfor w, s in zip({o}, (1.0, 2.0, 3.0)):\n    a = a + w * s",
}
PARAMETER = "def param(n, name='w'):\n    return Parameter(Tensor([n, 1.0, 2.0]), name=name)\n"
NETWORK = """class Layer(nn.Cell):
    scale = 1.0
    def __init__(self, n):
        super().__init__()
        self.v = n
        self.items = [n]
        self.w = Parameter(Tensor([n, 1.0, 2.0]), name="w")
    def construct(self, x):
        if self.training:
            x = x * 2.0
        return x * self.w * self.v + sum(self.items) * self.scale
"""
CELL = {
    "call": "k = 2.0\na = {o}(a)",
    "construct": "k = 2.0\na = {o}.construct(a)",
    "parameter": "k = 2.0\na = a * {o}.w",
    "truth": "k = 3.0 if {o}.items else 2.0",
    "training": "k = 3.0 if {o}.training else 2.0",
    "hasattr": 'k = 3.0 if hasattr({o}, "extra") else 2.0',
    "parameters": "k = 1.0 + len(list({o}.get_parameters()))",
    "trainable": "k = 1.0 + len({o}.trainable_params())",
    "is": "k = 3.0 if {o} is FIRST else 2.0",
}


def _array(name: str, make: str, **more: object) -> Kind:
    fields: dict[str, object] = {"asks": ARRAY, "changes": ARRAY_CHANGES, "own": OF_ARRAY, **more}
    return Kind(name, make, **fields)  # type: ignore[arg-type]


KINDS = (
    _array("array of 3", "np.array([n, n + 1.0, 4.0])"),
    _array("float32 array", "np.array([n, n + 1.0, 4.0], np.float32)", asks=ARRAY[:4]),
    _array("array of 3000", "np.full(3000, n)", asks=("position", "returned"), own=LARGE),
    _array(
        "array of 10^6",
        "np.full(1000000, n)",
        asks=(),
        own={k: LARGE[k] for k in ("sum", "item", "tensor")},
        changes=ARRAY_CHANGES[:2],
        slow=True,
    ),
    _array(
        "empty array",
        "np.zeros(0)",
        asks=("len", "identity", "iterate"),
        own={k: OF_ARRAY[k] for k in ("sum", "shape")},
        changes=(Change("resize", "{o}.resize(3, refcheck=False)\n{o}[:] = {n}"),),
    ),
    _array(
        "0-d array",
        "np.array(n)",
        asks=("identity", "number", "type"),
        own={
            "item": "k = {o}.item()",
            "operand": "k = 2.0\na = a * float({o})",
            "truth": "k = 3.0 if {o} > 6.0 else 2.0",
        },
        changes=(Change("in place", "{o}[...] = {n}"), Change("fill", "{o}.fill({n})")),
    ),
    _array(
        "2-d array",
        "np.array([[n, 1.0, 2.0], [3.0, 4.0, 5.0]])",
        asks=("len", "identity"),
        own={
            "item": "k = float({o}[0, 0])",
            "row": "k = 1.0 + float({o}[0].sum())",
            "loop": "k = 1.0\nfor row in {o}:\n    k = k + row[0]",
            "transposed": "k = float({o}.T[0, 0])",
            "matmul": "k = 1.0 + float(({o} @ {o}.T)[0, 0])",
        },
        changes=(
            Change("item", "{o}[0, 0] = {n}"),
            Change("column", "{o}[:, 0] = {n}"),
            Change("shape", "{o}[0, 0] = {n}\n{o}.shape = (3, 2)"),
        ),
    ),
    _array(
        "view of an array",
        "BACK[::2]",
        setup="BACK = np.array([2.0, 0.0, 3.0, 0.0, 4.0])",
        roots=("BACK",),
        changes=(
            *ARRAY_CHANGES[:3],
            Change("behind", "BACK[0] = {n}"),
            Change("behind all", "BACK[:] = BACK * 2.0"),
        ),
    ),
    _array(
        "view of a large array",
        "BACK[:3]",
        asks=("position",),
        setup="BACK = np.full(5000, 2.0)",
        changes=(*ARRAY_CHANGES[:2], Change("behind", "BACK[0] = {n}")),
        own={k: OF_ARRAY[k] for k in ("sum", "tensor", "item")},
    ),
    _array(
        "large view",
        "BACK[::2]",
        asks=("position",),
        setup="BACK = np.full(10000, 2.0)",
        own=LARGE,
        changes=(*ARRAY_CHANGES[:2], Change("behind", "BACK[0] = {n}")),
    ),
    _array(
        "object array",
        "np.array([[n], [1.0], []], dtype=object)",
        asks=("len", "identity"),
        own={"item": "k = 1.0 + len({o}[0])", "loop": "k = 1.0\nfor v in {o}:\n    k += sum(v)"},
        changes=(Change("item", "{o}[0] = [{n}, {n}]"), Change("in an item", "{o}[0].append({n})")),
    ),
    _array(
        "array subclass",
        "np.array([n, n + 1.0, 4.0]).view(Named)",
        asks=ARRAY[:3],
        setup="class Named(np.ndarray):\n    step = 1.0\n",
        changes=(*ARRAY_CHANGES[:3], Change("attribute", "{o}.step = {n}")),
        own={"sum": OF_ARRAY["sum"], "attribute": "k = {o}.step"},
    ),
    _array(
        "structured array",
        "np.array([(n, 1), (2.0, 3)], dtype=[('v', 'f8'), ('u', 'i4')])",
        asks=("len", "identity"),
        own={"field": "k = float({o}['v'][0])", "sum": "k = 1.0 + float({o}['v'].sum())"},
        changes=(Change("field", "{o}['v'][0] = {n}"), Change("item", "{o}[0] = ({n}, 2)")),
    ),
    Kind("NumPy scalar", "np.float64(n)", ("number", "truth", "type", "hash", "str")),
    Kind(
        "Tensor",
        "Tensor([n, 1.0, 2.0])",
        ("identity", "returned"),
        TENSOR_CHANGES,
        own=OF_TENSOR,
        state=True,
    ),
    Kind(
        "Parameter",
        "param(n)",
        ("identity",),
        (
            *TENSOR_CHANGES,
            Change(
                "requires_grad",
                "{o}.requires_grad = not {o}.requires_grad\n{o}.set_data(Tensor([{n}, 1.0, 2.0]))",
                state=True,
            ),
            Change("name", "{o}.name = 'renamed'", only="outside"),
        ),
        setup=PARAMETER,
        own=OF_TENSOR,
        state=True,
    ),
    Kind(
        "list of Tensors",
        "[Tensor([n, 1.0, 2.0]), Tensor([3.0, 1.0, 2.0])]",
        ("identity", "returned"),
        (
            Change("item", "{o}[0] = Tensor([{n}, 2.0, 3.0])"),
            Change("data", "{o}[0][0] = {n}", state=True),
            Change("append", "{o}.append(Tensor([{n}, 1.0, 1.0]))"),
            Change("append the argument", "{o}.append(a * 2.0)", only="inside"),
            Change("pop", "{o}.append(Tensor([{n}, 1.0, 1.0]))\n{o}.pop(0)"),
        ),
        own=PARAMETERS,
    ),
    Kind(
        "dict of Tensors",
        '{"x": Tensor([n, 1.0, 2.0])}',
        ("truth", "len", "identity", "returned"),
        (
            Change("item", '{o}["x"] = Tensor([{n}, 2.0, 3.0])'),
            Change("data", '{o}["x"][0] = {n}', state=True),
            Change("new", '{o}["z"] = Tensor([{n}, 1.0, 1.0])'),
            Change("argument", '{o}["z"] = a * 2.0', only="inside"),
        ),
        own={
            "item": 'k = 2.0\na = a * {o}["x"]',
            "get": 'k = 2.0\na = a * {o}.get("z", 3.0)',
            "values": "k = 2.0\na = a + sum({o}.values())",
            "in": 'k = 3.0 if "z" in {o} else 2.0',
        },
    ),
    Kind(
        "list of Parameters",
        "[param(n, 'w'), param(3.0, 'u')]",
        ("identity",),
        (
            Change("item", "{o}[0] = param({n}, 'x')"),
            Change("data", "{o}[0].set_data(Tensor([{n}, 1.0, 2.0]))", state=True),
            Change("append", "{o}.append(param({n}, f'w{{len({o})}}'))", only="outside"),
            Change("swap", "{o}.reverse()"),
            Change("assign", "ops.assign({o}[1], Tensor([{n}, {n}, 4.0]))", state=True),
        ),
        setup=PARAMETER,
        own=PARAMETERS,
    ),
    Kind(
        "ParameterTuple",
        "ParameterTuple([param(n, 'w'), param(3.0, 'u')])",
        (),
        (Change("data", "{o}[0].set_data(Tensor([{n}, 1.0, 2.0]))", state=True),),
        setup=PARAMETER,
        own=PARAMETERS,
    ),
    Kind(
        "Cell",
        "Layer(n)",
        ("identity",),
        (
            Change("attribute", "{o}.v = {n}"),
            Change("list", "{o}.items.append({n})"),
            Change("clear list", "{o}.items.clear()\n{o}.v = {n}"),
            Change("new attribute", "{o}.extra = {n}"),
            Change("class attribute", "Layer.scale = {n}"),
            Change("parameter", "{o}.w.set_data(Tensor([{n}, 1.0, 2.0]))", state=True),
            Change(
                "another parameter",
                "{o}.w = Parameter(Tensor([{n}, 2.0, 3.0]), name='w')",
                only="outside",
            ),
            Change("training", "{o}.set_train(not {o}.training)\n{o}.v = {n}", only="outside"),
            Change("construct", "Layer.construct = lambda self, x: x * {n}"),
            Change("code", "Layer.construct.__code__ = (lambda self, x: x * self.w).__code__"),
        ),
        setup=NETWORK,
        own=CELL,
    ),
    Kind(
        "CellList",
        "nn.CellList([Layer(n), Layer(1.0)])",
        (),
        (
            Change("item", "{o}[0] = Layer({n})", only="outside"),
            Change("append", "{o}.append(Layer({n}))", only="outside"),
            Change("attribute of item", "{o}[0].v = {n}"),
            Change("list of item", "{o}[1].items.append({n})"),
            Change("parameter of item", "{o}[0].w.set_data(Tensor([{n}, 1.0, 2.0]))", state=True),
        ),
        setup=NETWORK,
        own={
            "loop": "k = 2.0\nfor cell in {o}:\n    a = cell(a)",
            "item": "k = 2.0\na = {o}[-1](a)",
            "len": "k = 1.0 + len({o})",
            "attribute": "k = {o}[0].v",
            "truth": "k = 3.0 if {o}[1].items else 2.0",
        },
    ),
    Kind(
        "SequentialCell",
        "nn.SequentialCell(Layer(n), nn.ReLU())",
        (),
        (
            Change("append", "{o}.append(nn.ReLU6())", only="outside"),
            Change("item", "{o}[1] = Layer({n})", only="outside"),
            Change("attribute of item", "{o}[0].v = {n}"),
        ),
        setup=NETWORK,
        own={
            "call": "k = 2.0\na = {o}(a)",
            "len": "k = 1.0 + len({o})",
            "first": "k = 2.0\na = {o}[0](a)",
        },
    ),
    Kind(
        "layer",
        "nn.Dense(3, 3, weight_init='ones', bias_init='ones')",
        ("identity",),
        (
            Change("weight", "{o}.weight.set_data({o}.weight * {n})", state=True, only="outside"),
            Change(
                "activation",
                "{o}.activation = nn.ReLU()\n{o}.activation_flag = True",
                only="outside",
            ),
            Change(
                "requires_grad",
                "{o}.weight.requires_grad = not {o}.weight.requires_grad",
                only="outside",
            ),
        ),
        own={
            "call": "k = 2.0\na = {o}(a.reshape(1, 3)).reshape(3)",
            "weight": "k = 2.0\na = a + {o}.weight.sum()",
            "bias": "k = 3.0 if {o}.has_bias else 2.0",
        },
    ),
    Kind(
        "optimiser",
        "nn.Momentum([param(n)], 0.1, 0.9)",
        ("identity",),
        (
            Change("step", "{o}((Tensor([{n}, 1.0, 1.0]),))", state=True),
            Change("parameter", "{o}.parameters[0].set_data(Tensor([{n}, 1.0, 2.0]))", state=True),
            Change("attribute", "{o}.extra = {n}"),
        ),
        setup=PARAMETER,
        own={
            "parameter": "k = 2.0\na = a * {o}.parameters[0]",
            "state": "k = 2.0\na = a + {o}.moments[0]",
            "attribute": 'k = float(getattr({o}, "extra", 1.5))',
            "rate": "k = 2.0\na = a + {o}.get_lr()",
        },
    ),
)
