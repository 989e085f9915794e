# fault: a Tensor assigned to the name of a Parameter
# raises: TypeError
# at: net.w = 2.0
# says: Parameter | set_data | shape (3,) | ops.full((3,), 2.0)
# modes: eager graph
from duograph import Parameter, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(ops.ones((3,)), name="w")

    def construct(self, x):
        return x * self.w


net = Net()
net.w = 2.0
