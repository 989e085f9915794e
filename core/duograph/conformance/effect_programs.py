"""Test programs whose compiled code has side effects, and exactly what they print.

`test_programs` runs them; `known_programs` has the format. Each program calls its Cell several
times with different values. At every call, attributes, lists, dicts, arguments and Parameters must
be written, and text must be printed, once and in the order of the source.
"""

from __future__ import annotations

from .known_programs import KnownProgram

__all__ = ["EFFECTS"]

_NET = """
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = ms.Parameter(ms.Tensor([1.0, 1.0]), name="w")
                self.log = []
                self.seen = {"total": 0.0}
                self.calls = 0
                self.last = None
"""

EFFECTS = {
    "attributes": KnownProgram(
        _NET
        + """
            def construct(self, x):
                self.calls += 1
                self.last = x * 2
                return x + self.calls

        net = Net()
        for value in (1.0, 2.0, 5.0):
            print(net(ms.Tensor([value, 0.0])), net.calls, net.last)
        """,
        """
        [2. 1.] 1 [2. 0.]
        [4. 2.] 2 [4. 0.]
        [8. 3.] 3 [10.  0.]
        """,
    ),
    "attribute under a condition": KnownProgram(
        _NET
        + """
            def construct(self, x):
                if x.sum() > 2:
                    self.calls = self.calls + 1
                    self.last = x
                else:
                    self.last = -x
                return x * self.calls

        net = Net()
        for value in (1.0, 5.0, 2.0, 7.0):
            print(net(ms.Tensor([value])), int(net.calls), net.last)
        """,
        """
        [0.] 0 [-1.]
        [5.] 1 [5.]
        [2.] 1 [-2.]
        [14.] 2 [7.]
        """,
    ),
    "list": KnownProgram(
        _NET
        + """
            def construct(self, x):
                self.log.append(x.sum())
                y = x * 2
                self.log.append(y)
                y[0] = 100.0
                return y

        net = Net()
        for value in (1.0, 2.0, 3.0):
            net(ms.Tensor([value, 1.0]))
        print(len(net.log), *net.log)
        """,
        "6 2.0 [100.   2.] 3.0 [100.   2.] 4.0 [100.   2.]",
    ),
    "list replaced between calls": KnownProgram(
        _NET
        + """
            def construct(self, x):
                self.log.append(x + 1)
                return x

        net = Net()
        first = net.log
        net(ms.Tensor([1.0]))
        net.log = second = []
        net(ms.Tensor([2.0]))
        net(ms.Tensor([3.0]))
        print(len(first), *first)
        print(len(second), *second)
        """,
        """
        1 [2.]
        2 [3.] [4.]
        """,
    ),
    "dict": KnownProgram(
        _NET
        + """
            def construct(self, x):
                self.seen["total"] = self.seen["total"] + x.sum()
                self.seen["last"] = x
                return x * self.seen["total"]

        net = Net()
        for value in (1.0, 2.0, 3.0):
            print(net(ms.Tensor([value, value])))
        print(float(net.seen["total"]), net.seen["last"])
        """,
        """
        [2. 2.]
        [12. 12.]
        [36. 36.]
        12.0 [3. 3.]
        """,
    ),
    "global": KnownProgram(
        """
        total = 0.0

        class Net(nn.Cell):
            def construct(self, x):
                global total
                total = total + x.sum()
                return x - total

        net = Net()
        for value in (1.0, 2.0, 3.0):
            print(net(ms.Tensor([value, 1.0])), float(total))
        """,
        """
        [-1. -1.] 2.0
        [-3. -4.] 5.0
        [-6. -8.] 9.0
        """,
    ),
    "argument": KnownProgram(
        _NET
        + """
            def construct(self, x, y):
                before = x.sum()
                x[0] = y[1]
                y += x
                return before, y

        net = Net()
        x, y = ms.Tensor([1.0, 2.0]), ms.Tensor([10.0, 20.0])
        alias = x
        for _ in range(2):
            before, result = net(x, y)
            print(before, x, alias is x, y, result)
        """,
        """
        3.0 [20.  2.] True [10. 20.] [30. 22.]
        22.0 [20.  2.] True [10. 20.] [30. 22.]
        """,
    ),
    "Parameter read, written, read": KnownProgram(
        _NET
        + """
            def construct(self, x):
                before = self.w * 1
                ops.assign(self.w, before + x)
                between = self.w * 10
                self.w[1] = 7.0
                ops.assign_sub(self.w, x)
                return before, between, self.w * 1

        net = Net()
        for value in (1.0, 2.0, 3.0):
            print(*net(ms.Tensor([value, value])), net.w.asnumpy())
        """,
        """
        [1. 1.] [20. 20.] [1. 6.] [1. 6.]
        [1. 6.] [30. 80.] [1. 5.] [1. 5.]
        [1. 5.] [40. 80.] [1. 4.] [1. 4.]
        """,
    ),
    "Parameter written in a branch and a loop": KnownProgram(
        _NET
        + """
            def construct(self, x):
                while x.sum() < 10:
                    if self.w[0] > 2:
                        ops.assign(self.w, x)
                    else:
                        ops.assign_add(self.w, x)
                    x = x * 2
                return x

        net = Net()
        for value in (1.0, 3.0, 20.0):
            print(net(ms.Tensor([value, 0.0])), net.w.asnumpy())
        """,
        """
        [16.  0.] [8. 0.]
        [12.  0.] [6. 0.]
        [20.  0.] [6. 0.]
        """,
    ),
    "Parameter written between calls": KnownProgram(
        _NET
        + """
            def construct(self, x):
                return x * self.w

        net = Net()
        x = ms.Tensor([3.0, 4.0])
        print(net(x))
        net.w.set_data(ms.Tensor([2.0, 10.0]))
        print(net(x))
        net.w[0] = 5.0
        print(net(x))
        ms.load_param_into_net(net, {"w": ms.Parameter(ms.Tensor([0.5, 0.25]))})
        print(net(x))
        """,
        """
        [3. 4.]
        [ 6. 40.]
        [15. 40.]
        [1.5 1. ]
        """,
    ),
    "writes before an error": KnownProgram(
        _NET
        + """
            def construct(self, x):
                ops.assign_add(self.w, x)
                self.calls += 1
                if x.sum() > 5:
                    raise ValueError("too large")
                ops.assign_add(self.w, x)
                return x

        net = Net()
        for value in (1.0, 9.0, 2.0):
            try:
                net(ms.Tensor([value, 0.0]))
                print("returns", end=" ")
            except ValueError as error:
                print(str(error).splitlines()[0], end=" ")
            print(net.w.asnumpy(), net.calls)
        """,
        """
        returns [3. 1.] 1
        too large [12.  1.] 2
        returns [16.  1.] 3
        """,
    ),
    "prints between writes": KnownProgram(
        _NET
        + """
            def construct(self, x):
                print("before", self.w * 1)
                ops.assign(self.w, x)
                print("after", self.w * 1)
                self.calls += 1
                print("call", self.calls, x.shape)
                return x.sum()

        net = Net()
        for value in (1.0, 2.5):
            print("returned", net(ms.Tensor([value, 4.0])))
        """,
        """
        before [1. 1.]
        after [1. 4.]
        call 1 (2,)
        returned 5.0
        before [1. 4.]
        after [2.5 4. ]
        call 2 (2,)
        returned 6.5
        """,
        """
        before
        Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  1.00000000e+00])
        after
        Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  4.00000000e+00])
        call
        1
        (2,)
        returned 5.0
        before
        Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  4.00000000e+00])
        after
        Tensor(shape=[2], dtype=Float32, value=[ 2.50000000e+00  4.00000000e+00])
        call
        2
        (2,)
        returned 6.5
        """,
    ),
    "prints in branches and loops": KnownProgram(
        _NET
        + """
            def construct(self, x):
                for i in range(2):
                    print("round", i)
                while x.sum() < 8:
                    print("step", x.sum())
                    x = x * 2
                if x[0] > x[1]:
                    print("first is larger")
                else:
                    print("second is larger", x)
                return x

        net = Net()
        for pair in ([3.0, 1.0], [1.0, 2.0], [8.0, 9.0]):
            print("returned", net(ms.Tensor(pair)))
        """,
        """
        round 0
        round 1
        step 4.0
        first is larger
        returned [6. 2.]
        round 0
        round 1
        step 3.0
        step 6.0
        second is larger [4. 8.]
        returned [4. 8.]
        round 0
        round 1
        second is larger [8. 9.]
        returned [8. 9.]
        """,
        """
        round
        0
        round
        1
        step
        4
        first is larger
        returned [6. 2.]
        round
        0
        round
        1
        step
        3
        step
        6
        second is larger
        Tensor(shape=[2], dtype=Float32, value=[ 4.00000000e+00  8.00000000e+00])
        returned [4. 8.]
        round
        0
        round
        1
        second is larger
        Tensor(shape=[2], dtype=Float32, value=[ 8.00000000e+00  9.00000000e+00])
        returned [8. 9.]
        """,
    ),
    "prints of each dtype": KnownProgram(
        _NET
        + """
            def construct(self, x):
                print("int32", (x * 3).astype(ms.int32))
                print("bool", x > 1)
                print("f-string: %d items of %s" % (x.shape[0], x.dtype))
                print("scalar", x.max(), end="!\\n", sep="=")
                return x

        net = Net()
        for value in (1.0, 2.0):
            net(ms.Tensor([value, 0.5]))
        """,
        """
        int32 [3 1]
        bool [False False]
        f-string: 2 items of Float32
        scalar=1.0!
        int32 [6 1]
        bool [ True False]
        f-string: 2 items of Float32
        scalar=2.0!
        """,
        """
        int32
        Tensor(shape=[2], dtype=Int32, value=[3 1])
        bool
        Tensor(shape=[2], dtype=Bool, value=[False False])
        f-string: 2 items of Float32
        scalar=1!
        int32
        Tensor(shape=[2], dtype=Int32, value=[6 1])
        bool
        Tensor(shape=[2], dtype=Bool, value=[ True False])
        f-string: 2 items of Float32
        scalar=2!
        """,
    ),
    "effects under a gradient": KnownProgram(
        _NET
        + """
            def construct(self, x):
                out = x * self.w
                print("forward")
                ops.assign_add(self.w, ms.Tensor([1.0, 1.0]))
                self.log.append(x.max())
                self.calls += 1
                return (out + x * self.w).sum()

        net = Net()
        gradient = ms.grad(net, 0, net.trainable_params())
        for value in (1.0, 2.0):
            dx, (dw,) = gradient(ms.Tensor([value, 3.0]))
            print(dx, dw, net.w.asnumpy(), net.calls, *net.log)
        """,
        """
        forward
        [3. 3.] [2. 6.] [2. 2.] 1 3.0
        forward
        [5. 5.] [4. 6.] [3. 3.] 2 3.0 3.0
        """,
    ),
    "training step": KnownProgram(
        """
        class Step(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.optimizer = nn.SGD(net.trainable_params(), 0.5)
                self.gradient = ms.value_and_grad(self.loss, None, self.optimizer.parameters)
                self.losses = []

            def loss(self, x):
                return self.net(x).sum()

            def construct(self, x):
                loss, grads = self.gradient(x)
                print("loss", loss)
                self.losses.append(loss)
                self.optimizer(grads)
                return self.net(x)

        step = Step(nn.Dense(2, 1, weight_init="ones", has_bias=False))
        for value in (1.0, 2.0, 4.0):
            print(step(ms.Tensor([[value, 1.0]])), step.net.weight.asnumpy(), *step.losses)
        """,
        """
        loss 2.0
        [[1.]] [[0.5 0.5]] 2.0
        loss 1.5
        [[-1.]] [[-0.5  0. ]] 2.0 1.5
        loss -2.0
        [[-10.5]] [[-2.5 -0.5]] 2.0 1.5 -2.0
        """,
        """
        loss
        2
        [[1.]] [[0.5 0.5]] 2.0
        loss
        1.5
        [[-1.]] [[-0.5  0. ]] 2.0 1.5
        loss
        -2
        [[-10.5]] [[-2.5 -0.5]] 2.0 1.5 -2.0
        """,
    ),
    "statistics of batch normalisation": KnownProgram(
        """
        net = nn.BatchNorm1d(2, momentum=0.5, eps=1.0)
        x = ms.Tensor([[0.0, 1.0], [4.0, 1.0]])
        net.set_train()
        for factor in (1, 2):
            net(x * factor)
            print(net.moving_mean.asnumpy(), net.moving_variance.asnumpy())
        net.set_train(False)
        net(x)
        print(net.moving_mean.asnumpy(), net.moving_variance.asnumpy())
        """,
        """
        [1.  0.5] [4.5 0.5]
        [2.5  1.25] [18.25  0.25]
        [2.5  1.25] [18.25  0.25]
        """,
    ),
}
