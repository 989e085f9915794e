"""The stub `_tensor_methods.pyi` matches the installed Tensor methods."""

from duograph.ops import stubs


def test_stub_is_current() -> None:
    assert stubs.PATH.read_text() == stubs.text(), "run: python -m duograph.ops.stubs"
