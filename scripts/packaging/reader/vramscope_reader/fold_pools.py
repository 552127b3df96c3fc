# SPDX-License-Identifier: Apache-2.0
"""Stream-ordered pools. The driver's own figures ride along with allocations and are taken as they come;
the difference to our count goes to a site of its own. A pool a framework allocates from is its cache."""
from . import kinds as k
from .fold_memory import PAGE, Allocation

FRAMEWORK, DRIVER = 0, 1
UNCERTAIN = 2
MOST = (1 << 63) - 1


class Pool:
    def __init__(self, device, owner):
        self.device, self.owner = device, owner
        self.reserved = self.used = self.reported_ns = 0
        self.framework = self.others_kept = False


class Pools:
    """A part of Fold."""

    def start_pools(self):
        self.pools = {}

    def pool_handlers(self):
        number = k.NUMBER
        return {number["pool_alloc"]: self.pool_alloc, number["pool_create"]: self.pool_create,
                number["pool_destroy"]: self.pool_destroy, number["pool_trim"]: self.pool_trim}

    @staticmethod
    def _pool_key(event):
        return event.pool or ("default", event.device)

    def _set_reserved(self, pool, reserved):
        device = self.device(pool.device)
        change, pool.reserved = reserved - pool.reserved, reserved
        if pool.framework:
            device.pool_reserved += change
            return
        device.own_pools += change
        pool.others_kept |= change != 0
        if change:  # the driver may give its reserve back unasked; measurements tell, not exactly when
            device.why_not = device.why_not or "a pool of the driver's"

    def _add_used(self, pool, change):
        pool.used += change
        if pool.framework:
            self.device(pool.device).pool_used += change

    def _pool_at(self, event):
        key = self._pool_key(event)
        if key not in self.pools:
            self.pools[key] = Pool(event.device, self.owner(event))
        return self.pools[key]

    def _give_to_framework(self, pool):
        reserved, used = pool.reserved, pool.used
        if pool.others_kept:
            self.device(pool.device).shared_pool = True
        self._set_reserved(pool, 0)
        self._add_used(pool, -used)
        pool.framework = True
        self._set_reserved(pool, reserved)
        self._add_used(pool, used)

    def _correct_used(self, pool, change):
        self._add_used(pool, change)
        layer = FRAMEWORK if pool.framework else DRIVER
        self.move(self.special_site(pool.device, layer, UNCERTAIN), change, 0)

    def _take_report(self, pool, event):
        if event.extra1 <= MOST and event.extra1 != pool.used:
            self._correct_used(pool, event.extra1 - pool.used)
        if event.extra0 <= MOST:
            pool.reported_ns = event.time
            self._set_reserved(pool, event.extra0)
        else:
            least = (max(pool.used, 0) + PAGE - 1) // PAGE * PAGE
            if least > pool.reserved:
                self._set_reserved(pool, least)

    @staticmethod
    def _granted(pool, event, stale):
        """What the pool counts for a request: its own figure where the difference can be nothing else."""
        more = event.extra1 - pool.used
        known = event.extra1 <= MOST and not stale
        return more if known and 0 <= more - event.size < PAGE else event.size

    def pool_alloc(self, event, _undo):
        if not event.address or not event.size or event.size > MOST:
            return
        if event.flags & k.CAPTURING:
            self.graph_node(event)
            return
        pool, device = self._pool_at(event), self.device(event.device)
        if self.by_framework(event) and not pool.framework:
            self._give_to_framework(pool)
            pool.owner = self.owner(event)
        if pool.framework and not device.framework_seen:
            device.framework_seen, device.framework_owner = True, pool.owner
        stale = event.time < pool.reported_ns
        layer = FRAMEWORK if pool.framework else DRIVER
        allocation = Allocation(event.size, "pool", event.device, self.site_of(event, event.device, layer, False),
                                event.context, self._pool_key(event), self._granted(pool, event, stale), pool.owner)
        self.remember(self.allocations, event.address, allocation)
        if stale:  # the latest figures have this allocation in them
            self._correct_used(pool, -allocation.granted)
        else:
            self._take_report(pool, event)

    def count_pool(self, allocation, sign):
        pool = self.pools.get(allocation.pool)
        if pool is not None:
            self._add_used(pool, sign * allocation.granted)

    def pool_create(self, event, _undo):
        if event.pool:
            self._pool_at(event)

    def pool_destroy(self, event, _undo):
        pool = self.pools.get(event.pool)
        if pool is not None:
            self._set_reserved(pool, 0)
            if pool.used == 0:
                del self.pools[event.pool]

    def pool_trim(self, event, _undo):
        pool = self.pools.get(self._pool_key(event))
        if pool is not None and event.time >= pool.reported_ns and \
                (event.extra0 or event.extra1 or pool.used == 0):
            self._take_report(pool, event)

    def drop_pools(self, device, undo):
        for key, pool in self.pools.items():
            if pool.device == device and pool.reserved:
                if undo is not None:
                    undo.dropped.append((None, key, pool.reserved))
                self._set_reserved(pool, 0)

    def restore_pool(self, key, reserved):
        if key in self.pools:
            self._set_reserved(self.pools[key], reserved)
