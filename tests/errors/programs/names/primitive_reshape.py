# fault: an object of ops.Reshape with another number of elements
# raises: ValueError
# at: return self.reshape(x, (4, 2))
# says: Reshape: | (2, 3) | (4, 2)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.reshape = ops.Reshape()

    def construct(self, x):
        return self.reshape(x, (4, 2))


Net()(ops.ones((2, 3)))
