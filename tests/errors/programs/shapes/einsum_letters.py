# fault: einsum with more letters than axes
# raises: ValueError
# at: y = ops.einsum("bij,bjk->bik", x, x)
# says: einsum | bij
# modes: eager
from duograph import ops

x = ops.ones((3, 4))
y = ops.einsum("bij,bjk->bik", x, x)
