# fault: astype with an unknown name
# raises: TypeError
# at: y = x.astype("double32")
# says: double32
# modes: eager
from duograph import Tensor

x = Tensor([1.5])
y = x.astype("double32")
