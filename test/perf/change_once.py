"""Times changes of the configuration below a root: ``change_once.py ROOT RUNS``; seconds each."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ganeti.config.changes import Author, Draft
from ganeti.config.store import Store
from ganeti.paths import Paths


def main() -> None:
    store = Store(Paths(Path(sys.argv[1])))
    instances = list(store.current.instances.values())
    for number in range(int(sys.argv[2])):
        instance = instances[number % len(instances)]

        def edit(draft: Draft, instance=instance, number=number) -> None:  # type: ignore[no-untyped-def]
            draft.update(instance, tags=(f"t{number}",))

        begin = time.perf_counter()
        store.change("bench", Author(user="bench"), edit)
        print(time.perf_counter() - begin)
    store.close()


if __name__ == "__main__":
    main()
