# SPDX-License-Identifier: Apache-2.0
"""The curves of one device, thinned so that a page can carry them and no peak is hidden: of each stretch of
the run the first and the last row stay, and those where a curve was lowest and highest. Every row kept is
the true state after one event."""

NUMBER, TIME, SEQUENCE, LIVE, ALLOCATED, RESERVED, DEVICE, BACKED, OTHER, REST, PINNED, MEASURED = range(12)
COLUMNS = {"live": LIVE, "allocated": ALLOCATED, "reserved": RESERVED, "device": DEVICE, "backed": BACKED,
           "other": OTHER, "rest": REST, "pinned": PINNED, "measured": MEASURED}
FOLLOWED = (LIVE, RESERVED, DEVICE)


class Stretch:
    """Rows side by side: their number, and which are kept."""

    def __init__(self, row):
        self.count, self.first, self.last = 1, row, row
        self.low, self.high = [row] * len(FOLLOWED), [row] * len(FOLLOWED)

    def join(self, count, last, low, high):
        self.count += count
        self.last = last
        for i, column in enumerate(FOLLOWED):
            if low[i][column] < self.low[i][column]:
                self.low[i] = low[i]
            if high[i][column] > self.high[i][column]:
                self.high[i] = high[i]

    def rows(self):
        return sorted({row[NUMBER]: row for row in (self.first, self.last, *self.low, *self.high)}.values())


class Curve:
    def __init__(self, room):
        self.room, self.stretches, self.seen = room, [], 0
        self.most_rows = self.most_ns = 1

    def _may_join(self, stretch, count, until_ns):
        return stretch.count + count <= self.most_rows and until_ns - stretch.first[TIME] <= self.most_ns

    def add(self, *row):
        self.seen += 1
        row = (self.seen, *row)
        if self.stretches and self._may_join(self.stretches[-1], 1, row[TIME]):
            one = [row] * len(FOLLOWED)
            self.stretches[-1].join(1, row, one, one)
            return
        if len(self.stretches) == self.room:
            self._make_room()
        self.stretches.append(Stretch(row))

    def _make_room(self):
        """Joins neighbours until half of the room is free; a quarter of it is for quiet times."""
        whole_ns = self.stretches[-1].last[TIME] - self.stretches[0].first[TIME]
        self.most_ns = max(self.most_ns, whole_ns * 8 // self.room)
        while len(self.stretches) > self.room // 2:
            self.most_rows *= 2
            kept = []
            for stretch in self.stretches:
                if kept and self._may_join(kept[-1], stretch.count, stretch.last[TIME]):
                    kept[-1].join(stretch.count, stretch.last, stretch.low, stretch.high)
                else:
                    kept.append(stretch)
            self.stretches = kept

    def rows(self):
        return [row for stretch in self.stretches for row in stretch.rows()]

    def samples(self, parts):
        """The highest and the lowest row of so many parts of the curve."""
        count = len(self.stretches)
        for part in range(parts):
            own = self.stretches[count * part // parts:count * (part + 1) // parts]
            if own:
                yield min((stretch.low[0] for stretch in own), key=lambda row: row[LIVE])
                yield max((stretch.high[0] for stretch in own), key=lambda row: row[LIVE])
