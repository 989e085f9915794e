# fault: a pre-hook that takes one parameter too few
# raises: TypeError
# at: y = net(ops.ones((1, 3)))
# says: hook | cell, inputs
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
net.register_forward_pre_hook(lambda inputs: None)
y = net(ops.ones((1, 3)))
