# fault: a network called with too many inputs
# raises: TypeError
# at: Net()(ops.ones((2, 3)), ops.ones((2, 3)))
# says: construct
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x * 2


Net()(ops.ones((2, 3)), ops.ones((2, 3)))
