# fault: branches that return different dtypes
# raises: TypeError
# at: if x.sum() > 0:
# says: float32 | int32 | branch
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x.astype(ms.int32)
    return y


forward(ops.ones((3,)))
