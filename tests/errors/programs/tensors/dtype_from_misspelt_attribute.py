# fault: a misspelt dtype
# raises: AttributeError
# at: x = Tensor(np.zeros((2, 2)), ms.flaot32)
# says: flaot32
# modes: eager
import numpy as np

import duograph as ms
from duograph import Tensor

x = Tensor(np.zeros((2, 2)), ms.flaot32)
