# fault: a number appended to a CellList
# raises: TypeError
# at: layers.append(3)
# says: int | Cell
# modes: eager
from duograph import nn

layers = nn.CellList([nn.Dense(3, 3)])
layers.append(3)
