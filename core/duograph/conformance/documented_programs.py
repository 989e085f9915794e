"""Test programs from MindSpore's pages on static and dynamic graphs, with the documented output.

`test_programs` runs them in every execution mode. Random numbers of a page are replaced by
constants here, so that the output is known.
"""

from __future__ import annotations

from .known_programs import KnownProgram

__all__ = ["DOCUMENTED"]

_NETWORK = """
        class Network(nn.Cell):
            def __init__(self):
                super().__init__()
                w = np.arange(15.0).reshape(5, 3)
                self.w = ms.Parameter(ms.Tensor(w, ms.float32), name='w')
                self.b = ms.Parameter(ms.Tensor(np.array([0.5, 1.5, 2.5]), ms.float32), name='b')

            def construct(self, x):
                out = ops.matmul(x, self.w)
                print('matmul: ', out)
                out = out + self.b
                print('add bias: ', out)
                return out

        model = Network()
        x = ops.ones(5, ms.float32)
"""

DOCUMENTED = {
    "mode switching": KnownProgram(
        """
        class MyNet(nn.Cell):
            def __init__(self):
                super(MyNet, self).__init__()
                self.add = ops.Add()

            def construct(self, x, y):
                return self.add(x, y)

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

        net = MyNet()
        print(net(x, y))

        ms.set_context(mode=ms.GRAPH_MODE)
        net = MyNet()
        print(net(x, y))

        ms.set_context(mode=ms.PYNATIVE_MODE)
        net = MyNet()
        print(net(x, y))
        """,
        """
        [5. 7. 9.]
        [5. 7. 9.]
        [5. 7. 9.]
        """,
    ),
    "static graph": KnownProgram(
        """
        class Net(nn.Cell):
            def __init__(self):
                super(Net, self).__init__()
                self.mul = ops.Mul()

            def construct(self, x, y):
                return self.mul(x, y)

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

        net = Net()
        print(net(x, y))
        """,
        "[ 4. 10. 18.]",
    ),
    "dynamic graph": KnownProgram(
        """
        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

        output = ops.mul(x, y)
        print(output.asnumpy())
        """,
        "[ 4. 10. 18.]",
    ),
    "automatic differentiation": KnownProgram(
        """
        class Net(nn.Cell):
            def __init__(self):
                super(Net, self).__init__()
                self.matmul = ops.MatMul()
                self.z = ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name='z')

            def construct(self, x, y):
                x = x * self.z
                x = self.matmul(x, y)
                return x

        class GradNetWrtX(nn.Cell):
            def __init__(self, net):
                super(GradNetWrtX, self).__init__()
                self.net = net
                self.grad_op = ops.GradOperation()

            def construct(self, x, y):
                gradient_function = self.grad_op(self.net)
                return gradient_function(x, y)

        x = ms.Tensor([[0.8, 0.6, 0.2], [1.8, 1.3, 1.1]], dtype=ms.float32)
        y = ms.Tensor([[0.11, 3.3, 1.1], [1.1, 0.2, 1.4], [1.1, 2.2, 0.3]], dtype=ms.float32)

        output = GradNetWrtX(Net())(x, y)
        print(output)
        """,
        """
        [[4.5099998 2.7       3.6000001]
         [4.5099998 2.7       3.6000001]]
        """,
        rounded=True,
    ),
    "gradient rule of an operator": KnownProgram(
        """
        from duograph.ops import operations as P
        from duograph.ops._grad.grad_base import binop_grad_common, bprop_getters

        asked = []

        @bprop_getters.register(ops.Mul)
        def get_bprop_mul(self):
            asked.append(True)
            mul_func = P.Mul()

            def bprop(x, y, out, dout):
                bc_dx = mul_func(y, dout)
                bc_dy = mul_func(x, dout)
                return binop_grad_common(x, y, bc_dx, bc_dy)

            return bprop

        class Net(nn.Cell):
            def construct(self, x, y):
                return x * y

        x, y = ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([5.0, 6.0])
        dx, dy = ms.grad(Net(), (0, 1))(x, y)
        print(dx)
        print(dy, bool(asked))
        """,
        """
        [[5. 6.]
         [5. 6.]]
        [4. 6.] True
        """,
    ),
    "control flow": KnownProgram(
        """
        class Net(nn.Cell):
            def __init__(self):
                super(Net, self).__init__()
                self.matmul = ops.MatMul()
                self.z = ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name='z')

            def construct(self, x):
                for _ in range(3):
                    x = x + self.z
                return x

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        net = Net()
        output = net(x)
        print(output)
        """,
        "[4. 5. 6.]",
    ),
    "static graph inside a dynamic one": KnownProgram(
        """
        from duograph import ms_function

        class Add(nn.Cell):
            def construct(self, x):
                x = x + x
                x = x + x
                return x

        class Mul(nn.Cell):
            @ms_function
            def construct(self, x):
                x = x * x
                x = x * x
                return x

        class Test(nn.Cell):
            def __init__(self):
                super(Test, self).__init__()
                self.add = Add()
                self.mul = Mul()

            def construct(self, x):
                x = self.add(x)
                x = self.mul(x)
                x = self.add(x)
                return x

        x = ms.Tensor(np.ones([3, 3], dtype=np.float32))
        print("init x:\\n", x)
        net = Test()
        x = net(x)
        print("\\nx:\\n", x)
        print("gradient:\\n", ops.GradOperation()(net)(ms.Tensor(np.ones([3, 3], np.float32))))
        """,
        """
        init x:
         [[1. 1. 1.]
         [1. 1. 1.]
         [1. 1. 1.]]

        x:
         [[1024. 1024. 1024.]
         [1024. 1024. 1024.]
         [1024. 1024. 1024.]]
        gradient:
         [[4096. 4096. 4096.]
         [4096. 4096. 4096.]
         [4096. 4096. 4096.]]
        """,
    ),
    "compiled function": KnownProgram(
        """
        from duograph import ms_function

        @ms_function
        def add_func(x, y):
            return ops.add(x, y)

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

        out = add_func(x, y)
        print(out)
        """,
        "[5. 7. 9.]",
    ),
    "compiled member function": KnownProgram(
        """
        from duograph import ms_function

        class Add(nn.Cell):

            @ms_function
            def construct(self, x, y):
                out = x + y
                return out

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))

        grad_ops = ops.GradOperation(get_all=True)
        net = Add()
        grad_out = grad_ops(net)(x, y)

        print("Infer result:\\n", net(x, y))

        print("Gradient result:")
        print("Grad x Tensor1:\\n", grad_out[0])
        print("Grad y Tensor2:\\n", grad_out[1])
        """,
        """
        Infer result:
         [5. 7. 9.]
        Gradient result:
        Grad x Tensor1:
         [1. 1. 1.]
        Grad y Tensor2:
         [1. 1. 1.]
        """,
    ),
    "local name of a global": KnownProgram(
        """
        from duograph import ms_function

        value = 5

        @ms_function
        def func(x, y):
            out = x + y
            value = 1
            return out

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        func(x, y)
        print(value)
        """,
        "5",
    ),
    # by default a warning says that the old value is used
    "attribute changed after compiling": KnownProgram(
        """
        from duograph import ms_function

        class Func(nn.Cell):
            def __init__(self):
                super(Func, self).__init__()
                self.value = 5

            @ms_function
            def construct(self, x):
                out = self.value + x
                return out

        ms.set_context(stale_captures="ignore")
        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        func = Func()
        print("out1:", func(x))
        func.value = 1
        print("out2:", func(x))
        """,
        """
        out1: [6. 7. 8.]
        out2: [6. 7. 8.]
        """,
    ),
    "operator made outside": KnownProgram(
        """
        from duograph import ms_function

        add = ops.Add()

        @ms_function
        def add_fn(x, y):
            res = add(x, y)
            return res

        x = ms.Tensor(np.array([1.0, 2.0, 3.0]).astype(np.float32))
        y = ms.Tensor(np.array([4.0, 5.0, 6.0]).astype(np.float32))
        z = add_fn(x, y)

        print("x:", x.asnumpy(), "\\ny:", y.asnumpy(), "\\nz:", z.asnumpy())
        """,
        """
        x: [1. 2. 3.]\x20
        y: [4. 5. 6.]\x20
        z: [5. 7. 9.]
        """,
    ),
    "layer made outside": KnownProgram(
        """
        from duograph import ms_function

        conv_obj = nn.Conv2d(in_channels=3, out_channels=4, kernel_size=3, stride=2, padding=0)
        conv_obj.init_parameters_data()
        weight = np.arange(4.0).reshape(4, 1, 1, 1) * np.ones((4, 3, 3, 3))
        conv_obj.weight.set_data(ms.Tensor(weight, ms.float32))

        @ms_function
        def conv_fn(x):
            res = conv_obj(x)
            return res

        input_data = np.arange(27).reshape(1, 3, 3, 3).astype(np.float32)
        z = conv_fn(ms.Tensor(input_data))
        print(z.asnumpy())
        """,
        """
        [[[[  0.   0.]
           [  0.   0.]]

          [[132. 144.]
           [168. 180.]]

          [[264. 288.]
           [336. 360.]]

          [[396. 432.]
           [504. 540.]]]]
        """,
    ),
    "intermediate results": KnownProgram(
        _NETWORK
        + """
        for factor in (1, 2):
            out = model(x * factor)
            print("out: ", out)
        """,
        """
        matmul:  [30. 35. 40.]
        add bias:  [30.5 36.5 42.5]
        out:  [30.5 36.5 42.5]
        matmul:  [60. 70. 80.]
        add bias:  [60.5 71.5 82.5]
        out:  [60.5 71.5 82.5]
        """,
        """
        matmul:
        Tensor(shape=[3], dtype=Float32, value=[ 3.00000000e+01  3.50000000e+01  4.00000000e+01])
        add bias:
        Tensor(shape=[3], dtype=Float32, value=[ 3.05000000e+01  3.65000000e+01  4.25000000e+01])
        out:  [30.5 36.5 42.5]
        matmul:
        Tensor(shape=[3], dtype=Float32, value=[ 6.00000000e+01  7.00000000e+01  8.00000000e+01])
        add bias:
        Tensor(shape=[3], dtype=Float32, value=[ 6.05000000e+01  7.15000000e+01  8.25000000e+01])
        out:  [60.5 71.5 82.5]
        """,
    ),
    "compiled before the call": KnownProgram(
        _NETWORK
        + """
        model.compile(x)
        print("compiled")
        out = model(x)
        print("out: ", out)
        """,
        """
        compiled
        matmul:
        Tensor(shape=[3], dtype=Float32, value=[ 3.00000000e+01  3.50000000e+01  4.00000000e+01])
        add bias:
        Tensor(shape=[3], dtype=Float32, value=[ 3.05000000e+01  3.65000000e+01  4.25000000e+01])
        out:  [30.5 36.5 42.5]
        """,
    ),
    "decorator of a function": KnownProgram(
        """
        @ms.jit
        def mul(x, y):
            return x * y

        print(mul(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        print(mul(ms.Tensor([5.0, 6.0]), 2))
        """,
        """
        [3. 8.]
        [10. 12.]
        """,
    ),
    "decorator of a method": KnownProgram(
        """
        class Network(nn.Cell):
            def __init__(self):
                super().__init__()
                self.fc = nn.Dense(10, 1, weight_init="ones", bias_init="ones")

            @ms.jit
            def construct(self, x):
                return self.fc(x)

        network = Network()
        print(network(ops.ones((2, 10), ms.float32)))
        """,
        """
        [[11.]
         [11.]]
        """,
    ),
    "whole training step compiled": KnownProgram(
        """
        dense = nn.Dense(10, 1, weight_init="zeros", bias_init="zeros")
        network = nn.SequentialCell(dense, nn.Sigmoid())
        loss_fn = nn.BCELoss()
        optimizer = nn.Adam(network.trainable_params(), 0.01)

        def forward_fn(data, label):
            logits = network(data)
            loss = loss_fn(logits, label)
            return loss

        grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

        @ms.jit
        def train_step(data, label):
            loss, grads = grad_fn(data, label)
            optimizer(grads)
            return loss

        data, label = ops.ones((4, 10), ms.float32), ops.ones((4, 1), ms.float32)
        for _ in range(3):
            print("%.3f" % float(train_step(data, label)))
        print("%.2f" % float(dense.weight[0, 0]))
        """,
        """
        0.693
        0.640
        0.589
        0.03
        """,
    ),
}
