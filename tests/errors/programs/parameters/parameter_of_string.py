# fault: a Parameter of a word
# raises: TypeError
# at: w = Parameter("ones", name="w")
# says: str
# modes: eager
from duograph import Parameter

w = Parameter("ones", name="w")
