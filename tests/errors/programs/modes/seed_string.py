# fault: a seed that is no number
# raises: TypeError
# at: ms.set_seed("42")
# says: seed
# modes: eager
import duograph as ms

ms.set_seed("42")
