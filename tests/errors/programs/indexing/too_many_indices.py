# fault: more indices than axes
# raises: IndexError
# at: return x[0, 1, 2]
# says: 2 | 3
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x[0, 1, 2]


Net()(ops.ones((3, 4)))
