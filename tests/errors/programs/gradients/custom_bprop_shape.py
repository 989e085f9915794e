# fault: a bprop whose gradient has another shape
# raises: ValueError/RuntimeError
# at: grads = ms.grad(Double())(ops.ones((3,)))
# says: bprop | (3,)
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Double(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout.sum(),)


grads = ms.grad(Double())(ops.ones((3,)))
