# fault: a Tensor made of a dictionary
# raises: TypeError
# at: x = Tensor(batch)
# says: dict
# modes: eager
import numpy as np

from duograph import Tensor

batch = {"image": np.ones((2, 3)), "label": np.ones(2)}
x = Tensor(batch)
