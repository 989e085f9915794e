# fault: tensor.cuda() of PyTorch
# raises: AttributeError
# at: x = ops.ones((2, 3)).cuda()
# says: cuda | move_to
# modes: eager
from duograph import ops

x = ops.ones((2, 3)).cuda()
