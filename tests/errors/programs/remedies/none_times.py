# fault: the result of a function without return, multiplied
# raises: TypeError
# at: return x * double(x)
# says: None
# modes: eager graph
from duograph import nn, ops


def double(v):
    v * 2


class Net(nn.Cell):
    def construct(self, x):
        return x * double(x)


Net()(ops.ones((3,)))
