"""How many hostile process trees outlive their end, on the platform that is chosen.

[MEANTIME_PLATFORM=posix] python -m tests.posix_mode.tree_figures cancel,timeout
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.faults import hostile

import posix_mode
from meantime.system.platform import NAME

SEED = 1


def main(fates: tuple[str, ...]) -> int:
    tally = hostile.run(SEED, 0, "", fates)
    print(f"{NAME}, {', '.join(fates)}: {tally}")
    for problem in tally.problems:
        print(problem)
    refused = sorted(set(posix_mode.refused())) if posix_mode.is_asked() else []
    print(*refused, sep="\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1].split(","))))
