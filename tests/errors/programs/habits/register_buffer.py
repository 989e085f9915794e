# fault: register_buffer of a list
# raises: TypeError
# at: self.register_buffer("mean", [0.5, 0.5])
# says: list | Tensor
# modes: eager
from duograph import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", [0.5, 0.5])


Net()
