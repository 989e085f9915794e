# fault: probabilities outside [0, 1] for BCELoss
# raises: ValueError/RuntimeError
# at: value = loss(Tensor([2.5, -1.0]), Tensor([1.0, 0.0]))
# says: BCE | sigmoid
# modes: eager
from duograph import Tensor, nn

loss = nn.BCELoss()
value = loss(Tensor([2.5, -1.0]), Tensor([1.0, 0.0]))
