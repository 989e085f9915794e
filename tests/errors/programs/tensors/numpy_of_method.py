# fault: asnumpy without its brackets
# raises: TypeError
# at: np.savetxt("/dev/null", x.asnumpy + 1)
# says: method
# modes: eager
import numpy as np

from duograph import Tensor

x = Tensor([1.0, 2.0])
np.savetxt("/dev/null", x.asnumpy + 1)
