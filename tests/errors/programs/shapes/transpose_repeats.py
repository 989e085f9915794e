# fault: transpose with a repeated axis
# raises: ValueError
# at: return x.permute(0, 1, 1)
# says: (0, 1, 1)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.permute(0, 1, 1)


Net()(ops.ones((2, 3, 4)))
