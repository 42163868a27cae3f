"""What holds for all tests."""

import signal

# Whoever is started in the background of a shell ignores it, and tests send it to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)
