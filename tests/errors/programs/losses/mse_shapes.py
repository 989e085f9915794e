# fault: MSELoss of shapes that do not broadcast
# raises: ValueError
# at: value = loss(ops.ones((4, 1)), ops.ones((3, 1)))
# says: (4, 1) | (3, 1)
# modes: eager
from duograph import nn, ops

loss = nn.MSELoss()
value = loss(ops.ones((4, 1)), ops.ones((3, 1)))
