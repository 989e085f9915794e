# fault: softmax over an axis that does not exist
# raises: ValueError
# at: return ops.softmax(x, axis=1)
# says: softmax | 1
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return ops.softmax(x, axis=1)


Net()(ops.ones((5,)))
