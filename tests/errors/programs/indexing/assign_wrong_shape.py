# fault: values of another shape assigned to a slice
# raises: ValueError
# at: x[0] = values
# says: (2,) | (3,)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, values):
        x[0] = values
        return x


Net()(ops.zeros((4, 3)), ops.ones((2,)))
