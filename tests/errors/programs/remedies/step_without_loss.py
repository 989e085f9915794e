# fault: a training step around the user's own network without its loss
# raises: TypeError
# at: step(ops.ones((4, 3)), ops.ones((4, 2)))
# says: inputs | WithLossCell
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


net = Net()
step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params()))
step(ops.ones((4, 3)), ops.ones((4, 2)))
