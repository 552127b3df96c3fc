# SPDX-License-Identifier: Apache-2.0
"""Kinds and flags of events: docs/format.md §10 and §11."""

_TABLE = """
1 alloc D,2 free D,3 undo M,4 pool_alloc D,5 pool_free D,6 pool_create D,7 pool_destroy D,8 pool_trim D,
9 pool_set D,10 reserve D,11 unreserve D,12 phys_create D,13 phys_release D,14 phys_retain D,
15 phys_import D,16 phys_export D,17 map D,18 unmap D,19 set_access O,20 host_alloc H,21 host_free H,
22 host_register H,23 host_unregister H,24 ipc_get D,25 ipc_open D,26 ipc_close D,27 array_create D,
28 array_destroy D,29 external_import D,30 external_map D,31 external_destroy D,32 multicast_create D,
33 multicast_bind D,34 multicast_unbind D,35 graph_alloc_node O,36 graph_free_node O,37 graph_trim D,
38 context_create D,39 context_destroy D,40 context_retain D,41 context_release D,42 context_reset D,
43 limit_set D,44 mem_info M,45 module_load D,46 module_unload D,47 stream_create O,48 stream_destroy O,
49 event_record O,50 event_query O,51 event_destroy O,52 capture_begin O,53 capture_end O,
54 graph_instantiate D,55 graph_launch O,56 graph_exec_destroy D,57 graph_destroy O,58 device_set O,
59 other_call O,60 graph_upload O,61 comm_begin O,62 comm_create O,63 comm_destroy O,64 mem_pool_id O,65 mem_pool_destroy O,80 fw_alloc F,
81 fw_free F,82 fw_oom F,83 fw_host_alloc F,84 fw_host_free F,100 sample M,101 other_process M,102 mark M,
103 step M,104 phase_begin M,105 phase_end M,106 loss M,107 torn M,108 forked M,109 host_sample M,
110 process_end M,111 cut M,112 cut_end M,113 host_shared M,
114 host_reclaimable M,115 host_oom_kills M"""

NAME, LAYER, NUMBER = {}, {}, {}
for _row in _TABLE.replace("\n", "").split(","):
    _number, _name, _layer = _row.split()
    NAME[int(_number)], LAYER[int(_number)], NUMBER[_name] = _name, _layer, int(_number)

MANAGED, CAPTURING, RUNTIME, NESTED, BEFORE_THE_CALL, FROM_START, FREE_MEASURED, PORTABLE = \
    (1 << bit for bit in range(8))
OUT_OF_MEMORY, SHUT_DOWN, NOT_READY = 2, 4, 600
