# fault: ms.no_grad() of PyTorch
# raises: AttributeError
# at: with ms.no_grad():
# says: no_grad
# modes: eager
import duograph as ms
from duograph import ops

x = ops.ones((2, 3))
with ms.no_grad():
    y = x * 2
