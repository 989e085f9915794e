# fault: an LSTM with inputs of another size
# raises: ValueError
# at: output, state = self.lstm(x)
# says: 10 | 12
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 16, batch_first=True)

    def construct(self, x):
        output, state = self.lstm(x)
        return output[:, -1]


Net()(ops.ones((2, 5, 12)))
