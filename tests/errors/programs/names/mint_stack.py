# fault: mint.stack of Tensors of two shapes
# raises: ValueError
# at: y = mint.stack((ops.ones((2, 3)), ops.ones((2, 4))))
# says: stack: | (2, 3) | (2, 4)
# modes: eager
from duograph import mint, ops

y = mint.stack((ops.ones((2, 3)), ops.ones((2, 4))))
