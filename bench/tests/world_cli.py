"""`bilex` with the troublesome methods of `runner_world`, in this process and in the workers that it starts.

Workers import the script that their parent was started with, and with it the methods.
"""

from __future__ import annotations

import runner_world  # noqa: F401

if __name__ == "__main__":
    import signal

    from bilex.cli import main

    # A shell that started the tests in the background lets its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    main()
