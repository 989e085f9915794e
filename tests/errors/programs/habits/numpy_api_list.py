# fault: duograph.numpy of a wrong keyword
# raises: TypeError
# at: y = mnp.sum(x, axis=1, keepdim=True)
# says: keepdim
# modes: eager
import duograph.numpy as mnp

x = mnp.ones((2, 3))
y = mnp.sum(x, axis=1, keepdim=True)
