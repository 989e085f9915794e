"""Communication engines of duograph: ranks as threads (`local`), or as processes that connect by
MPI (`mpi`) or TCP (`tcp`), with NCCL between their GPUs (`nccl`)."""
