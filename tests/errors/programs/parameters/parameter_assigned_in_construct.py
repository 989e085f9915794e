# fault: a Parameter replaced by a Tensor in construct
# raises: TypeError/ValueError/RuntimeError
# at: self.counter = "many"
# says: counter | assign
# modes: eager graph
from duograph import Parameter, Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.counter = Parameter(Tensor(0.0), name="counter")

    def construct(self, x):
        self.counter = "many"
        return x


Net()(ops.ones((3,)))
