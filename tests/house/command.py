"""``eventlog``, for a process that is forked from one which has read all modules: it gives no module's ``__main__`` to run."""

from __future__ import annotations

import sys

from intentlog.eventlog.cli import main

if __name__ == "__main__":
    sys.argv[0] = "eventlog"
    main()
