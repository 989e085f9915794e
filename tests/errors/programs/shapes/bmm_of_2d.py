# fault: bmm of matrices instead of batches
# raises: ValueError
# at: return ops.bmm(x, x)
# says: bmm | 3
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.bmm(x, x)


Net()(ops.ones((3, 3)))
