# fault: a tuple in arithmetic
# raises: TypeError
# at: return parts / 2.0
# says: tuple
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        parts = ops.split(x, 1)
        return parts / 2.0


Net()(ops.ones((2, 3)))
