"""The backend on PyTorch: its kernels, and whole graphs compiled by torch.compile.

PyTorch is large and not installed by `make setup`; `make test-torch` runs these tests.
"""

from __future__ import annotations

import shutil
import threading
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.errors import IndexRangeError, LabelRangeError
from plugins.torch_graphs import PROGRAMS, REFUSED

pytest.importorskip("torch", reason="PyTorch is not installed; `make test-torch` installs it")
pytest.importorskip(
    "duograph_torch", reason="plugins/torch is not installed; see `make test-torch`"
)

pytestmark = [
    pytest.mark.usefixtures("restored"),
    pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler"),
]

WHOLE = "compiled as a whole by the backend"


def operands(device: str) -> list[Tensor]:
    """Return float32 Tensors of shapes (3, 4) and (4, 3), and indices (2, 2)."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 3))]
    return [Tensor(a, device=device) for a in (*made, np.array([[0, 2], [-1, 2]]))]


def flat(value: Any) -> list[np.ndarray]:
    """Return the arrays of a Tensor or of nested tuples of Tensors."""
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in flat(v)]
    return [value.asnumpy()]


def agree(got: Any, want: Any, near: float = 1e-5) -> None:
    """Check that two results are close."""
    for a, b in zip(flat(got), flat(want), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=near, atol=near)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function = PROGRAMS[name]
    ms.set_seed(1)
    wanted = [function(*operands("CPU")) for _ in range(2)]
    ms.set_seed(1)
    agree(function(*operands("Torch")), wanted[0])
    compiled = ms.jit(function, jit_level="O1")
    ms.set_seed(1)
    for want in wanted:
        agree(compiled(*operands("Torch")), want)
    assert WHOLE in str(compiled.explain(*operands("Torch")))


@pytest.mark.parametrize("name", REFUSED)
def test_other_programs_run_step_by_step(name: str) -> None:
    function, reason = REFUSED[name]
    ms.set_seed(1)
    want = function(*operands("CPU"))
    ms.set_seed(1)
    compiled = ms.jit(function, jit_level="O1")
    agree(compiled(*operands("Torch")), want)
    assert reason in str(compiled.explain(*operands("Torch")))


WRONG = {
    "gather": (lambda x, i: ops.gather(x, i + 7, 0), IndexRangeError, "index .* of size 3"),
    "scatter": (
        lambda x, i: ops.tensor_scatter_elements(x, i[:, :1] + 7, x[:2, :1]),
        IndexRangeError,
        "scatter.* index .* axis 0 of size",
    ),
    "a label": (
        lambda x, i: ops.cross_entropy(x[:2], i[0].astype(ms.int32) + 7),
        LabelRangeError,
        "wanted 0 to 3",
    ),
    "an empty axis": (lambda x, i: ops.gather(x[:0], i, 0), IndexRangeError, "size 0"),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "O1"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_indices(name: str, compiled: bool) -> None:
    function, error, text = WRONG[name]
    x, _, i = operands("Torch")
    run = ms.jit(function, jit_level="O1") if compiled else function
    with pytest.raises(error, match=text):
        run(x, i)


def test_results_have_memory_of_their_own() -> None:
    x, y, _ = operands("Torch")
    view = ms.jit(lambda x, y: (x.reshape((4, 3)), x.T, x.reshape((4, 3)) + y), jit_level="O1")
    first, second, _ = view(x, y)
    memory = {t._buf.untyped_storage().data_ptr() for t in (x, first, second)}
    assert len(memory) == 3


def test_sixteen_bits_round_after_each_op() -> None:
    x = np.linspace(1, 2, 64).astype(np.float16)

    def chain(x: Tensor) -> Tensor:
        return ((x * 1.001 + 3) * 1.001 - 3) * 100

    eager = chain(Tensor(x, device="Torch"))
    compiled = ms.jit(chain, jit_level="O1")(Tensor(x, device="Torch"))
    np.testing.assert_array_equal(eager.asnumpy(), compiled.asnumpy())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "O1"])
def test_unsigned_arithmetic_wraps(compiled: bool) -> None:
    x = np.array([0, 1, 0xFFFFFFFF, 0x80000000], np.uint32)

    def function(x: Tensor) -> Any:
        return x + x, x - 1, x * x, x << 1, x >> 31, x.sum(), x < 2, x.astype(ms.int32)

    run = ms.jit(function, jit_level="O1") if compiled else function
    for a, b in zip(run(Tensor(x, device="Torch")), function(Tensor(x)), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_training_is_one_graph() -> None:
    losses: dict[str, list[float]] = {}
    for device in ("CPU", "Torch"):
        ms.set_context(device_target=device)
        ms.set_seed(0)
        net = nn.SequentialCell(nn.Dense(4, 16), nn.LayerNorm((16,)), nn.GELU(), nn.Dense(16, 3))
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        loss = ms.value_and_grad(
            lambda x, t, n=net: ops.cross_entropy(n(x), t), None, optimizer.parameters
        )

        def step(x: Tensor, t: Tensor, loss: Any = loss, optimizer: Any = optimizer) -> Tensor:
            value, grads = loss(x, t)
            optimizer(grads)
            return value

        compiled = ms.jit(step, jit_level="O2")
        x = operands(device)[0]
        t = Tensor(np.array([0, 1, 2], np.int32), device=device)
        losses[device] = [float(compiled(x, t)) for _ in range(5)]
        if device == "Torch":
            assert WHOLE in str(compiled.explain(x, t))
    np.testing.assert_allclose(losses["Torch"], losses["CPU"], rtol=1e-4)
    assert losses["Torch"][-1] < losses["Torch"][0]


def test_threads_share_a_compiled_function() -> None:
    compiled = ms.jit(lambda x, y: ops.softmax(x @ y, -1), jit_level="O1")
    want = ops.softmax(operands("CPU")[0] @ operands("CPU")[1], -1).asnumpy()
    found: list[np.ndarray] = []

    def run() -> None:
        found.append(compiled(*operands("Torch")[:2]).asnumpy())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    for a in found:
        np.testing.assert_allclose(a, want, rtol=1e-5)


def test_a_handle_of_another_dtype_is_not_converted() -> None:
    backend = ms.backend.registry.backend("Torch")
    x = Tensor([1.0, 2.0], device="Torch")
    assert backend.nbytes(x._buf, 0) == 8
    x._buf = x._buf.double()
    with pytest.raises(ms.errors.BackendError, match="float64"):
        x.asnumpy()


# ---- DLPack -------------------------------------------------------------------------------------


def test_tensors_share_memory_with_pytorch() -> None:
    import torch
    from duograph_torch.translations import DTYPES

    for dtype in (d for d in DTYPES if d is not ms.uint32):
        x = Tensor(np.ones((2, 3)), dtype, device="Torch") + Tensor(0, dtype, device="Torch")
        shared = torch.from_dlpack(x)
        assert shared.data_ptr() == x._buf.data_ptr()
        shared[0, 0] = 0
        assert not x.asnumpy()[0, 0]
        y = x.move_to("CPU").move_to("Torch")
        assert (y.dtype, y.device) == (dtype, "Torch:0")
        assert y._buf.data_ptr() != x._buf.data_ptr()
        np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
    x = Tensor([1, 2**32 - 1], ms.uint32, device="Torch")
    with pytest.raises(BufferError, match="uint32 is held as int64"):
        x._shared()._own(None, None, False)
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2**32 - 1])  # a copy
    np.testing.assert_array_equal(x.move_to("CPU").move_to("Torch").asnumpy(), [1, 2**32 - 1])
    with pytest.raises(ms.errors.DTypeError, match="Torch:0: got a uint64 tensor"):
        Tensor([1], ms.uint64, device="CPU").move_to("Torch")


def test_moves_from_and_to_pytorch_make_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ms.backend.registry.backend("Torch")
    x = Tensor(np.ones((2, 3), np.float32), device="Torch")
    for name in ("copy_in", "copy_out"):
        monkeypatch.setattr(type(backend), name, None)
    y = x.move_to("CPU")
    assert y.device == "CPU:0"
    gradient = ms.grad(lambda v: (v * v).move_to("Torch").sum())(y)
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * np.ones((2, 3)))
