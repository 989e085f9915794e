# fault: a token id beyond the vocabulary, in a SequentialCell
# raises: IndexError/ValueError
# at: return self.layers(ids)
# says: Embedding (SequentialCell[0]) | 7
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Embedding(5, 4), nn.Dense(4, 2))

    def construct(self, ids):
        return self.layers(ids)


Net()(Tensor([[1, 7]], ms.int32))
