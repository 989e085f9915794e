"""The rows of the feature list that must be satisfied, and the tests that cover them.

A test covers a row if its docstring, or that of its class or module, contains the row's id (`A14:
...`). `python tests/rows.py` prints the table; test_rows.py fails for a row without a test, and for
an id that is no row.
"""

from __future__ import annotations

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = (
    "tests",
    "core/duograph/conformance",
    "backend_cpu/tests",
    "backend_opencl/tests",
    "backend_cuda/tests",
)

ROWS = {
    "A01": "Two execution modes, PYNATIVE (op by op) and GRAPH (compile then run), in one package",
    "A02": "One network source runs unchanged in both modes (unified API)",
    "A03": "Mode flips by changing exactly one line, `set_context(mode=...)`",
    "A04": "Constants `ms.GRAPH_MODE` (0) and `ms.PYNATIVE_MODE` (1)",
    "A05": "Switching back and forth any number of times in one process works",
    "A06": "Seed: `MyNet` with `ops.Add()` prints `[5. 7. 9.]` in GRAPH",
    "A07": "Seed: same `MyNet` prints `[5. 7. 9.]` in PYNATIVE",
    "A08": "Same Cell *instance* (not a new one) gives the same answer after a mode flip",
    "A09": "Default mode when the user says nothing",
    "A10": "Same network + op has the same precision result in both modes",
    "A11": "`set_context(device_target=...)` picks the hardware",
    "A12": "With no device named, the best installed device is chosen from the environment",
    "A13": "Device names CPU / GPU / Ascend style strings; plugin names become legal values",
    "A14": "`set_context` takes many keywords at once, including ones a given device ignores",
    "A15": "Unknown context key raises ValueError that names the key",
    "A16": "Illegal mode value raises ValueError that lists the legal ones",
    "A17": '`get_context("mode")` / `get_context("device_target")`',
    "A18": "`from mindspore import context` module spelling works beside top level",
    "A20": "Absent device gives an error listing what is installed and how to install the plugin",
    "A21": "GRAPH mode changes only Cells and jit functions; a bare `ops.mul(a,b)` at top level runs at once",
    "A22": "PYNATIVE runs single operators, ordinary functions, whole networks, and gradients separately",
    "A23": "PYNATIVE accepts the whole Python language",
    "A24": "Breakpoints, pdb and IDE stepping work in PYNATIVE, intermediate values readable",
    "A25": "Breakpoints never fire inside compiled code; stated clearly, not silently",
    "A26": "Seed: eager `ops.mul(x,y)`, `print(output.asnumpy())` gives `[ 4. 10. 18.]`",
    "A27": "Eager op goes to exactly one kernel on the selected device",
    "A28": "Print inside `construct` in PYNATIVE shows values at once: `matmul:  [...]`, `add bias:  [...]`, `out:  [...]`",
    "A29": "Print inside compiled code becomes a run-time op, printed as label on its own line, then `Tensor(shape=[3], dtype=Float32,",
    "A30": "Print order inside one graph is preserved, interleaved with other side effects",
    "A31": "`model.compile(x)` compiles ahead, prints nothing, returns None; `model(x)` then reuses it",
    "A32": "Call = compile + construct, hidden inside `Cell.__call__`",
    "A33": "Static code is entered through a Cell's `construct` or a jit-decorated callable",
    "A34": "Docstrings and comments inside `construct` are legal in GRAPH",
    "A35": "`super(Net, self).__init__()` and `super().__init__()` both work",
    "A37": "Graph mode: whole-graph optimisation and whole-graph hand-off to the device",
    "A38": "Static graph uses less memory than keeping every node (memory planning)",
    "A39": "A function run once need not be compiled; compile cost is visible",
    "A40": "Not all Python compiles; a published list says what does",
    "A41": "Seed: GRAPH `Net` with `ops.Mul()` prints `[ 4. 10. 18.]`",
    "A42": "In compiled code values are seen only through a print operator placed by the user (`print`, `ops.Print`), shown while the graph runs",
    "A43": "Import style `from mindspore import nn, ops, Tensor, Parameter` with `import mindspore as ms`",
    "A44": "Clear layering: Python API, framework layer, device; same call path in both modes",
    "A45": "Same script on different platforms may differ in last digits only; tolerance per dtype is published",
    "A46": "Target name `Ascend` (unsupported here) gives a one-line refusal, not a loader trace",
    "B01": "`ms.Tensor(np.array(...).astype(np.float32))`",
    "B02": "`ms.Tensor(nested_list, dtype=ms.float32)`",
    "B03": "`Tensor(float64_array, ms.float32)` with dtype as second positional, value cast",
    "B04": "`ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name='z')`",
    "B05": "`str(tensor)` is NumPy layout, `repr` is `Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00, ...])`",
    "B06": "3x3 ones and 1024s print in NumPy matrix layout after a label with newline",
    "B07": "`asnumpy()`",
    "B08": "`ops.ones(5, ms.float32)` (int shape) has shape (5,)",
    "B09": "`ops.matmul` of (5,) by (5,3) gives (3,)",
    "B10": "Operators + - * on Tensor/Parameter/number with broadcasting, incl. `int_attr + tensor`",
    "B11": "Parameter used directly in an op inside eager, jit and graph",
    "B12": '`print("x:", a, "\\ny:", b)` mixes text and tensors',
    "B13": "Python ints infer Int64, floats Float32, NumPy float64 stays Float64",
    "B14": "int32 + float16 gives Float16; uint8 * 300 stays UInt8; int / int gives Float32",
    "B15": "Two parameters of one name in a Cell tree raise ValueError naming it",
    "B16": "Grad w.r.t. integer tensors is allowed and returns integers",
    "B19": "NumPy-style attributes shape dtype itemsize nbytes ndim size strides T",
    "B20": "Indexing: int, negative, slice, ellipsis, None, tensor, bool mask, list; get and set",
    "C01": "Forward ops on tensors are recorded, each op's backward found, chained in reverse, then run on the device",
    "C02": "`ops.GradOperation()` default differentiates the first input and returns a bare Tensor",
    "C03": "Seed: `GradNetWrtX(Net())(x,y)` prints `[[4.5099998 2.7 3.6000001] [4.5099998 2.7 3.6000001]]` (NumPy padding)",
    "C04": "GradOperation held as an attribute and applied inside another Cell's construct",
    "C05": "`GradOperation(get_all=True)` returns a tuple for all inputs; seed prints `[1. 1. 1.]` twice",
    "C06": "`grad_ops(net)(x, y)` usable at top level",
    "C07": "`get_by_list=True` with a ParameterTuple: tuple of weight grads",
    "C08": "`get_all + get_by_list`: `((inputs...),(params...))`",
    "C09": "`sens_param=True`: extra last argument scales the output",
    "C10": "`grad(fn, grad_position, weights, has_aux, return_ids)`",
    "C11": "`value_and_grad(fn, None, optimizer.parameters)` gives `(loss, grads)`",
    "C12": "`grad_position` int gives Tensor, tuple gives tuple, None needs weights, both None raises ValueError",
    "C13": "`has_aux=True` returns aux without differentiating it",
    "C15": "Non-Tensor inputs are skipped in the gradient tuple",
    "C16": "Sum of outputs when several outputs, all-ones seed",
    "C17": "Op-level bprop registry: getter takes the primitive, returns `bprop(*inputs, out, dout)`",
    "C18": "Spelling `from mindspore.ops._grad.grad_base import bprop_getters`",
    "C19": "`@bprop_getters.register(ops.Mul)` on the primitive class",
    "C20": "`P.Mul()` style primitives usable inside the rule; `binop_grad_common(x,y,dx,dy)` undoes broadcasting",
    "C21": "One rule serves eager tape and graph AD alike",
    "C22": "Rule of MatMul, incl. transpose flags, and rule for the second input",
    "C23": "Eager Python `for` is simply executed; seed prints `[4. 5. 6.]`; gradient follows executed ops",
    "C24": "Backward through a jit function inside eager code: its backward is one compiled graph joined to its neighbours",
    "C25": "Gradient of a Cell whose construct is jitted: result `[5. 7. 9.]`, grads `[1. 1. 1.]`",
    "C26": "grad inside jit, jit inside grad, both nested",
    "C28": "Wrong number of gradients from a rule is reported with rule name and counts",
    "C30": "In-place change of a value needed by backward is caught or saved",
    "C31": "Higher-order gradients (grad of grad) in both modes",
    "C32": "`stop_gradient`, `requires_grad=False`, `set_grad`",
    "C33": "Gradients through if / while / for / recursion / closures in graphs",
    "C38": "Built-in finite-difference check usable on any rule",
    "C39": "Gradient of the seed Add/Mul/Add combination is 4096 everywhere at ones (1024 x^4)",
    "C40": "Loop network gradient w.r.t. x is ones, w.r.t. z is 9 after summing over the broadcast",
    "D01": "`from mindspore import ms_function` and use as bare decorator",
    "D02": "`@ms_function` on a plain function runs it as a graph although the mode is PYNATIVE; `[5. 7. 9.]`",
    "D03": "`@ms_function` on `construct` of one Cell inside an otherwise eager network",
    "D04": "Seed: Add, jitted Mul, Add on ones(3,3): init ones, result 1024 everywhere",
    "D05": "jit on methods of `ms_class`/`jit_class` classes",
    "D06": "jit on methods of ordinary user classes",
    "D07": "`@ms.jit`, `@ms.jit()`, `@ms.jit(opts)`, `ms.jit(fn)`, `ms.jit(net.construct)`",
    "D08": "`@ms.jit` on `construct` of a Cell with `nn.Dense(10,1)`",
    "D09": "Whole step in one graph: forward + `value_and_grad` + `optimizer(grads)`; returns loss; weights move",
    "D10": "`nn.BCELoss()` on raw Dense output as the seed writes it",
    "D11": "jit honours its decorator whatever the global mode is",
    "D12": "Cache key = function object + input shape + type; hit means no compile",
    "D13": "New shape or dtype compiles again; number and string inputs are part of the key",
    "D16": "Precaution 1: body must be in the static syntax subset, else an error",
    "D17": "Precaution 2: control flow equals that of static graphs; gain only for fixed trip counts",
    "D18": "Precaution 3: no breakpoints in the compiled part",
    "D19": "Precaution 4: Hook operator in compiled code is never *silently* dropped",
    "D20": "Precaution 5 scenario 1: assigning a local of the same name leaves the global, prints `5`",
    "D21": "Precaution 5: real `global value; value=1` inside jit either takes effect or is rejected",
    "D22": "Precaution 5 scenario 2: attribute changed after first call; seed prints `out1: [6. 7. 8.]`, `out2: [6. 7. 8.]`",
    "D23": "Same rule for captured globals, closures, list/dict items, default args, helper functions, namespace objects, NumPy constants",
    "D24": "`Parameter.set_data` / `load_param_into_net` after first jit call is seen by the compiled code",
    "D25": "`set_train()` after first call re-specialises",
    "D26": "Precaution 6 scenario 1: op instance made outside, called inside; prints x, y, z `[5. 7. 9.]`",
    "D27": "Precaution 6 scenario 2: `nn.Conv2d(3,4,3,stride=2,padding=0)` outside, `init_parameters_data()`, jitted call",
    "D28": "Parameter-owning layer built *inside* a jit function gets a clear message",
    "D29": "Statements that do not reach the return value are removed (DCE) unless they have effects",
    "D30": "Side-effect analysis: memory effects (assign, optimizer) and IO effects (print) keep source order",
    "D31": "`Depend(value, expr)` to force order by hand",
    "D32": "Reads before a later write see the old value (Load + copy)",
    "D33": "A jit function calling another jit function is inlined",
    "D34": "jit with *args, **kwargs, keyword-only, defaults",
    "D36": "`MS_JIT=0` style switch turns all compilation off",
    "D37": "`fullgraph=True` means no fallback to Python",
    "D42": "`jit_class` for helper classes; error text when put on a Cell; error when instance has no `__call__`",
    "D46": "`raise` / `assert` with tensor condition works at run time",
    "D47": "Function arguments changed inside (list append, in-place tensor, dict item) behave as in Python or are refused",
    "D48": "BatchNorm moving averages updated inside a compiled step persist",
    "D49": "Parameterised layers (Conv2d, BatchNorm) are made once outside and captured; captured parameters are live, not copies",
    "D50": "Jitted Cell print of a 4-D result keeps NumPy nesting",
    "E01": "`JitConfig(jit_level=...)` O0 / O1 (O2 accepted with notice)",
    "E02": "`JitConfig(exec_mode=...)` auto / sink / no_sink",
    "E03": "`JitConfig(jit_syntax_level=...)` STRICT / LAX",
    "E04": "JitConfig accepted by `jit(...)`, `Cell.set_jit_config`, `set_context(jit_config=...)`",
    "E06": "O0 keeps graph shape for debugging; O1 adds common passes and fusion; results equal within tolerance",
    "F01": "Source to AST to functional graph IR (parameters, constants, calls, functions as values)",
    "F02": "Type and shape inference on the IR with constants folded",
    "F03": "Joins of branches checked: same type, shape, dtype; message shows both sides and both lines",
    "F04": "Arithmetic simplification, constant folding, inline, CSE, DCE, unreachable-branch removal, iterated to a fixed point",
    "F06": "Higher-order functions, closures by value copy, recursion (fibonacci) in the IR",
    "F07": "Control flow as switch over functions",
    "F08": "IR text dump to a folder per pass; levels 0-3; dot format",
    "F11": "Compile error shows user file, line, column, source line, caret, call chain",
    "F12": "Error names the construct and suggests a rewrite",
    "F18": "IR save/load and run without source (MindIR-like)",
    "F21": "Attribute writes: `self.param = x` (Parameter) in STRICT; any attribute in LAX",
    "G01": "if / elif / else with tensor condition, both branches compiled, one run",
    "G02": "while with tensor condition",
    "G03": "for over tuple, list, range, Tensor rows, enumerate, zip",
    "G05": "break, continue, early return inside tensor-conditioned loops",
    "G11": "with statement on jit_class / Cell objects",
    "G13": "dict: pop, setdefault, popitem",
    "G14": "Undefined-in-one-branch variable gives a message naming variable and branch",
    "H01": "Backend = separately pip-installable package, found without editing the core",
    "H02": "Discovery by entry point through pluggy hooks, with hook specs versioned",
    "H03": "CPU backend in C through cffi",
    "H04": "OpenCL backend through pyopencl",
    "H05": "CUDA C backend",
    "H06": "NumPy reference backend as oracle",
    "H07": "Two or more non-CPU backends loaded and used in one process",
    "H08": "Same backend serves eager *and* jit with no extra work",
    "H09": "Kernel mode: backend supplies kernels for single ops",
    "H10": "Graph mode: backend takes a whole graph as one big op",
    "H11": "Memory: allocate, free, host-to-device, device-to-host, device-to-device, pool provided by core",
    "H12": "Streams optional; single stream if absent",
    "H13": "Op selection and dtype support table per backend",
    "H14": "Fallback to CPU for a missing kernel: off / warn / on, reported by name",
    "H17": "Minimal required kernel set small and listed; everything else decomposes to it",
    "H19": "A toy third-party backend in the repo, under 300 lines, passing the suite",
    "H20": "ABI/API version handshake with readable refusal",
    "H21": "A broken or missing plugin never breaks `import`",
    "H22": "Device listing call with name, memory, dtypes, version, plugin origin",
    "I01": "Shipped, versioned, installable test suite for backend authors",
    "I02": "One command: `pytest --pyargs pkg.conformance --backend NAME`",
    "I03": "Per-op forward against reference over dtypes, shapes, empty, scalar, broadcast, non-contiguous, NaN/inf",
    "I04": "Per-op gradient check by finite differences and against the shared rule",
    "I05": "Eager vs jit equality on the backend for ops and models",
    "I06": "Side-effect order, print order, assign/load tests on the backend",
    "I07": "Seeds' examples as conformance cases with exact printed output",
    "I08": "Declared capabilities and xfail lists; strict xfail so newly passing cases are noticed",
    "I09": "Tolerance policy per dtype and op, published",
    "I10": "Human report (op by dtype matrix) and machine JSON, comparable between releases",
    "I15": "Suite runs without the hardware through the reference backend",
    "J01": "`nn.Cell` with construct, auto parameter naming, `trainable_params()`",
    "J02": "`nn.Dense(in, out, weight_init, bias_init, has_bias, activation)`",
    "J03": "`nn.Conv2d` defaults pad_mode `same`, has_bias False",
    "J04": "`nn.BCELoss`, `nn.Adam(params, 0.01)` second positional is the rate",
    "J05": "`optimizer(grads)` applies an update; `optimizer.parameters` is a ParameterTuple",
    "J06": "Parameter group lists `[{'params':..., 'lr':..., 'weight_decay':...}, {'order_params':...}]`",
    "J07": "Learning rate as float, Tensor, list, iterable, or LearningRateSchedule Cell",
    "J08": "`nn.SequentialCell`, `nn.CellList`, `nn.CellDict`",
    "J09": "Nested Cell prefixing: `dense_relu_sequential.0.weight`",
    "J14": "Common layers Conv1/3d, Transpose conv, pooling, norms, RNN/LSTM/GRU, MultiheadAttention, Embedding, activations",
    "J16": "Initializers by string and class",
    "J17": "`set_train`, `self.training`, Dropout and BatchNorm phase",
    "K05": "`save_checkpoint`, `load_checkpoint`, `load_param_into_net` returning not-loaded lists",
    "K08": "`export(net, *inputs, file_name=, file_format=)` MINDIR; `load`, `nn.GraphCell`",
    "K12": "Seeds: `set_seed`, `Generator`, per-op seeds; same stream eager and jit",
    "M01": "`pip install` of core on any Python 3.9+ incl. newest, pure wheel",
    "M02": "Installed size of core + CPU backend",
    "M03": "Import time",
    "M07": "Deprecated spellings warn once and keep working",
    "N01": "torch.compile guards: recompile when a captured value changes",
    "N13": "Paddle: error text rewritten to user's source line",
    "N15": "tinygrad: whole backend in about 130 lines",
    "N18": "ONNX Runtime: EP conformance, capability negotiation",
    "O02": "`check_parity(fn, *args)`: runs both modes, reports first differing op with source line",
    "O03": "Stale-capture policy selectable: warn-and-keep (default, the seed's values), recompile, error, ignore",
    "O04": "Every fallback, break, recompile and dropped effect countable from Python (`jit_stats()`)",
    "O08": "Explain a join error by showing both branch values and inserting cast suggestions",
    "O09": "Side-effect report per function: reads, writes, IO, randomness",
    "O10": "Deterministic bit-equal eager vs O0 on CPU",
}


_ID = re.compile(r"\b([A-Z]\d\d)\b(?=[,:]| and )")


def tests_by_row() -> dict[str, list[str]]:
    """Return row id -> names of the test functions that quote it."""
    found: dict[str, list[str]] = {}
    for place in FOLDERS:
        for path in sorted((ROOT / place).rglob("test_*.py")):
            tree = ast.parse(path.read_text())
            _collect(tree, [], str(path.relative_to(ROOT)), found)
    return found


def _collect(node: ast.AST, inherited: list[str], name: str, found: dict[str, list[str]]) -> None:
    doc = ""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
        doc = ast.get_docstring(node) or ""
    ids = inherited + _ID.findall(doc)
    if isinstance(node, ast.FunctionDef):
        if node.name.startswith("test"):
            for row in dict.fromkeys(ids):
                found.setdefault(row, []).append(f"{name}::{node.name}")
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            inner = f"{name}::{child.name}" if isinstance(child, ast.ClassDef) else name
            _collect(child, ids, inner, found)


if __name__ == "__main__":
    quoted = tests_by_row()
    for row, text in ROWS.items():
        print(f"{row}  {text}")
        for test in quoted.get(row, ["(no test)"]):
            print(f"       {test}")
