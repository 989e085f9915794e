# fault: GradOperation by list without weights
# raises: TypeError/ValueError
# at: grads = grad(net)(ops.ones((2, 3)))
# says: ParameterTuple | weights
# modes: eager graph
from duograph import nn, ops

net = nn.Dense(3, 1)
grad = ops.GradOperation(get_by_list=True)
grads = grad(net)(ops.ones((2, 3)))
