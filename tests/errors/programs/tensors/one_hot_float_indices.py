# fault: one_hot of floating labels
# raises: TypeError
# at: y = ops.one_hot(labels, 3, Tensor(1.0), Tensor(0.0))
# says: one_hot | float
# modes: eager
from duograph import Tensor, ops

labels = Tensor([0.0, 2.0, 1.0])
y = ops.one_hot(labels, 3, Tensor(1.0), Tensor(0.0))
