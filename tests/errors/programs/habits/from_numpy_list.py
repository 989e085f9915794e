# fault: from_numpy of a list
# raises: TypeError
# at: x = ms.from_numpy([1.0, 2.0])
# says: list | NumPy array
# modes: eager
import duograph as ms

x = ms.from_numpy([1.0, 2.0])
