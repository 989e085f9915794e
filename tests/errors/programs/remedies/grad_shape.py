# fault: the shape of a gradient function
# raises: AttributeError
# at: print(grads.shape)
# says: shape
# modes: eager
import duograph as ms


def forward(x):
    return (x * x).sum()


grads = ms.grad(forward)
print(grads.shape)
