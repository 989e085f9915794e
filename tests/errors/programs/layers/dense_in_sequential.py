# fault: the second layer of a SequentialCell does not fit the first
# raises: ValueError
# at: y = net(ops.ones((2, 16)))
# says: (2, 32) | 64
# modes: eager
from duograph import nn, ops

net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(64, 10))
y = net(ops.ones((2, 16)))
