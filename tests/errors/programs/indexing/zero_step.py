# fault: a slice with step zero
# raises: ValueError
# at: return x[::0]
# says: step
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x[::0]


Net()(ops.ones((6,)))
