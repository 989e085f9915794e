# fault: a function of value_and_grad unpacked without a call
# raises: TypeError
# at: loss, grads = ms.value_and_grad(forward)
# says: function | value_and_grad
# modes: eager
import duograph as ms


def forward(x):
    return (x * x).sum()


loss, grads = ms.value_and_grad(forward)
