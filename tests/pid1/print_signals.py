"""Prints the name of every signal it gets, one per line, and ends on the one named by argv[1].

Usage: print_signals.py LAST [EXIT_CODE]
"""

import os
import signal
import sys

last = signal.Signals[sys.argv[1]]
taken = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, taken)
# one write each: what others print must not come between
os.write(1, b"ready %d\n" % os.getpid())
while True:
    number = signal.sigwait(taken)
    os.write(1, b"got %s\n" % signal.Signals(number).name.encode())
    if number == last:
        sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
