# fault: a network called without its second input
# raises: TypeError
# at: Net()(ops.ones((2, 3)))
# says: mask
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, mask):
        return x * mask


Net()(ops.ones((2, 3)))
