# fault: construct without self
# raises: TypeError
# at: Net()(ops.ones((1, 3)))
# says: construct
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(x):
        return x * 2


Net()(ops.ones((1, 3)))
