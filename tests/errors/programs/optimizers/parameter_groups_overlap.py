# fault: one Parameter in two groups
# raises: ValueError/RuntimeError
# at: optimizer = nn.Adam(groups, 1e-3)
# says: bias | group
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
groups = [{"params": net.trainable_params()}, {"params": [net.bias], "lr": 0.1}]
optimizer = nn.Adam(groups, 1e-3)
