# fault: a number assigned to a Parameter of several elements in construct
# raises: TypeError
# at: self.w = 2.0
# says: shape (3,) | ops.full((3,), 2.0)
# modes: eager graph
from duograph import Parameter, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(ops.ones((3,)), name="w")

    def construct(self, x):
        self.w = 2.0
        return x * self.w


Net()(ops.ones((3,)))
