# fault: logits and labels of different batches
# raises: ValueError
# at: return self.loss(logits, labels)
# says: 4 | 3 | predictions
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def construct(self, logits, labels):
        return self.loss(logits, labels)


Net()(ops.ones((4, 10)), Tensor([1, 2, 3], ms.int32))
