# fault: an op that does not exist
# raises: AttributeError
# at: return ops.sofmax(x, -1)
# says: sofmax | softmax
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.sofmax(x, -1)


Net()(ops.ones((2, 3)))
