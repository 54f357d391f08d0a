"""Iterates a matrix over ranks of MPI by broadcasts; one rank's trouble is the first argument."""

import os
import signal
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
trouble, who = sys.argv[1], int(sys.argv[2])
vector = numpy.ones(8)
for n in range(12):
    vector = world.bcast(vector / numpy.linalg.norm(vector), root=n % world.Get_size())
    if rank == who and n == 7:
        if trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "bus":
            os.kill(os.getpid(), signal.SIGBUS)
        if trouble == "file":
            numpy.load("matrix-7.npy")
    world.Barrier()
    if rank == 0:
        print("round", n, "norm", float(numpy.linalg.norm(vector)), flush=True)
