# fault: a Tensor made of words
# raises: TypeError
# at: labels = Tensor(["cat", "dog"])
# says: str
# modes: eager
from duograph import Tensor

labels = Tensor(["cat", "dog"])
