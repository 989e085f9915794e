# fault: a text added to a Tensor from the right
# raises: TypeError
# at: print(x.mean() + " is the mean")
# says: str | f-string
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
print(x.mean() + " is the mean")
