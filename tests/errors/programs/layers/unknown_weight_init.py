# fault: an unknown initialiser
# raises: ValueError/KeyError
# at: fc = nn.Dense(3, 4, weight_init="kaiming")
# says: kaiming
# modes: eager
from duograph import nn

fc = nn.Dense(3, 4, weight_init="kaiming")
