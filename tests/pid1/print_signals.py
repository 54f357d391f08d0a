"""Prints the name of every signal it gets, one per line, and ends on the one named by argv[1].

Usage: print_signals.py LAST [EXIT_CODE]
"""

import os
import signal
import sys

last = signal.Signals[sys.argv[1]]
taken = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, taken)
print("ready", os.getpid(), flush=True)
while True:
    number = signal.sigwait(taken)
    print("got", signal.Signals(number).name, flush=True)
    if number == last:
        sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
