# fault: a CellList called like a network
# raises: AttributeError/TypeError/NotImplementedError
# at: y = layers(ops.ones((1, 3)))
# says: CellList
# modes: eager
from duograph import nn, ops

layers = nn.CellList([nn.Dense(3, 3), nn.Dense(3, 3)])
y = layers(ops.ones((1, 3)))
