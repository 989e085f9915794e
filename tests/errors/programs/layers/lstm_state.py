# fault: an LSTM with only one of its two states
# raises: TypeError/ValueError
# at: return self.lstm(x, h)
# says: LSTM | tuple
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 16, batch_first=True)

    def construct(self, x, h):
        return self.lstm(x, h)


Net()(ops.ones((2, 5, 10)), ops.zeros((1, 2, 16)))
