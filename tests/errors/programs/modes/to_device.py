# fault: tensor.to("cuda") of PyTorch
# raises: AttributeError/TypeError/ValueError/RuntimeError
# at: y = x.to("cuda")
# says: cuda
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.to("cuda")
