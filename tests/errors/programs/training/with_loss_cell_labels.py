# fault: WithLossCell called without labels
# raises: TypeError
# at: loss = net(ops.ones((4, 3)))
# says: label
# modes: eager
from duograph import nn, ops

net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
loss = net(ops.ones((4, 3)))
