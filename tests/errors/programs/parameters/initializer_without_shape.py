# fault: initializer without a shape used as data
# raises: ValueError/TypeError
# at: w = Parameter(initializer("normal"), name="w")
# says: shape
# modes: eager
from duograph import Parameter
from duograph.common.initializer import initializer

w = Parameter(initializer("normal"), name="w")
