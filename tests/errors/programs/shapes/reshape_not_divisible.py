# fault: a reshape with -1 that does not divide
# raises: ValueError
# at: return ops.reshape(x, (-1, 7))
# says: (-1, 7)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.reshape(x, (-1, 7))


Net()(ops.ones((4, 6)))
