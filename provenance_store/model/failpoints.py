"""Places where a test can have a process killed: between any two steps whose order recovery relies on.

`HEADWATER_FAILPOINT="batch recorded:3"` kills the process, as `kill -9` would, when that place is reached the third
time. Without the variable a place costs a look at a dictionary.
"""

import os
import signal
from collections import Counter

VARIABLE = "HEADWATER_FAILPOINT"
_reached: Counter[str] = Counter()


def reach(place: str) -> None:
    """A step is done."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    _reached[place] += 1
    if wanted == f"{place}:{_reached[place]}":
        os.kill(os.getpid(), signal.SIGKILL)
