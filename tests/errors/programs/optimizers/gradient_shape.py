# fault: gradients in the wrong order
# raises: ValueError
# at: optimizer((ops.ones((2,)), ops.ones((2, 3))))
# says: (2, 3) | (2,)
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
optimizer((ops.ones((2,)), ops.ones((2, 3))))
