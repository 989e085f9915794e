# fault: LayerNorm with an int for its shape
# raises: TypeError
# at: norm = nn.LayerNorm(16)
# says: tuple | 16
# modes: eager
from duograph import nn

norm = nn.LayerNorm(16)
