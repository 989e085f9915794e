# fault: requires_grad_ of PyTorch
# raises: AttributeError
# at: x.requires_grad_()
# says: requires_grad_
# modes: eager
from duograph import ops

x = ops.ones((3,))
x.requires_grad_()
