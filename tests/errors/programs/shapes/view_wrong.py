# fault: view with another number of elements
# raises: ValueError
# at: return x.view(batch, 4)
# says: view | (2, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        batch = x.shape[0]
        return x.view(batch, 4)


Net()(ops.ones((2, 3)))
