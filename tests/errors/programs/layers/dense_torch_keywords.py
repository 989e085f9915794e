# fault: Dense with PyTorch's keywords
# raises: TypeError
# at: fc = nn.Dense(in_features=16, out_features=4)
# says: in_features
# modes: eager
from duograph import nn

fc = nn.Dense(in_features=16, out_features=4)
