# fault: x.grad of PyTorch
# raises: AttributeError
# at: print(w.grad.shape)
# says: grad
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((3,)), name="w")
print(w.grad.shape)
