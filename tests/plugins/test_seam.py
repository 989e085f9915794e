"""Tests of the plugin interface: an error in one plugin is reported and breaks nothing else."""

from __future__ import annotations

import json
import sys

import pytest
from duograph.backend.protocol import SEAM_VERSION

OWN = ".".join(map(str, SEAM_VERSION))
GOOD = "import duograph as ms; print((ms.Tensor([1.0, 2.0], device='Good') + 1).asnumpy().tolist())"


@pytest.fixture
def with_good(site, device):
    """Fixture: a site with one sound plugin, Good, which has to go on working."""
    site.install("good", device("Good"))
    return site


def devices(site):
    done = site.command([sys.executable, "-m", "duograph.cli", "devices", "--json"])
    assert done.returncode == 0, done.stderr
    return {b["name"]: b for b in json.loads(done.stdout)["backends"]}


# ---- broken plugins: label, source, expected message -----------------------------------------

HEAD = """
from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec, DeviceInfo
"""
BROKEN = {
    "import": ("bad", "import no_such_driver", "No module named 'no_such_driver'"),
    "exit": ("bad", "raise SystemExit('no licence')", "SystemExit: no licence"),
    "syntax": ("bad", "def f(:", "SyntaxError"),
    "hook raises": (
        "bad",
        HEAD + "@hookimpl\ndef duograph_backend():\n    raise OSError('driver 7 is too old')",
        "OSError: driver 7 is too old",
    ),
    "hook returns rubbish": (
        "bad",
        HEAD + "@hookimpl\ndef duograph_backend():\n    return 'CPU'",
        "duograph_backend returned str; wanted a BackendSpec",
    ),
    "hook takes an argument": (
        "bad",
        HEAD + "@hookimpl\ndef duograph_backend(config):\n    return None",
        "config",
    ),
    "hook of unknown name": (
        "bad",
        HEAD + "@hookimpl\ndef duograph_backends():\n    return ()",
        "duograph_backends",
    ),
    "factory raises": (
        "Bad",
        HEAD
        + "def make():\n    raise RuntimeError('firmware missing')\n"
        + "@hookimpl\ndef duograph_backend():\n    return BackendSpec('Bad', make)",
        "RuntimeError: firmware missing",
    ),
    "no hardware": (
        "Bad",
        HEAD + "class B(Backend):\n    def available(self):\n"
        "        return 'no such card is plugged in'\n"
        + "@hookimpl\ndef duograph_backend():\n    return BackendSpec('Bad', B)",
        "no such card is plugged in",
    ),
    "no devices": (
        "Bad",
        HEAD
        + "class B(Backend):\n    def devices(self):\n        return []\n"
        + "@hookimpl\ndef duograph_backend():\n    return BackendSpec('Bad', B)",
        "it has no devices",
    ),
    "older seam": (
        "Bad",
        HEAD + "@hookimpl\ndef duograph_backend():\n"
        "    return BackendSpec('Bad', None, seam_version=(0, 3))",
        f"built for version 0.3 of the plugin seam, this duograph has {OWN}; upgrade the plugin",
    ),
    "newer seam": (
        "Bad",
        HEAD + "@hookimpl\ndef duograph_backend():\n"
        "    return BackendSpec('Bad', None, seam_version=(2, 0))",
        f"built for version 2.0 of the plugin seam, this duograph has {OWN}; upgrade duograph",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_plugin_reports_its_error(with_good, what):
    """H20, H21: an older or newer seam is refused readably; a broken or missing plugin never breaks
    `import`
    """
    name, source, words = BROKEN[what]
    with_good.install("bad", source)
    # 1. the others work, and so does importing
    # 2. the error of the user who asks for it has its words
    first, _, said = with_good.run(
        f"""
        {GOOD}
        try:
            ms.set_context(device_target={name!r})
            ms.Tensor([1.0]) + 1
        except RuntimeError as error:
            print(type(error).__name__, error)
        """
    ).partition("\n")
    assert first == "[2.0, 3.0]"
    assert said.startswith("BackendUnavailable")
    assert words in said
    # 3. so has `duograph devices`
    found = devices(with_good)
    assert words in found[name]["problem"]
    assert found["Good"]["problem"] is None
    assert found[name]["origin"].startswith("dist-bad 1.0")


def test_a_first_kernel_that_does_not_build(with_good):
    with_good.install(
        "bad",
        HEAD
        + """
class B(Backend):
    name = "Bad"
    def devices(self):
        return [DeviceInfo(0, "bad")]
    def copy_in(self, array, device_id):
        return array
    def copy_out(self, handle, shape, dtype, device_id):
        return handle
    def prepare(self, op, types, attributes, device_id):
        raise RuntimeError("add.cl:3: error: expected ';'")

@hookimpl
def duograph_backend():
    return BackendSpec('Bad', B)
""",
    )
    said = with_good.run(
        """
        import duograph as ms
        x = ms.Tensor([1.0, 2.0], device="Bad")
        for _ in range(2):
            try:
                x + 1
            except RuntimeError as error:
                print(error)
        print((x.move_to("Good") + 1).asnumpy().tolist())
        """
    ).splitlines()
    assert said[0] == said[1]
    assert "add.cl:3: error: expected ';'" in said[0]
    assert "add" in said[0]
    assert said[2] == "[2.0, 3.0]"


def test_two_plugins_of_one_name(site, device):
    site.install("first", device("Toy"))
    site.install("second", device("Toy"))
    found = devices(site)
    assert found["Toy"]["problem"] is None
    assert found["Toy"]["origin"].startswith("dist-first")
    (other,) = [b for n, b in found.items() if n.startswith("Toy (")]
    assert other["problem"] == "the name is taken by dist-first 1.0 (first)"
    assert other["origin"].startswith("dist-second")


def test_an_unknown_device_lists_what_is_installed(with_good):
    """A13: Device names CPU / GPU / Ascend style strings; plugin names become legal values"""
    said = with_good.run(
        """
        import duograph as ms
        for name in ("Ascend", "good"):
            try:
                ms.set_context(device_target=name)
                print(ms.get_context("device_target"))
            except ValueError as error:
                print(error)
        """
    ).splitlines()
    assert said[0].startswith("set_context: got device_target='Ascend'")
    assert "wanted one of " in said[0]
    assert "Good" in said[0]
    assert "duograph devices" in said[0]
    assert said[1] == "Good"  # upper and lower case do not matter


def test_nothing_is_loaded_by_importing(site):
    site.install("loud", "print('loaded')\nimport duograph")
    assert site.run("import duograph") == ""
    assert site.run("import duograph as ms; ms.Tensor([1.0]).shape; ms.float32") == ""


# ---- choosing a device
# ------------------------------------------------------------------------------


def test_the_highest_priority_that_is_available_is_the_default(site, device):
    site.install("low", device("Low", priority=1_000))
    site.install("high", device("High", priority=2_000))
    site.install("never", device("Never", priority=None))
    ask = (
        "import duograph as ms; print(ms.get_context('device_target'), (ms.Tensor([1.0]) + "
        "1).device)"
    )
    assert site.run(ask) == "High High:0\n"
    assert site.run(ask, DUOGRAPH_DEVICE="Low") == "Low Low:0\n"
    assert site.run(ask, DUOGRAPH_DEVICE="never") == "Never Never:0\n"
    said = site.run(ask, check=False, DUOGRAPH_DEVICE="Ascend")
    assert "got 'Ascend'" in said


@pytest.mark.parametrize(
    "what", ["factory raises", "no hardware", "no devices", "older seam", "newer seam"]
)
def test_failing_backend_warns(site, device, what):
    """One that finds no hardware is; a lower one is no reason to speak."""
    site.install("low", device("Low", priority=1_000))
    _, source, words = BROKEN[what]
    ask = """
        import warnings
        import duograph as ms
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print((ms.Tensor([1.0]) + 1).device)
            ms.Tensor([1.0]) + 1
        print(len(said), *[w.message for w in said])
    """
    source = source.replace("BackendSpec('Bad', ", "BackendSpec('Bad', priority=PRIORITY, factory=")
    site.install("bad", source.replace("PRIORITY", "2_000"))
    first, _, warned = site.run(ask).partition("\n")
    assert first == "Low:0"
    if what.startswith("no "):
        assert warned == "0\n"
        return
    assert (
        warned.startswith("1 the backend Bad would be taken here and does not work")
        and words in warned
    )
    assert "set_context(device_target='Low')" in warned
    assert site.run(ask, DUOGRAPH_DEVICE="Low") == "Low:0\n0\n"
    (site.folder / "bad.py").write_text(source.replace("PRIORITY", "10"))
    assert site.run(ask) == "Low:0\n0\n"


def test_several_backends_in_one_process(site, device):
    """H07: Two or more non-CPU backends loaded and used in one process"""
    site.install("one", device("One", count=2))
    site.install("two", device("Two"))
    said = site.run(
        """
        import duograph as ms
        a = ms.Tensor([1.0, 2.0], device="One")
        b = ms.Tensor([3.0, 4.0], device="Two")
        c = ms.Tensor([5.0, 6.0], device="One:1")
        host = ms.Tensor([10.0, 20.0])
        print((a + a).device, (b + b).device, (c + c).device)
        print((a + host).device, host.device)
        for wrong in (lambda: a + b, lambda: a + c):
            try:
                wrong()
            except RuntimeError as error:
                print(error)
        print((a + b.move_to("One")).asnumpy().tolist(), b.device, c.move_to("Two").device)
        try:
            a.move_to("Two:3")
        except RuntimeError as error:
            print(error)
        """
    ).splitlines()
    assert said[0] == "One:0 Two:0 One:1"
    assert said[1] == "One:0 One:0"
    assert said[2] == (
        "add: got operands on One:0 and Two:0; wanted all on one device: "
        'move one with move_to("One:0")'
    )
    assert 'move_to("One:0")' in said[3]
    assert said[4] == "[4.0, 6.0] Two:0 Two:0"
    assert said[5] == "move_to: got 3 for Two; wanted 0 (Two 0)"


# ---- missing kernels
# --------------------------------------------------------------------------------

# sort cannot be decomposed for a device that lacks its parts
USE_SORT = """
import warnings
import duograph as ms
from duograph import ops
from duograph.execution.kernel_choice import fallback_counts
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = ms.Tensor([3.0, 1.0, 2.0], device="Toy")
    try:
        for _ in range(3):
            y = ops.exp(x)
        print("ok", y.device)
    except ms.errors.UnsupportedOpError as error:
        print(isinstance(error, NotImplementedError), error)
print([str(w.message) for w in caught])
print(dict(fallback_counts))
"""


def test_a_missing_kernel_without_fallback_is_an_error(site, device):
    """H14: Fallback to CPU for a missing kernel: off / warn / on, reported by name"""
    site.install("toy", device("Toy", lacks=("exp",)))
    first, warned, counts = site.run(USE_SORT).splitlines()
    assert first.startswith("True exp(float32[3]): the Toy backend has no kernel for it")
    assert "write a kernel, or allow the host to run it with set_context(host_fallback=" in first
    assert warned == "[]"
    assert counts == "{}"


def test_fallback_that_warns_once_and_counts(site, device):
    """H14: Fallback to CPU for a missing kernel: off / warn / on, reported by name"""
    site.install("toy", device("Toy", lacks=("exp",), fallback="warn"))
    first, warned, counts = site.run(USE_SORT).splitlines()
    assert first == "ok Toy:0"
    assert warned == ("['exp(float32[3]) runs on the host: the Toy backend has no kernel for it']")
    assert counts == "{('Toy', 'exp'): 3}"


def test_silent_fallback_counts(site, device):
    """H14: Fallback to CPU for a missing kernel: off / warn / on, reported by name"""
    site.install("toy", device("Toy", lacks=("exp",), fallback="on"))
    first, warned, counts = site.run(USE_SORT).splitlines()
    assert (first, warned, counts) == ("ok Toy:0", "[]", "{('Toy', 'exp'): 3}")


def test_user_setting_overrides_host_fallback(site, device):
    site.install("toy", device("Toy", lacks=("exp",)))
    allowed = USE_SORT.replace("with warn", "ms.set_context(host_fallback='on')\nwith warn", 1)
    assert site.run(allowed).startswith("ok Toy:0")


def test_unsupported_dtype_of_a_device(site, device):
    """H13: Op selection and dtype support table per backend"""
    source = device("Toy").replace(
        "lacks =",
        "from duograph.dtype import float32, int32\n    dtypes = (float32, int32)\n    lacks =",
    )
    site.install("toy", source)
    said = site.run(
        """
        import duograph as ms
        try:
            ms.Tensor([1.0], ms.float64, device="Toy")
        except TypeError as error:
            print(error)
        """
    )
    assert said == "Toy:0: got a float64 tensor; this device has float32, int32\n"


# ---- ops, rules and decompositions of plugins ------------------------------------------------


def test_ops_rules_and_decompositions_of_a_plugin(site, device):
    site.install("toy", device("Toy", lacks=("exp",)))
    site.install(
        "more",
        HEAD
        + """
@hookimpl
def duograph_ops():
    from duograph.op import op
    from duograph.tensor import Tensor
    from duograph.types import TensorType

    @op(name="thrice")
    def thrice(input: Tensor):
        '''Three times the input.'''
        return input + input + input

    return [thrice]

@hookimpl
def duograph_bprops():
    return {"thrice": lambda x, out, dout: (dout * 300,)}

@hookimpl
def duograph_decompositions():
    from duograph import ops
    return {"exp": lambda input: ops.add(input, 1)}
""",
    )
    said = site.run(
        """
        import duograph as ms
        x = ms.Tensor([1.0, 2.0], device="Toy")
        print(ms.ops.thrice(x).asnumpy().tolist())
        print(ms.grad(ms.ops.thrice)(x).asnumpy().tolist())
        print(ms.ops.exp(x).asnumpy().tolist())
        """
    ).splitlines()
    assert said == ["[3.0, 6.0]", "[300.0, 300.0]", "[2.0, 3.0]"]
