"""Signals as bytes in a pipe, and what a forked child gets of them."""

from __future__ import annotations

import os
import signal
import threading

from pairun.base.signals import Signals, fork_program


def test_signals_that_were_held_back_come_when_somebody_listens() -> None:
    """What was blocked before is taken after, and stays blocked when the signals are given back."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        signal.raise_signal(signal.SIGTERM)
        signals = Signals()
        signals.install()
        assert signal.SIGTERM in signals.take()
        signal.raise_signal(signal.SIGTERM)
        signals.restore()
        # nobody had looked at the second one: it waits for whoever comes next
        assert signal.SIGTERM in signal.sigpending()
        assert signal.sigwait([signal.SIGTERM]) == signal.SIGTERM
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        over.set()
        other.join()


def test_what_a_child_is_sent_is_not_ours() -> None:
    """A signal that reaches a child before it has let go of our pipe does not look like ours."""
    signals = Signals()
    signals.install()
    try:
        for _ in range(50):
            pid = fork_program()
            if pid == 0:
                signal.pause()
                os._exit(0)
            os.kill(pid, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
        assert set(signals.take()) <= {signal.SIGCHLD}
    finally:
        signals.restore()
