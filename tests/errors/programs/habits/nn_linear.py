# fault: nn.Linear of PyTorch
# raises: AttributeError
# at: fc = nn.Linear(3, 2)
# says: Linear | Dense
# modes: eager
from duograph import nn

fc = nn.Linear(3, 2)
