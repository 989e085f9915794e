# fault: a label that is no class
# raises: IndexError/ValueError
# at: return self.loss(self.fc(x), labels)
# says: 10 | 9
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 10)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, labels):
        return self.loss(self.fc(x), labels)


Net()(ops.ones((4, 8)), Tensor([1, 2, 3, 10], ms.int32))
