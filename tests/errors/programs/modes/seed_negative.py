# fault: a negative seed
# raises: ValueError
# at: ms.set_seed(-1)
# says: seed | -1
# modes: eager
import duograph as ms

ms.set_seed(-1)
