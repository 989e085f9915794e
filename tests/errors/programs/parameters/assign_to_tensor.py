# fault: ops.assign to a Tensor
# raises: TypeError/ValueError
# at: ops.assign(y, x)
# says: Parameter
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        y = x * 2
        ops.assign(y, x)
        return y


Net()(ops.ones((3,)))
