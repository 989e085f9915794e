# fault: Momentum without momentum
# raises: TypeError
# at: optimizer = nn.Momentum(net.trainable_params(), 0.1)
# says: momentum
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Momentum(net.trainable_params(), 0.1)
