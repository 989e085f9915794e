# fault: (2, 3) + (2,): shapes do not broadcast
# raises: ValueError
# at: return x + bias
# says: (2, 3) | (2,)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, bias):
        return x + bias


Net()(ops.ones((2, 3)), ops.ones((2,)))
