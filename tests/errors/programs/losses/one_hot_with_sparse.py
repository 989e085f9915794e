# fault: class numbers given to a loss that wants one-hot labels
# raises: ValueError/TypeError
# at: return self.loss(self.fc(x), labels)
# says: (4, 10) | (4,)
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 10)
        self.loss = nn.SoftmaxCrossEntropyWithLogits()

    def construct(self, x, labels):
        return self.loss(self.fc(x), labels)


Net()(ops.ones((4, 8)), Tensor([1, 2, 3, 4], ms.int32))
