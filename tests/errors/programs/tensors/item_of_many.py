# fault: item() of several elements
# raises: ValueError
# at: print(losses.item())
# says: item | one
# modes: eager
from duograph import Tensor

losses = Tensor([0.5, 0.25])
print(losses.item())
