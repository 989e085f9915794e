# fault: a bprop that returns a text
# raises: RuntimeError/ValueError/TypeError
# at: grads = ms.grad(net)(ops.ones((3,)))
# says: bprop
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Scale(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        dout.astype(ms.int32)
        return "none"


net = Scale()
grads = ms.grad(net)(ops.ones((3,)))
