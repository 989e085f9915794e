# fault: requires_grad of PyTorch
# raises: AttributeError
# at: x.requires_grad = True
# says: requires_grad
# modes: eager
from duograph import ops

x = ops.ones((3,))
x.requires_grad = True
