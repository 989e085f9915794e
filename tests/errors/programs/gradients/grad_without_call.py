# fault: the gradient function used as its result
# raises: TypeError
# at: print(grads + 1)
# says: function
# modes: eager
import duograph as ms


def forward(x):
    return (x * x).sum()


grads = ms.grad(forward)
print(grads + 1)
