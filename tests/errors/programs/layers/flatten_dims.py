# fault: Flatten of an axis that does not exist
# raises: ValueError/IndexError
# at: return ops.flatten(x, start_dim=3)
# says: flatten | start_dim
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.flatten(x, start_dim=3)


Net()(ops.ones((2, 3)))
