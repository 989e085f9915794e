# fault: a variable read before it is set
# raises: UnboundLocalError
# at: total = total + xs[i]
# says: total
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, xs):
        for i in range(3):
            total = total + xs[i]
        return total


Net()(ops.ones((3, 2)))
