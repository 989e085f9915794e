# fault: NumPy of a Tensor inside the function of grad
# raises: RuntimeError/TypeError/ValueError
# at: grads = ms.grad(forward)(ops.ones((3,)))
# says: asnumpy | gradient
# modes: eager
import numpy as np

import duograph as ms
from duograph import Tensor, ops


def forward(x):
    return Tensor(np.square(x.asnumpy())).sum()


grads = ms.grad(forward)(ops.ones((3,)))
