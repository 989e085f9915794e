# fault: a training step on data of another width
# raises: ValueError
# at: step(ops.ones((4, 5)), ops.ones((4, 2)))
# says: Dense | (4, 5) | 3
# modes: eager graph
from duograph import nn, ops

net = nn.Dense(3, 2)
loss = nn.WithLossCell(net, nn.MSELoss())
step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
step(ops.ones((4, 5)), ops.ones((4, 2)))
