# fault: floating class numbers
# raises: TypeError/ValueError
# at: return self.loss(logits, labels)
# says: labels | int | labels have dtype
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def construct(self, logits, labels):
        return self.loss(logits, labels)


Net()(ops.ones((4, 10)), Tensor([1.0, 2.0, 3.0, 4.0]))
