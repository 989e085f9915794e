# fault: len() of a 0-d Tensor
# raises: TypeError
# at: print(len(loss))
# says: 0-d
# modes: eager
from duograph import Tensor

loss = Tensor(0.5)
print(len(loss))
