# fault: PyTorch's bias= of a convolution
# raises: TypeError
# at: conv = nn.Conv2d(3, 8, 3, bias=False)
# says: bias | has_bias
# modes: eager
from duograph import nn

conv = nn.Conv2d(3, 8, 3, bias=False)
