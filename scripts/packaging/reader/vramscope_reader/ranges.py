# SPDX-License-Identifier: Apache-2.0
"""Ranges of addresses that do not overlap, in order."""
from bisect import bisect_left, bisect_right, insort


class Range:
    """One range; what it stands for are further attributes."""

    def __init__(self, start, size, **attributes):
        self.start, self.size = start, size
        self.__dict__.update(attributes)

    @property
    def end(self):
        return self.start + self.size


class Ranges:
    def __init__(self):
        self.starts, self.by_start = [], {}

    def __iter__(self):
        return (self.by_start[start] for start in list(self.starts))

    def find(self, address):
        """The range that holds an address, or None."""
        at = bisect_right(self.starts, address)
        found = self.by_start[self.starts[at - 1]] if at else None
        return found if found is not None and address < found.end else None

    def next_from(self, address):
        at = bisect_left(self.starts, address)
        return self.by_start[self.starts[at]] if at < len(self.starts) else None

    def overlap(self, start, size):
        """The first range that has an address in common with these."""
        if size == 0:
            return None
        found = self.find(start) or self.next_from(start)
        return found if found is not None and (found.start <= start or found.start - start < size) else None

    def insert(self, added):
        insort(self.starts, added.start)
        self.by_start[added.start] = added
        return added

    def remove(self, gone):
        del self.starts[bisect_left(self.starts, gone.start)]
        del self.by_start[gone.start]
