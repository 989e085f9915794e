# fault: a generator compiled strictly
# raises: RuntimeError
# at: yield x * i
# says: yield
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(fullgraph=True)
def forward(x):
    for i in range(3):
        yield x * i


forward(ops.ones((3,)))
