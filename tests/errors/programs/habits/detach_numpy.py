# fault: x.detach().cpu() of PyTorch
# raises: AttributeError
# at: y = x.detach().cpu().numpy()
# says: detach | asnumpy
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.detach().cpu().numpy()
