"""Communication engines of duograph: ranks as threads (`local`) and as processes of MPI (`mpi`)."""
