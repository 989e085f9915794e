# fault: the user's own assert
# raises: AssertionError
# at: assert x.min() >= 0, "negative input"
# says: negative input
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, x):
        assert x.min() >= 0, "negative input"
        return ops.sqrt(x)


Net()(Tensor([1.0, -1.0]))
