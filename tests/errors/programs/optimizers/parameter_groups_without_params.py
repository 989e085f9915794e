# fault: a parameter group without params
# raises: ValueError/KeyError
# at: optimizer = nn.Adam(groups, 1e-3)
# says: params
# modes: eager
from duograph import nn

groups = [{"param": nn.Dense(3, 2).trainable_params(), "lr": 0.1}]
optimizer = nn.Adam(groups, 1e-3)
