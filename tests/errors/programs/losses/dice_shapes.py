# fault: DiceLoss of different shapes
# raises: ValueError
# at: value = loss(ops.ones((2, 3)), ops.ones((2, 4)))
# says: (2, 3) | (2, 4)
# modes: eager
from duograph import nn, ops

loss = nn.DiceLoss()
value = loss(ops.ones((2, 3)), ops.ones((2, 4)))
