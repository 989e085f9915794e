# fault: a polynomial decay over no steps
# raises: ValueError
# at: schedule = nn.PolynomialDecayLR(0.1, 0.01, decay_steps=0, power=0.5)
# says: decay_steps | 0
# modes: eager
from duograph import nn

schedule = nn.PolynomialDecayLR(0.1, 0.01, decay_steps=0, power=0.5)
