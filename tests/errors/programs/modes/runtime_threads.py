# fault: no threads
# raises: ValueError
# at: ms.runtime.dispatch_threads_num(0)
# says: threads | 0
# modes: eager
import duograph as ms

ms.runtime.dispatch_threads_num(0)
