# fault: Dense with integer inputs
# raises: TypeError
# at: return self.fc(x)
# says: int64 | float
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


Net()(Tensor([[1, 2, 3]], ms.int64))
