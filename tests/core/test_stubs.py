"""`_tensor_methods.pyi` is what the op table says."""

from duograph.ops import stubs


def test_stub_is_current() -> None:
    assert stubs.PATH.read_text() == stubs.text(), "run: python -m duograph.ops.stubs"
