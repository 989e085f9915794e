# fault: the user's own check of a shape in compiled code
# raises: ValueError
# at: raise ValueError(f"wanted 3 channels, got {x.shape[1]}")
# says: wanted 3 channels, got 1
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        if x.shape[1] != 3:
            raise ValueError(f"wanted 3 channels, got {x.shape[1]}")
        return x * 2


Net()(ops.ones((2, 1, 4, 4)))
