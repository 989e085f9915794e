# fault: an optimiser called with the gradient of one weight
# raises: ValueError
# at: optimizer((ops.ones((2, 3)),))
# says: 2 | 1 | gradients
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
optimizer((ops.ones((2, 3)),))
