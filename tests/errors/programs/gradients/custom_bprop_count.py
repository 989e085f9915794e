# fault: a bprop that returns too few gradients
# raises: ValueError/TypeError/RuntimeError
# at: grads = ms.grad(net, (0, 1))(ops.ones((3,)), ops.ones((3,)))
# says: bprop | 1 | 2
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Multiply(nn.Cell):
    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return (dout * y,)


net = Multiply()
grads = ms.grad(net, (0, 1))(ops.ones((3,)), ops.ones((3,)))
