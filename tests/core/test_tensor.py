"""Tensor and Parameter: construction, printing, conversion, pickling, refusals.

Printed forms are those of MindSpore 2.10.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import warnings

import duograph as ms
import ml_dtypes
import numpy as np
import pytest
from duograph import _locks, placement
from duograph.common.initializer import Initializer, One
from duograph.compiler import jit_call
from duograph.errors import OptionWarning
from duograph.types import TensorType

T = ms.Tensor
ROWS_12 = (
    ", ".join(f" {i}.00000000e+00" for i in range(10)) + ",  1.00000000e+01,  1.10000000e+01, "
)


@pytest.mark.parametrize(
    ("make", "want_repr", "want_str"),
    [
        (lambda: T(1.5), "Tensor(shape=[], dtype=Float32, value= 1.5)", "1.5"),
        (lambda: T(2.0), "Tensor(shape=[], dtype=Float32, value= 2)", "2.0"),
        (lambda: T(True), "Tensor(shape=[], dtype=Bool, value= True)", "True"),
        (lambda: T([True]), "Tensor(shape=[1], dtype=Bool, value= [ True])", "[ True]"),
        (lambda: T([1, 2, 3]), "Tensor(shape=[3], dtype=Int64, value= [1, 2, 3])", "[1 2 3]"),
        (lambda: T([-1, 20]), "Tensor(shape=[2], dtype=Int64, value= [-1, 20])", "[-1 20]"),
        (
            lambda: T([True, False]),
            "Tensor(shape=[2], dtype=Bool, value= [ True, False])",
            "[ True False]",
        ),
        (
            lambda: T([[1.5, 2], [3, 4]]),
            "Tensor(shape=[2, 2], dtype=Float32, value=\n[[ 1.50000000e+00,  2.00000000e+00],\n"
            " [ 3.00000000e+00,  4.00000000e+00]])",
            "[[1.5 2. ]\n [3.  4. ]]",
        ),
        (
            lambda: T([1.5, float("nan")], ms.float16),
            "Tensor(shape=[2], dtype=Float16, value= [ 1.5000e+00,         nan])",
            "[1.5 nan]",
        ),
        (
            lambda: T([100.5, -2.25], ms.bfloat16),
            "Tensor(shape=[2], dtype=BFloat16, value= [100.5, -2.25])",
            "[100.5 -2.25]",
        ),
        (lambda: T(1 + 2j), "Tensor(shape=[], dtype=Complex128, value= 1+2j)", "(1+2j)"),
        (
            lambda: T(np.arange(60, dtype=np.int32).reshape(2, 30)),
            "Tensor(shape=[2, 30], dtype=Int32, value=\n"
            "[[ 0,  1,  2 ... 27, 28, 29],\n [30, 31, 32 ... 57, 58, 59]])",
            None,
        ),
        (
            lambda: T(np.arange(2000)),
            "Tensor(shape=[2000], dtype=Int64, value= [   0,    1,    2 ... 1997, 1998, 1999])",
            "[   0    1    2 ... 1997 1998 1999]",
        ),
        (
            lambda: T(np.arange(14, dtype=np.float32)),
            f"Tensor(shape=[14], dtype=Float32, value= [{ROWS_12}\n"
            "  1.20000000e+01,  1.30000000e+01])",
            None,
        ),
        (lambda: T([]), "Tensor(shape=[0], dtype=Float32, value= )", "[]"),
        (lambda: T(np.zeros((2, 0))), "Tensor(shape=[2, 0], dtype=Float64, value=\n)", "[]"),
        (
            lambda: ms.Parameter(T([1.5]), name="w"),
            "Parameter (name=w, shape=(1,), dtype=Float32, requires_grad=True)",
            None,
        ),
    ],
)
def test_printing(make, want_repr, want_str) -> None:
    """B05, B06: `str(tensor)` is NumPy layout, `repr` is `Tensor(shape=[3], dtype=Float32, ...)`"""
    assert repr(make()) == want_repr
    if want_str is not None:
        assert str(make()) == want_str


@pytest.mark.parametrize("dtype", ms.dtype.ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (1,) * 9])
def test_round_trip(dtype, shape) -> None:
    """B07, B19: asnumpy gives the values back, in every dtype and shape; NumPy-style attributes
    agree
    """
    array = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype.np)
    x = T(array)
    got = x.asnumpy()
    assert got.dtype == dtype.np
    np.testing.assert_array_equal(got, array)
    assert (x.shape, x.dtype, x.ndim, x.size) == (shape, dtype, len(shape), array.size)
    assert (x.itemsize, x.nbytes) == (array.itemsize, array.nbytes)
    if array.size:
        assert x.strides == array.strides
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).asnumpy(), array)
    np.testing.assert_array_equal(copy.deepcopy(x).asnumpy(), array)


def test_pickles_of_earlier_versions_are_read() -> None:
    """A stored pickle names the functions that make its objects, with their modules."""

    def stored(path: str, *arguments: object) -> bytes:
        # PROTO 2, GLOBAL path, the tuple of arguments, REDUCE, STOP
        return b"\x80\x02c" + path.encode() + b"\n" + pickle.dumps(arguments, 2)[2:-1] + b"R."

    array = np.array([1.5, -2.0], np.float32)
    x = pickle.loads(stored("duograph.tensor\n_unpickle", array, "float16"))
    assert (type(x), x.dtype, x.asnumpy().tolist()) == (T, ms.float16, [1.5, -2.0])
    w = pickle.loads(
        stored("duograph.parameter\n_unpickle", array, "float32", "w", False, False, True)
    )
    assert type(w) is ms.Parameter
    assert (w.name, w.requires_grad, w.asnumpy().tolist()) == ("w", False, [1.5, -2.0])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
        np.arange(6).reshape(2, 3).T,
        np.broadcast_to(np.arange(3), (4, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6, dtype=">i4"),
    ],
)
def test_non_contiguous_and_foreign_numpy_inputs(array) -> None:
    """B01: `ms.Tensor(np.array(...).astype(np.float32))`"""
    for made in (T(array), ms.from_numpy(array)):
        np.testing.assert_array_equal(made.asnumpy(), array)
        np.testing.assert_array_equal((made + 1).asnumpy(), array + 1)
        assert made.asnumpy().dtype.isnative
    np.testing.assert_array_equal((T(array * 0) + array).asnumpy(), array)


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        (2**63, None, ms.uint64),
        (2**64 - 1, None, ms.uint64),
        (-(2**63), None, ms.int64),
        (300, ms.uint8, ms.uint8),
        (1e40, None, ms.float32),
        (2**70 * 1.0, ms.float16, ms.float16),
        (True, ms.float32, ms.float32),
    ],
)
def test_numbers_at_the_limits_of_dtypes(recwarn, value, dtype, want) -> None:
    x = T(value, dtype)
    assert x.dtype is want
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x.asnumpy(), np.array(value).astype(want.np))
    assert not recwarn.list


@pytest.mark.parametrize("init", ["ones", 1, 1.0, One()], ids=repr)
def test_initializers_run_at_first_use(init) -> None:
    made = T(shape=(2, 3), dtype=ms.float32, init=init)
    assert made.has_init
    assert made.asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]


def test_an_initializer_may_use_tensors() -> None:
    class Own(Initializer):
        def _initialize(self, arr):
            arr[...] = (T([1.0, 2.0]) * 2).asnumpy()

    found = []
    worker = threading.Thread(
        target=lambda: found.append(T(shape=(2,), dtype=ms.float32, init=Own()) + 1), daemon=True
    )
    worker.start()
    worker.join(20)
    assert found[0].asnumpy().tolist() == [3, 5]


def test_input_is_copied() -> None:
    a = np.ones(3, np.float32)
    x = T(a)
    a[0] = 9
    assert x.asnumpy()[0] == 1


def test_from_numpy_shares_memory() -> None:
    """B18: `Tensor.from_numpy` shares memory with the array"""
    a = np.ones(3, np.float32)
    x = ms.from_numpy(a)
    a[0] = 9
    assert x.asnumpy()[0] == 9


def test_dlpack_both_ways() -> None:
    """B21: DLPack in and out"""
    a = np.arange(5, dtype=np.float32)
    x = T.from_dlpack(a)
    np.testing.assert_array_equal(np.from_dlpack(x + 0), a)


def test_conversions_to_python_numbers() -> None:
    assert (float(T(1.5)), int(T([3])), bool(T(0)), complex(T(2.0))) == (1.5, 3, False, 2 + 0j)
    assert [10, 20, 30][T(1)] == 20
    assert T([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert T([1.5]).item() == 1.5
    assert f"{T(1.25):.1f}" == "1.2"
    assert len(T([1, 2, 3])) == 3
    assert np.asarray(T([1, 2]), dtype=np.float64).dtype == np.float64
    assert T([1.5], ms.bfloat16).asnumpy().dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("call", "kind", "pattern"),
    [
        (lambda: T(), ValueError, "no input_data"),
        (lambda: T("abc"), TypeError, "wanted numbers"),
        (lambda: T(object()), TypeError, "wanted numbers"),
        (
            lambda: T([[1, 2], [3]]),
            ValueError,
            "no rectangular array.*length 2 and one of length 1",
        ),
        (lambda: T([[[1], [2, 3]], [[4], [5]]]), ValueError, "length 1 and one of length 2"),
        (lambda: T([[1, 2], 3]), ValueError, "no rectangular array"),
        (lambda: T([[[1, 2]], [3]]), ValueError, "no rectangular array"),
        (lambda: float(T([1, 2])), ValueError, "wanted one element ..mean"),
        (lambda: T(1)[0], IndexError, "got 1 index for shape .. of 0 axes.*wanted none"),
        (lambda: T([1, 2]).reshape((-1, -1)), ValueError, "at most one -1"),
        (lambda: T([1, 2, 3]).reshape((-1, 2)), ValueError, "beside -1 .2. to divide 3"),
        (lambda: T([1, 2]).reshape((-1, 0)), ValueError, "no size of 0 beside -1"),
        (lambda: T([1, 2]).reshape((-2, 1)), ValueError, "wanted sizes from 0 on"),
        (lambda: T([1, None]), TypeError, "wanted numbers"),
        (lambda: T([1, 2], shape=(3,)), ValueError, r"shape=\(3,\) and data of shape \(2,\)"),
        (lambda: T(shape=(2,)), ValueError, "without init"),
        (lambda: T([1], dtype="float33"), TypeError, "wanted one of bool"),
        (lambda: T(2**64), ValueError, "at most 64 bits"),
        (lambda: T(shape=(2, -3), init="ones"), ValueError, "lengths of at least 0"),
        (lambda: T(shape="ab", init="ones"), TypeError, "tuple of ints"),
        (lambda: T(shape=(2,), init="nosuch"), ValueError, "wanted one of"),
        (lambda: T([1], device=3), RuntimeError, "got 3; wanted the name"),
        (lambda: np.array(T([1.0]), dtype=int, copy=False), ValueError, "copy=False"),
        (lambda: bool(T([1, 2])), ValueError, "ambiguous"),
        (lambda: bool(T([])), ValueError, "empty tensor"),
        (lambda: float(T([1.0, 2.0])), ValueError, "wanted one element"),
        (lambda: len(T(1)), TypeError, "0-d tensor"),
        (lambda: list(T(1)), TypeError, "0-d tensor"),
        (lambda: [1][T(0.0)], TypeError, "wanted one integer"),
        (lambda: T([1, 2]).item(), ValueError, "wanted one element"),
        (lambda: T([1], device="Nowhere"), RuntimeError, "no plugin brings it"),
        (lambda: T([1]).move_to("Nowhere"), RuntimeError, "no plugin brings it"),
        (lambda: T([1]).move_to("CPU:7"), RuntimeError, "got 7 for CPU"),
        (lambda: T([1]) + "x", TypeError, "got str for an operand"),
        (lambda: T([1]) + None, TypeError, "wanted a Tensor"),
        (lambda: T([1, 2]) + T([1, 2, 3]), ValueError, r"shapes \(2,\) and \(3,\)"),
        (lambda: ms.ops.add(T([1])), TypeError, "no value for 'other'"),
        (lambda: ms.ops.add(T([1]), T([1]), T([1])), TypeError, "3 positional arguments"),
        (lambda: ms.ops.add(T([1]), other=T([1]), x=2), TypeError, "unknown argument 'x'"),
        (lambda: ms.ops.add(T([1]), T([1]), input=T([1])), TypeError, "two values for 'input'"),
        (lambda: ms.Parameter(T([1]), name=3), TypeError, "wanted a string"),
        (lambda: ms.Parameter(T([1]), requires_grad=1), TypeError, "wanted True or False"),
        (
            lambda: ms.Parameter(T([1.0]), name="w").set_data(T([1.0, 2.0])),
            ValueError,
            "Parameter w",
        ),
        (lambda: ms.Parameter(T([1]), name="w").set_data(T([1.5])), TypeError, "cannot hold"),
        (lambda: ms.ParameterTuple([T([1])]), TypeError, "wanted Parameters"),
        (lambda: ms.from_numpy([1]), TypeError, "wanted a NumPy array"),
    ],
)
def test_refused_arguments(call, kind, pattern) -> None:
    with pytest.raises(kind, match=pattern):
        call()


class TestParameter:
    def test_set_data(self) -> None:
        w = ms.Parameter(T([1.0, 2.0]), name="w")
        old = w.value()
        w.set_data(T([3.0, 4.0]))
        assert w.asnumpy().tolist() == [3, 4]
        assert old.asnumpy().tolist() == [1, 2]
        w.set_data(T([[5.0]]), slice_shape=True)
        assert w.shape == (1, 1)

    def test_keeps_its_dtype(self) -> None:
        w = ms.Parameter(T([1.0]), name="w")
        w.set_data(T([2]))
        assert w.dtype is ms.float32

    def test_does_not_follow_the_array_it_was_given(self) -> None:
        a = np.ones(2, np.float32)
        w = ms.Parameter(T(np.zeros(2, np.float32)), name="w")
        w.set_data(ms.from_numpy(a))
        a[0] = 9
        assert w.asnumpy().tolist() == [1, 1]

    def test_pickle_and_clone(self) -> None:
        flags = {"requires_grad": False, "layerwise_parallel": True, "parallel_optimizer": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptionWarning)  # of layerwise_parallel
            w = ms.Parameter(T([1.0]), name="w", **flags)
        for made in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w), w.clone()):
            assert isinstance(made, ms.Parameter)
            assert (made.name, made.asnumpy().tolist()) == ("w", [1.0])
            assert {name: getattr(made, name) for name in flags} == flags

    def test_arithmetic_gives_tensors(self) -> None:
        """B10, B11: Operators + - * on Tensor/Parameter/number with broadcasting"""
        w = ms.Parameter(T([1.0, 2.0]), name="w")
        for got in (w + 1, 1 + w, w * w, T([1.0, 1.0]) + w):
            assert type(got) is T


def test_threads_commit_a_tensor_once() -> None:
    """Host data goes to the device once, whoever comes first."""
    import threading

    def add_one(x, got):
        got.append(float((x + 1).asnumpy().sum()))

    for _ in range(50):
        x = T(np.arange(1000, dtype=np.float32))
        got: list[float] = []
        threads = [threading.Thread(target=add_one, args=(x, got)) for _ in range(4)]
        for th in threads:
            th.start()
        for th in threads:
            th.join()
        assert got == [500500.0] * 4


LOCKS = {
    "placement": placement.commit_lock,
    "compilation": jit_call._compiling,
    "types": TensorType._lock,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", LOCKS)
def test_locks_are_free_in_a_forked_child(name: str) -> None:
    """A thread that holds a lock of ours while another one forks leaves it free in the child."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCKS[name]:
            held.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20)
    child = os.fork()
    if child == 0:

        def work() -> None:
            ms.jit(lambda x: x + 1)(T([1.0] * 7))

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(10)
        os._exit(1 if worker.is_alive() else 0)
    done.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_thread_that_forks_keeps_its_own_locks() -> None:
    """The child of a thread that holds a lock releases it like the parent."""
    with placement.commit_lock:
        child = os.fork()
        if child == 0:
            try:
                placement.commit_lock.release()
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_types_that_nothing_uses_are_dropped() -> None:
    gc.collect()
    before = len(TensorType._plain)
    for n in range(5000):
        TensorType.of((n, 13, 11), ms.float32).on(None, 1)
    kept = TensorType.of((4999, 13, 11), ms.float32).on(None, 1)
    gc.collect()
    assert len(TensorType._plain) <= before + 1
    assert TensorType.of((4999, 13, 11), ms.float32) is kept.plain


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_the_imports_of_other_threads() -> None:
    """Python's lock of a module that another thread imports would stay locked in the child."""
    begun, ended = threading.Event(), threading.Event()

    def load() -> None:
        with _locks.importing:
            begun.set()
            ended.wait(0.3)
        ended.set()

    loader = threading.Thread(target=load)
    loader.start()
    begun.wait(20)
    child = os.fork()
    if child == 0:
        os._exit(0 if ended.is_set() else 1)
    loader.join()
    assert os.waitpid(child, 0)[1] == 0
