# fault: a Parameter made in construct
# raises: RuntimeError/TypeError/ValueError
# at: w = Parameter(ops.ones((3,)), name="w")
# says: Parameter | __init__
# modes: graph
from duograph import Parameter, nn, ops


class Net(nn.Cell):
    def construct(self, x):
        w = Parameter(ops.ones((3,)), name="w")
        return x * w


Net()(ops.ones((1, 3)))
