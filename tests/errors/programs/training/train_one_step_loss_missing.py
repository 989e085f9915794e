# fault: TrainOneStepCell of a network without its loss
# raises: ValueError/TypeError/RuntimeError
# at: step(ops.ones((4, 3)), ops.ones((4, 2)))
# says: inputs
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
step(ops.ones((4, 3)), ops.ones((4, 2)))
