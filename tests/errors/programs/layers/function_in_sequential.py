# fault: a function as a layer of a SequentialCell
# raises: TypeError
# at: net = nn.SequentialCell([nn.Dense(3, 4), ops.relu, nn.Dense(4, 2)])
# says: function
# modes: eager
from duograph import nn, ops

net = nn.SequentialCell([nn.Dense(3, 4), ops.relu, nn.Dense(4, 2)])
