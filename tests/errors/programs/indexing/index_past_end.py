# fault: an index past the end
# raises: IndexError
# at: return x[5]
# says: 5 | 3
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x[5]


Net()(ops.ones((3, 4)))
