# fault: concat of a matrix and a vector
# raises: ValueError
# at: return ops.cat((a, b))
# says: (2, 3) | (3,)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, a, b):
        return ops.cat((a, b))


Net()(ops.ones((2, 3)), ops.ones((3,)))
