# fault: an optimiser called with the loss
# raises: TypeError/ValueError
# at: optimizer(loss)
# says: gradients
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
loss = net(ops.ones((1, 3))).sum()
optimizer(loss)
