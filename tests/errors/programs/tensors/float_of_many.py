# fault: float() of several elements
# raises: ValueError/TypeError
# at: print("loss %.3f" % float(losses))
# says: one element
# modes: eager
from duograph import Tensor

losses = Tensor([0.5, 0.25])
print("loss %.3f" % float(losses))
