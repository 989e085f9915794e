# fault: the method expand to a size that the axis cannot have
# raises: ValueError
# at: return x.expand(4, 3)
# says: expand: | (2, 3) | (4, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.expand(4, 3)


Net()(ops.ones((2, 3)))
