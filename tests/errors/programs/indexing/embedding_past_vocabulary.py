# fault: a token id beyond the vocabulary
# raises: IndexError/ValueError
# at: x = self.embedding(ids)
# says: 100 | 99
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 8)
        self.fc = nn.Dense(8, 2)

    def construct(self, ids):
        x = self.embedding(ids)
        return self.fc(x.mean(axis=1))


Net()(Tensor([[3, 100, 7]], ms.int32))
