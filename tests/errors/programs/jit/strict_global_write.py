# fault: a global list that a strict function appends to by a Tensor
# raises: RuntimeError
# at: count += x.sum()
# says: global
# modes: eager
import duograph as ms
from duograph import ops

count = 0


@ms.jit(fullgraph=True)
def forward(x):
    global count
    count += x.sum()
    return x


forward(ops.ones((3,)))
