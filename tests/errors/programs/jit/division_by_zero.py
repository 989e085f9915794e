# fault: a Python division by zero in construct
# raises: ZeroDivisionError
# at: scale = 1 / (x.shape[0] - 2)
# says: division
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        scale = 1 / (x.shape[0] - 2)
        return x * scale


Net()(ops.ones((2, 3)))
