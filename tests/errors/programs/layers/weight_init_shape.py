# fault: initial weights of the transposed shape
# raises: ValueError
# at: fc = nn.Dense(3, 4, weight_init=ops.ones((3, 4)))
# says: (3, 4) | (4, 3)
# modes: eager
from duograph import nn, ops

fc = nn.Dense(3, 4, weight_init=ops.ones((3, 4)))
