"""Rank 0 reads the settings and hands them to all others."""

import json

from mpi4py import MPI

world = MPI.COMM_WORLD
print("hello from", world.Get_rank(), flush=True)
settings = None
if world.Get_rank() == 0:
    settings = json.loads('{"tolerance": 1e-6, "levels": }')
settings = world.bcast(settings)
print("levels", settings["levels"], flush=True)
