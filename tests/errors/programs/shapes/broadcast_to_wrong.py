# fault: broadcast_to of a size that is not 1
# raises: ValueError
# at: return ops.broadcast_to(x, (4, 3))
# says: (2, 3) | (4, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.broadcast_to(x, (4, 3))


Net()(ops.ones((2, 3)))
