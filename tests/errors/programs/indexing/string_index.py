# fault: a column name as an index, as in pandas
# raises: IndexError
# at: y = x["price"]
# says: str
# modes: eager
from duograph import ops

x = ops.ones((10, 2))
y = x["price"]
