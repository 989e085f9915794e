"""Communication engines of duograph, which connect ranks: threads or processes of one program.

Ranks are threads (`local`), or processes that MPI (`mpi`) or TCP (`tcp`) connects, with NCCL
between their GPUs (`nccl`). The core loads each module as a plugin, by its entry point.
"""
