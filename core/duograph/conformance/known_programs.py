"""Small programs with known output: source code and exactly what it prints.

`test_programs` runs each program both uncompiled (line by line) and compiled. The source may use
`ms`, `nn`, `ops` and `np`, which are already imported. Unless a program is `rounded`, all its
numbers are exact in float32 in any order of summation, so every device must print the same text.
"""

from __future__ import annotations

import dataclasses

__all__ = ["SMALL", "KnownProgram"]


@dataclasses.dataclass(frozen=True)
class KnownProgram:
    """A program and what it must print.

    Attributes:
        source: source code of the program.
        printed: what the program prints if it runs uncompiled, line by line. Indentation is removed
            from `source` and `printed`.
        compiled: what it prints in GRAPH_MODE, where `print` writes each argument on a separate
            line; None if that is the same as `printed`.
        rounded: whether the printed numbers depend on the order of summation; they may then differ
            by a few units in the last place.
    """

    source: str
    printed: str
    compiled: str | None = None
    rounded: bool = False


# Values, dtypes, order of prints, errors.
SMALL = {
    "tensors": KnownProgram(
        """
        x = ms.Tensor([[1, 2], [3, 4]], ms.float32)
        print(x + x)
        print(repr(x.sum()))
        print(x.shape, x.dtype, x[1], (x > 2).asnumpy().tolist())
        """,
        """
        [[2. 4.]
         [6. 8.]]
        Tensor(shape=[], dtype=Float32, value= 10)
        (2, 2) Float32 [3. 4.] [[False, False], [True, True]]
        """,
    ),
    "a cell and its gradient": KnownProgram(
        """
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = ms.Parameter(ms.Tensor([2.0], ms.float32), name="w")

            def construct(self, x):
                print("forward", x)
                return x * self.w

        net = Net()
        grad = ms.grad(net, 0, net.trainable_params())
        dx, dw = grad(ms.Tensor([3.0]))
        print("dx", dx, "dw", dw[0])
        """,
        """
        forward [3.]
        dx [2.] dw [3.]
        """,
        """
        forward
        Tensor(shape=[1], dtype=Float32, value=[ 3.00000000e+00])
        dx [2.] dw [3.]
        """,
    ),
    "assignments in order": KnownProgram(
        """
        p = ms.Parameter(ms.Tensor([1.0]), name="p")
        before = p * 1
        ops.assign(p, ms.Tensor([5.0]))
        print(before, p * 1)
        ops.assign_add(p, ms.Tensor([2.0]))
        x = p[0]
        p[0] = 9.0
        print(x, p.asnumpy())
        """,
        """
        [1.] [5.]
        7.0 [9.]
        """,
    ),
    "views that are values": KnownProgram(
        """
        x = ms.Tensor(np.arange(6).reshape(2, 3), ms.int32)
        y = x.T
        x[0, 1] = 100
        print(x)
        print(y)
        """,
        """
        [[  0 100   2]
         [  3   4   5]]
        [[0 3]
         [1 4]
         [2 5]]
        """,
    ),
    "control flow on values": KnownProgram(
        """
        x = ms.Tensor(10)
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            print(int(x), end=" ")
        print("done")
        """,
        """
        5 16 8 4 2 1 done
        """,
    ),
    "an error in the middle": KnownProgram(
        """
        x = ms.Tensor([1.0, 2.0])
        print(x * 2)
        try:
            x + ms.Tensor([1.0, 2.0, 3.0])
        except ValueError as error:
            print(type(error).__name__)
        print(x * 3)
        """,
        """
        [2. 4.]
        ShapeError
        [3. 6.]
        """,
    ),
    "gradient operations": KnownProgram(
        """
        class Net(nn.Cell):
            def construct(self, x, y):
                return x * x * y

        net = Net()
        x, y = ms.Tensor([3.0]), ms.Tensor([2.0])
        print(ops.GradOperation()(net)(x, y))
        for grad in ops.GradOperation(get_all=True)(net)(x, y):
            print(repr(grad))
        print(ops.GradOperation(sens_param=True)(net)(x, y, ms.Tensor([10.0])))
        """,
        """
        [12.]
        Tensor(shape=[1], dtype=Float32, value= [ 1.20000000e+01])
        Tensor(shape=[1], dtype=Float32, value= [ 9.00000000e+00])
        [120.]
        """,
    ),
}
