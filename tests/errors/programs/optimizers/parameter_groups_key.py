# fault: a misspelt key of a parameter group
# raises: ValueError/KeyError
# at: optimizer = nn.Adam(groups, 1e-3)
# says: weight_decy
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
groups = [{"params": net.trainable_params(), "weight_decy": 0.01}]
optimizer = nn.Adam(groups, 1e-3)
