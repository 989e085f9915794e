# fault: a Parameter made of words
# raises: TypeError/ValueError
# at: w = Parameter(["a", "b"], name="w")
# says: Parameter: | str
# modes: eager
from duograph import Parameter

w = Parameter(["a", "b"], name="w")
