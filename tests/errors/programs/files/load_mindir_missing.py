# fault: a MindIR that does not exist
# raises: ValueError/FileNotFoundError
# at: graph = ms.load("net.mindir")
# says: net.mindir
# modes: eager
import duograph as ms

graph = ms.load("net.mindir")
