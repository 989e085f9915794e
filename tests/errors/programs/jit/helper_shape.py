# fault: a shape error three calls deep
# raises: ValueError
# at: return ops.matmul(x, w)
# says: (2, 3) | (2, 3) | matmul
# modes: eager
import duograph as ms
from duograph import ops


def project(x, w):
    return ops.matmul(x, w)


def attend(x, w):
    return ops.softmax(project(x, w), -1)


@ms.jit
def forward(x, w):
    return attend(x, w).sum()


forward(ops.ones((2, 3)), ops.ones((2, 3)))
