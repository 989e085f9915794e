# fault: a bprop that returns a gradient too many
# raises: RuntimeError/ValueError/TypeError
# at: grads = ms.grad(Scale())(ops.ones((3,)))
# says: bprop | 3 gradients | 1
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Scale(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 2, dout, dout)


grads = ms.grad(Scale())(ops.ones((3,)))
