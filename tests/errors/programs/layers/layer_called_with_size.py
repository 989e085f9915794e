# fault: a layer constructed where its result was wanted
# raises: TypeError/ValueError
# at: return nn.ReLU(x) + 1
# says: ReLU
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return nn.ReLU(x) + 1


Net()(ops.ones((2, 3)))
