"""Rank 1 fails as the first argument says, while the other ranks wait for it in an AllReduce."""

import os
import signal
import sys
import time

import duograph as ms
from duograph import ops
from duograph.communication import create_group, get_rank, init

init()
how = sys.argv[1]
ms.set_context(communication_timeout=2.0 if how == "hang" else 600.0)
x = ms.Tensor([1.0])
ops.AllReduce()(x)
print("started", flush=True)
if get_rank() == 1:
    if how == "raise":
        raise KeyError("the error of rank 1")
    if how == "exit":
        sys.exit(3)
    if how == "end":
        sys.exit(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "hang":
        time.sleep(600)
    if how == "differ":
        ops.AllGather()(x)

if how == "program":
    rank = get_rank()
    ms.jit(lambda x: ops.AllGather()(x * 2) if rank else ops.AllReduce()(x + 2))(x)
if how == "group":
    create_group("pair", [0, 1])
    if get_rank() == 0:
        ops.AllReduce(group="pair")(x)
elif how != "fine":
    ops.AllReduce()(x)
