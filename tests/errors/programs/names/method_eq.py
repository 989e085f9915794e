# fault: the method eq of shapes that do not broadcast
# raises: ValueError
# at: return x.eq(ops.ones((4,)))
# says: eq: | (2, 3) | (4,)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x.eq(ops.ones((4,)))


Net()(ops.ones((2, 3)))
