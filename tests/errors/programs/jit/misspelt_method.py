# fault: a Tensor method that does not exist
# raises: AttributeError
# at: return x.summ()
# says: summ | sum
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.summ()


Net()(ops.ones((2, 3)))
