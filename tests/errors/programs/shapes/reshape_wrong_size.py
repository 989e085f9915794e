# fault: a reshape to another number of elements
# raises: ValueError
# at: return x.reshape(5, 5)
# says: reshape | 24 | 25
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.reshape(5, 5)


Net()(ops.ones((2, 3, 4)))
