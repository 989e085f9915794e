# fault: a file written in a strict function
# raises: RuntimeError
# at: with open("/dev/null", "w") as file:
# says: open
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(fullgraph=True)
def forward(x):
    with open("/dev/null", "w") as file:
        file.write(str(x))
    return x


forward(ops.ones((3,)))
