"""Broken plugins beside the CPU backend: each is disabled alone, and named with its error."""

from __future__ import annotations

import dataclasses
import sys
import types
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import context
from duograph.backend import registry
from duograph.backend.costs import DEFAULT_COSTS
from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec, DeviceInfo
from duograph.errors import BackendError, BackendUnavailable, DeviceError
from duograph.execution import optional_methods
from duograph.op import OPS, Op

Reference = pytest.importorskip("duograph_reference.backend").Reference


def toy(name="Toy", **members):
    """Return a subclass of the reference backend with another name and some replaced members."""
    return type(name, (Reference,), {"name": name, **members})


def spec_with(**fields):
    return lambda: BackendSpec(**{"name": "Toy", "factory": toy(), **fields})


# ---- plugins that do not load ----------------------------------------------------------------


@dataclasses.dataclass
class Point:
    """An entry point whose module is made by a function."""

    name: str
    make: object
    value: str = "broken_plugin"
    dist: object = None

    def load(self):
        return self.make()


def module_of(**hooks):
    """Return a function that makes a plugin module of the given hooks."""

    def make():
        made = types.ModuleType("broken_plugin")
        for name, function in hooks.items():
            setattr(made, f"duograph_{name}", hookimpl(function))
        return made

    return make


def backend_hook(function):
    return module_of(backend=function)


def raising(error):
    def make(*arguments, **named):
        raise error

    return make


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Unshown:
    def __repr__(self):
        raise RuntimeError("no words")


def new_op(name):
    """Return an op of the plugin, entered into the op table as `op.op` does."""

    def function(input: ms.Tensor):
        return input + input

    function.__module__ = "broken_plugin"
    function.__annotations__ = {"input": "Tensor"}
    made = OPS[name] = Op(function, name=name, composite=True)
    return made


BAD_FIELDS = {
    "name": (None, 3, "", "two words", "Toy:0", b"Toy", "Toy\n", ("Toy",), Unshown()),
    "factory": (None, "Toy", 3, Unshown()),
    "priority": ("high", 1.5, float("nan"), True, (1,), Unshown()),
    "seam_version": ("9.0", "1.0", 1, 1.0, None, (1,), (1, 0, 0), ("1", "0"), (True, 0), [1, 0]),
    "aliases": ("gpu", None, 3, ("gpu", 3), ("two words",), {"gpu": 1}, ("",)),
}
HOOKS = {
    "None": lambda: None,
    "a text": lambda: "CPU",
    "a class": lambda: toy(),
    "a backend": lambda: toy()(),
    "a generator": lambda: (spec for spec in [spec_with()()]),
    "a dict": lambda: {"Toy": spec_with()()},
    "a list with None": lambda: [spec_with()(), None],
    "an object": lambda: Unshown(),
    "an error": raising(OSError("driver 7 is too old")),
    "an error without words": raising(Unprintable()),
    "an exit": raising(SystemExit("no licence")),
}
RULE = {"bprops": lambda: {"exp": lambda input, out, dout: (dout,)}}
RETURNED = {
    "ops: no list": {"ops": lambda: 3},
    "ops: a text": {"ops": lambda: "exp"},
    "ops: None": {"ops": lambda: None},
    "ops: no op": {"ops": lambda: [new_op("broken_twice"), lambda x: x]},
    "ops: raises": {"ops": lambda: [new_op("broken_twice"), 1 / 0]},
    "ops: a name of ours": {"ops": lambda: [Op(len, name="exp", composite=False)]},
    "bprops: no mapping": {"bprops": lambda: [("exp", len)]},
    "bprops: unknown op": {"bprops": lambda: {"no_such_op": len}},
    "bprops: no name": {"bprops": lambda: {3: len}},
    "bprops: no function": {"bprops": lambda: {"exp": 3}},
    "bprops: no Python function": {"bprops": lambda: {"exp": print}},
    "bprops: wrong arity": {"bprops": lambda: {"exp": lambda input, out: (out,)}},
    "decompositions: no mapping": {**RULE, "decompositions": lambda: 3},
    "decompositions: no function": {**RULE, "decompositions": lambda: {"exp": "log"}},
    "decompositions: raises": {**RULE, "decompositions": raising(ValueError("no"))},
    "a hook with an argument": {"backend": lambda config: spec_with()()},
    "a hook of an unknown name": {"backends": lambda: spec_with()()},
}
UNLOADABLE = {
    **{
        f"{field}: {type(value).__name__} {k}": backend_hook(spec_with(**{field: value}))
        for field, values in BAD_FIELDS.items()
        for k, value in enumerate(values)
    },
    **{f"hook returns {what}": backend_hook(hook) for what, hook in HOOKS.items()},
    **{what: module_of(**hooks) for what, hooks in RETURNED.items()},
    "import raises": raising(ImportError("no such driver")),
    "import exits": raising(SystemExit(3)),
    "import returns None": lambda: None,
    "no hook": module_of(),
    "a hook that is no function": lambda: types.SimpleNamespace(duograph_backend=spec_with()()),
    "a hook that is not marked": lambda: types.SimpleNamespace(duograph_passes=list),
}
# The same spec in a plugin whose name comes first; it is not to have it either.
TAKEN = {name: backend_hook(spec_with(name=name)) for name in ("CPU", "cpu", "cPu", "Reference")}
TAKEN["twice"] = backend_hook(lambda: [spec_with()(), spec_with(name="TOY")()])


@pytest.fixture
def load(monkeypatch):
    """Fixture: a function that loads plugins into an empty registry beside those of duograph."""

    def load(*points):
        real = [
            p for p in registry._entry_points() if p.value in ("duograph_cpu", "duograph_reference")
        ]
        monkeypatch.setattr(
            registry.importlib.metadata, "entry_points", lambda group: list(points) + real
        )
        for name, value in {"_manager": None, "_loading": None, "_default": None}.items():
            monkeypatch.setattr(registry, name, value)
        for name in ("_entries", "_aliases"):
            monkeypatch.setattr(registry, name, {})
        # other tests may have chosen a device; here the default is looked for
        monkeypatch.setattr(context.settings, "device_target", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            entries = registry.entries()
        return entries, [str(w.message) for w in caught]

    yield load
    monkeypatch.undo()
    registry._changed()


def cpu_works(entries):
    assert registry.problem_of(entries["CPU"]) is None
    assert registry.check_target("cpu") == "CPU"
    assert registry.current_device().name == "CPU"
    assert (ms.Tensor([1.0, 2.0]) + 1).asnumpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("what", UNLOADABLE)
def test_a_plugin_that_does_not_load_is_named_in_a_warning(what, load):
    ops, rules = set(OPS), OPS["exp"].bprop_rule
    entries, said = load(Point("broken", UNLOADABLE[what]))
    assert len(said) == 1 and said[0].startswith(
        "the plugin 'broken' of broken_plugin is disabled: "
    )
    assert entries["broken"].problem and entries["broken"].spec is None
    assert "Toy" not in entries
    assert set(OPS) == ops and OPS["exp"].bprop_rule is rules
    cpu_works(entries)
    with pytest.raises(BackendUnavailable, match="broken"):
        registry.check_target("broken")


@pytest.mark.parametrize("what", TAKEN)
@pytest.mark.parametrize("point", ["aaa", "zzz"])
def test_a_name_that_is_taken_disables_the_later_backend(what, point, load):
    """Ours come first whatever the entry point is called; upper and lower case are one name."""
    entries, said = load(Point(point, TAKEN[what]))
    assert len(said) == 1 and "disabled: the name is taken by" in said[0]
    assert type(registry.backend("CPU")).__module__ == "duograph_cpu.backend"
    cpu_works(entries)


def test_entry_points_of_one_name_do_not_disable_each_other(load):
    good = backend_hook(spec_with(name="Good", factory=toy("Good")))
    entries, said = load(Point("same", good), Point("same", HOOKS["an error"]), Point("CPU", None))
    assert registry.check_target("good") == "Good"
    assert len(said) == 2
    assert [e.problem is None for e in entries.values() if e.name == "same"] == [False]
    cpu_works(entries)


def test_an_alias_never_hides_a_name(load):
    entries, said = load(Point("aaa", backend_hook(spec_with(aliases=("cpu", "toys", "TOY")))))
    assert len(said) == 1 and "alias 'cpu' of the backend Toy is ignored" in said[0]
    assert registry.canonical("toys") == "Toy"
    registry.unregister("Toy")
    with pytest.raises(DeviceError, match="no plugin brings it"):
        registry.canonical("toys")
    cpu_works(entries)


def test_all_of_them_at_once(load):
    """What one plugin breaks is not seen by the next."""
    points = [Point(f"p{k}", make) for k, make in enumerate(UNLOADABLE.values())]
    entries, said = load(*points, Point("good", backend_hook(spec_with())))
    assert len(said) == len(points)
    assert registry.check_target("Toy") == "Toy"
    cpu_works(entries)


def test_unreadable_metadata_of_a_package_disables_nothing_else(site, device):
    """A line without `=` makes importlib.metadata raise for all packages at once."""
    site.install("good", device("Good", priority=None))
    site.install("bad", "")
    (site.folder / "dist_bad-1.0.dist-info" / "entry_points.txt").write_text(
        "[duograph]\ngarbage\n"
    )
    said = site.run("import duograph as ms; print((ms.Tensor([1.0], device='Good') + 1).device)")
    assert said == "Good:0\n"


# ---- backends that are not one -------------------------------------------------------------


def without(*names):
    """Return a backend class that lacks methods which every backend must have."""
    members = {n: getattr(Reference, n) for n in ("devices", "copy_in", "copy_out", "prepare")}
    return type(
        "Toy", (Backend,), {"name": "Toy", **{n: m for n, m in members.items() if n not in names}}
    )


def attribute(name, value):
    return toy(**{name: value})


def devices(*found):
    return toy(devices=lambda self: list(found))


UNUSABLE = {
    "factory returns None": lambda: None,
    "factory returns a class": toy,
    "factory returns another object": lambda: object(),
    "factory raises": raising(RuntimeError("firmware missing")),
    "factory exits": raising(SystemExit("no licence")),
    "factory takes an argument": lambda config: toy()(),
    **{f"no {n}": without(n) for n in ("devices", "copy_in", "copy_out", "prepare")},
    **{
        f"{n} is None": toy(**{n: None})
        for n in (
            *("prepare", "synchronize", "link", "from_host", "copy_between", "copy_out_async"),
            *("dlpack_device", "to_dlpack", "from_dlpack", "streams"),
        )
    },
    **{
        f"available() returns {value!r}": toy(available=lambda self, v=value: v)
        for value in (True, False, "", 3)
    },
    "available() raises": toy(available=raising(OSError("bus"))),
    "another name": toy(name="CPU"),
    "no name": toy(name=""),
    "dtype names": attribute("dtypes", ("float32",)),
    "no dtypes": attribute("dtypes", ()),
    "one dtype": attribute("dtypes", ms.float32),
    "a generator of dtypes": attribute("dtypes", (d for d in (ms.float32,))),
    "host_fallback": attribute("host_fallback", "always"),
    "host_fallback as bool": attribute("host_fallback", True),
    "epilogues as a text": attribute("epilogues", "matmul"),
    "decomposed as a list of ops": attribute("decomposed", [OPS["exp"]]),
    "devices() returns None": toy(devices=lambda self: None),
    "devices() returns a number": toy(devices=lambda self: 2),
    "devices() is a generator": toy(devices=lambda self: (DeviceInfo(0, "x") for _ in "a")),
    "device names": devices("toy"),
    "device index": devices(DeviceInfo("0", "toy")),
    "negative device index": devices(DeviceInfo(-1, "toy")),
    "two devices of one index": devices(DeviceInfo(0, "a"), DeviceInfo(0, "b")),
    "device without a name": devices(DeviceInfo(0, None)),
    "memory of a device": devices(DeviceInfo(0, "toy", "", "8 GiB")),
    "devices() raises": toy(devices=raising(OSError("bus"))),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_backend_that_is_none_is_skipped_with_a_warning(what, load):
    hook = backend_hook(lambda: BackendSpec("Toy", UNUSABLE[what], priority=1000))
    entries, said = load(Point("broken", hook))
    assert not said  # the backend is made at first use
    with pytest.warns(
        RuntimeWarning, match="the backend Toy would be taken here and does not work"
    ):
        cpu_works(entries)
    with pytest.raises(BackendUnavailable, match="Toy"):
        ms.Tensor([1.0], device="toy")


@pytest.mark.parametrize("field", BAD_FIELDS)
def test_register_refuses_a_malformed_spec(field):
    for value in BAD_FIELDS[field]:
        with pytest.raises(DeviceError, match=f"register: BackendSpec: got .*{field[:5]}"):
            registry.register(spec_with(**{field: value})())
    assert "Toy" not in registry.entries()


@pytest.mark.parametrize("name", ["CPU", "cpu"])
def test_register_refuses_a_name_in_another_case(name):
    with pytest.raises(DeviceError, match="is taken"):
        registry.register(BackendSpec(name, toy(name)))


# ---- kernels ------------------------------------------------------------------------------------


@pytest.fixture
def on(monkeypatch):
    """Fixture: a function that registers a broken copy of the reference backend.

    It returns the copy's name.
    """
    made = []
    monkeypatch.setattr(optional_methods, "_warned", set())

    def register(**members):
        registry.register(BackendSpec("Toy", toy(**members), priority=None))
        made.append("Toy")
        return "Toy"

    yield register
    ms.set_context(debug=False)
    for name in made:
        registry.unregister(name)


def with_kernel(name, broken):
    """Return a `prepare` whose kernel of one op is `broken(sound kernel, *handles)`."""

    def prepare(self, op, types, attributes, device_id):
        sound = Reference.prepare(self, op, types, attributes, device_id)
        return (lambda *handles: broken(sound, *handles)) if op.name == name else sound

    return prepare


ONE = {
    "raises": (raising(ZeroDivisionError("bus")), "raised ZeroDivisionError: bus"),
    "raises without words": (raising(Unprintable()), "raised Unprintable"),
    "None": (lambda k, x: None, "returned None"),
    "too few": (lambda k, x: k(x).reshape(-1)[:5].copy(), r"an array of float32\[5\]"),
    "nothing": (lambda k, x: k(x)[:0].copy(), r"an array of float32\[0, 3\]"),
    "too many": (lambda k, x: np.concatenate([k(x), k(x)]), r"an array of float32\[4, 3\]"),
    "another shape": (lambda k, x: k(x).T.copy(), r"an array of float32\[3, 2\]"),
    "transposed": (lambda k, x: k(x.T.copy()).reshape(3, 2).T, "with strides"),
    "another dtype": (lambda k, x: k(x).astype(np.float64), r"an array of float64\[2, 3\]"),
    "as wide a dtype": (lambda k, x: k(x).view(np.int32), r"an array of int32\[2, 3\]"),
    "its operand": (lambda k, x: x, "its operand 0 as a result"),
    "a view of its operand": (lambda k, x: x[:], "memory of its operand 0"),
    "a tuple": (lambda k, x: (k(x),), "an object of type tuple|array"),
    "a number": (lambda k, x: 3, "returned 3"),
}
SEVERAL = {
    "one handle": (lambda k, x: k(x)[0], "wanted a tuple of 2 handles"),
    "one": (lambda k, x: k(x)[:1], "wanted a tuple of 2 handles"),
    "three": (lambda k, x: (*k(x), x), "wanted a tuple of 2 handles"),
    "None": (lambda k, x: None, "returned None; wanted a tuple of 2 handles"),
    "a None": (lambda k, x: (k(x)[0], None), "returned None"),
    "exchanged": (lambda k, x: k(x)[::-1], "an array of"),
    "its operand": (lambda k, x: (x, k(x)[1]), "operand 0 as a result"),
}
MODES = ("eager", "O0", "O1", "O2")


def called(function, mode):
    return function if mode == "eager" else ms.jit(function, jit_level=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ONE)
def test_a_broken_kernel_is_reported_in_debug_mode(what, mode, on):
    broken, words = ONE[what]
    x = ms.Tensor(np.ones((2, 3), np.float32), device=on(prepare=with_kernel("exp", broken)))
    ms.set_context(debug=True)
    with pytest.raises(BackendError, match=words) as caught:
        called(lambda a: ms.ops.exp(a) * 2, mode)(x)
    assert str(caught.value).startswith("exp(float32[2, 3]): the kernel of the Toy backend r")


@pytest.mark.parametrize("mode", ["eager", "O1"])
@pytest.mark.parametrize("what", SEVERAL)
def test_a_broken_kernel_of_several_results_is_reported(what, mode, on):
    broken, words = SEVERAL[what]
    x = ms.Tensor(np.ones((2, 3), np.float32), device=on(prepare=with_kernel("sort", broken)))
    ms.set_context(debug=True)
    with pytest.raises(BackendError, match=words) as caught:
        called(lambda a: ms.ops.sort(a)[0] * 2, mode)(x)
    assert str(caught.value).startswith("sort(float32[2, 3]): the kernel of the Toy backend r")


@pytest.mark.parametrize("mode", MODES)
def test_errors_that_a_kernel_may_raise_stay_as_they_are(mode, on):
    error = IndexError("index 7 is out of range for axis 0 of size 5")
    x = ms.Tensor([1.0], device=on(prepare=with_kernel("exp", raising(error))))
    ms.set_context(debug=True)
    with pytest.raises(IndexError, match="index 7 is out of range"):
        called(ms.ops.exp, mode)(x)


def test_debug_mode_changes_calls_that_were_prepared_before(on):
    x = ms.Tensor([1.0], device=on(prepare=with_kernel("exp", lambda k, x: x)))
    compiled = ms.jit(lambda a: ms.ops.exp(a) + 1)
    assert ms.ops.exp(x).asnumpy() == 1 and compiled(x).asnumpy() == 2
    ms.set_context(debug=True)
    for call in (ms.ops.exp, compiled):
        with pytest.raises(BackendError, match="operand 0"):
            call(x)
    ms.set_context(debug=False)
    assert ms.ops.exp(x).asnumpy() == 1 and compiled(x).asnumpy() == 2


def test_a_reshape_shares_the_memory_of_its_operand_in_debug_mode(on):
    x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=on())
    ms.set_context(debug=True)
    assert ms.ops.exp(x.reshape(6)).shape == (6,)
    assert (x.reshape(3, 2) + x.reshape(3, 2)).reshape(6).asnumpy().tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("debug", [False, True])
def test_nothing_reads_past_the_end_of_a_buffer_of_the_cpu(debug):
    """A plugin on the memory of the CPU backend, whose handles are plain pointers."""
    cpu = type(registry.backend("CPU"))

    class Short(cpu):
        name = "Short"

        def prepare(self, op, types, attributes, device_id):
            if op.name == "exp":
                return lambda x: self.copy_in(np.ones(1, np.float32), 0)
            return super().prepare(op, types, attributes, device_id)

    registry.register(BackendSpec("Short", Short, priority=None))
    try:
        x = ms.Tensor(np.ones(1000, np.float32), device="Short")
        ms.set_context(debug=debug)
        with pytest.raises(BackendError, match="4 bytes"):
            ms.ops.exp(x).asnumpy()
    finally:
        ms.set_context(debug=False)
        registry.unregister("Short")


# ---- other methods -------------------------------------------------------------------------

PREPARE = {
    "raises": (raising(KeyError("exp")), "raised KeyError"),
    "returns True": (lambda *a: True, "returned True; wanted a function"),
    "returns a text": (lambda *a: "no kernel", "returned 'no kernel'; wanted a function"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", PREPARE)
def test_a_failing_prepare_is_reported(what, mode, on):
    prepare, words = PREPARE[what]
    x = ms.Tensor([1.0, 2.0], device=on(prepare=prepare))
    with pytest.raises(BackendError, match=words) as caught:
        called(ms.ops.exp, mode)(x)
    assert str(caught.value).startswith("exp(float32[2]): prepare() of the Toy backend r")


WORKS = {"compiles": lambda self, device_id: None, "links": lambda self, device_id: None}
COMPILE = {
    "compiles() raises": {"compiles": raising(OSError("cc"))},
    "compiles() returns True": {"compiles": lambda self, device_id: True},
    "compile() raises": {"compile": raising(OSError("cc"))},
    "compile() returns None": {"compile": lambda self, regions, device_id: None},
    "compile() returns no calls": {"compile": lambda self, regions, device_id: []},
    "compile() returns None for a region": {"compile": lambda self, r, d: [None] * len(r)},
    "compile() returns a generator": {"compile": lambda self, r, d: ("no" for _ in r)},
    "costs() raises": {
        "compile": lambda self, r, d: ["no"] * len(r),
        "costs": raising(OSError("x")),
    },
    "costs() returns a tuple": {
        "compile": lambda self, r, d: ["no"] * len(r),
        "costs": lambda self, d: tuple(DEFAULT_COSTS),
    },
    "links() raises": {"links": raising(OSError("ld")), "compile": Backend.compile},
    "links() returns False": {"links": lambda self, d: False, "compile": Backend.compile},
    "link() raises": {"link": raising(OSError("ld")), "compile": Backend.compile},
    "link() returns None": {"link": lambda self, p, d: None, "compile": Backend.compile},
    "link() returns a number": {"link": lambda self, p, d: 3, "compile": Backend.compile},
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("what", COMPILE)
def test_a_failing_compiler_falls_back_and_says_so(what, debug, on):
    members = {**WORKS, "link": lambda self, program, device_id: "not today", **COMPILE[what]}
    if "links" in what or "link()" in what:
        members["compiles"] = lambda self, device_id: None
        members["compile"] = lambda self, regions, device_id: ["not today"] * len(regions)
    x = ms.Tensor([1.0, 2.0], device=on(**members))
    ms.set_context(debug=debug)
    method = what.partition(" ")[0]
    function = ms.jit(lambda a: ms.ops.exp(a * 2) - a, jit_level="O1")
    with pytest.warns(RuntimeWarning) as caught:
        found = function(x).asnumpy()
    said = {str(w.message) for w in caught if "of the Toy backend" in str(w.message)}
    assert said and all(text.startswith(f"{method} of the Toy backend r") for text in said)
    np.testing.assert_allclose(found, np.exp([2.0, 4.0]) - [1.0, 2.0], rtol=1e-6)


PROGRAM = {
    "raises": (raising(OSError("bus")), "raised OSError: bus"),
    "None": (lambda handles, donated=(): None, "returned None"),
    "two results": (lambda handles, donated=(): (handles[0], handles[0]), "returned 2 results"),
    "too few": (lambda handles, donated=(): handles[0][:1].copy(), r"an array of float32\[1\]"),
}


@pytest.mark.parametrize("what", PROGRAM)
def test_a_broken_linked_program_is_reported_in_debug_mode(what, on):
    run, words = PROGRAM[what]
    linking = {"links": lambda self, d: None, "link": lambda self, program, d: run}
    compiling = {"compiles": WORKS["compiles"], "compile": lambda self, r, d: ["no"] * len(r)}
    x = ms.Tensor([1.0, 2.0], device=on(**linking, **compiling))
    ms.set_context(debug=True)
    with pytest.raises(BackendError, match=words):
        ms.jit(lambda a: ms.ops.exp(a * 2) - a, jit_level="O1")(x)


HOST = {
    "None": lambda self, handle, shape, dtype, d: None,
    "a list": lambda self, handle, shape, dtype, d: handle.tolist(),
    "too few": lambda self, handle, shape, dtype, d: handle.reshape(-1)[:2],
    "another dtype": lambda self, handle, shape, dtype, d: handle.astype(np.float64),
}


@pytest.mark.parametrize("what", HOST)
def test_a_copy_to_the_host_is_what_was_asked_for(what, on):
    """Another device would read past the end of a smaller array."""
    members = {"copy_out": HOST[what], "dlpack_device": lambda self, device_id: None}
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]], device=on(**members))
    for use in (lambda: x.asnumpy(), lambda: x.move_to("CPU") + 1, lambda: x.tolist()):
        with pytest.raises(BackendError, match=r"copy_out\(\) returned .*float32 \[2, 2\]"):
            use()


def test_a_copy_to_the_device_returns_a_handle(on):
    name = on(copy_in=lambda self, array, d: None, from_host=lambda self, array, d: None)
    with pytest.raises(BackendError, match=r"Toy: copy_in\(\) returned None; wanted a handle"):
        ms.Tensor([1.0], device=name)


def test_warnings_as_errors_name_the_plugin(site):
    site.install("bad", "from duograph.backend.hookspecs import hookimpl\n"
                        "@hookimpl\ndef duograph_backend():\n    return 3\n")  # fmt: skip
    program = "import duograph as ms; ms.Tensor([1.0]) + 1"
    done = site.command([sys.executable, "-W", "error::RuntimeWarning", "-c", program])
    assert "the plugin 'bad' of dist-bad 1.0 (bad) is disabled: BackendError" in done.stderr
