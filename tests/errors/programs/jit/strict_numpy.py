# fault: NumPy of a Tensor at level STRICT
# raises: RuntimeError
# at: return np.sort(x.asnumpy())
# says: asnumpy
# modes: eager
import numpy as np

import duograph as ms
from duograph import ops


@ms.jit(fullgraph=True)
def forward(x):
    return np.sort(x.asnumpy())


forward(ops.ones((3,)))
