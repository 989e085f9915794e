# fault: the network instead of its parameters
# raises: TypeError
# at: optimizer = nn.Adam(net, 1e-3)
# says: Dense | trainable_params
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net, 1e-3)
