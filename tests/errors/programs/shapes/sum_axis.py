# fault: a sum over an axis that does not exist
# raises: ValueError
# at: return x.sum(axis=2)
# says: axis | 2
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.sum(axis=2)


Net()(ops.ones((2, 3)))
