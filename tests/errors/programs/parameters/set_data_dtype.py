# fault: set_data with floats for integers
# raises: TypeError
# at: steps.set_data(Tensor([1.5, 2.5]))
# says: int32 | float32
# modes: eager
import duograph as ms
from duograph import Parameter, Tensor

steps = Parameter(Tensor([1, 2], ms.int32), name="steps")
steps.set_data(Tensor([1.5, 2.5]))
