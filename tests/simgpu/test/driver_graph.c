/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, cost, memory nodes, host nodes, user objects. */
#include <stdatomic.h>

#include "driver_test.h"

static cuuint64_t graph_memory(CUgraphMem_attribute which)
{
    cuuint64_t value = 0;
    OK(cuDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}

static CUdeviceptr add_alloc(CUgraph graph, CUgraphNode *node, size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = bytes};
    OK(cuGraphAddMemAllocNode(node, graph, NULL, 0, &params));
    EXPECT(params.dptr != 0);
    return params.dptr;
}

TEST(graph_nodes_cost)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    START_WITH("SIMGPU_GRAPH_NODE=64K");
    OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 32; i++)
        OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    EXPECT_EQ(test_used(), 0);
    OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(test_used(), 2 * MIB);
    OK(cuGraphDestroy(graph));
    EXPECT_EQ(test_used(), 2 * MIB);
    OK(cuGraphExecDestroy(exec));
    EXPECT_EQ(test_used(), 0);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

TEST(graph_memory_lives_in_the_graph_pool)
{
    CUgraph graph;
    CUgraphNode alloc;
    CUgraphNode release;
    CUgraphExec exec;
    CUgraphExec second;
    START();
    OK(cuGraphCreate(&graph, 0));
    CUdeviceptr memory = add_alloc(graph, &alloc, 5 * MIB);
    OK(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, memory));
    EXPECT_EQ(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(test_used(), 0);
    OK(cuGraphLaunch(exec, NULL));
    EXPECT_EQ(test_used(), 6 * MIB);
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 6 * MIB);
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 6 * MIB);
    OK(cuGraphLaunch(exec, NULL));
    EXPECT_EQ(test_used(), 6 * MIB);
    OK(cuDeviceGraphMemTrim(0)); /* nothing runs: the pages may go, and come again */
    EXPECT_EQ(test_used(), 0);
    OK(cuGraphLaunch(exec, NULL));
    EXPECT_EQ(test_used(), 6 * MIB);
    OK(cuGraphExecDestroy(exec));
    EXPECT_EQ(test_used(), 6 * MIB);
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    OK(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(test_used(), 0);
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 6 * MIB);
    OK(cuGraphDestroy(graph));
}

TEST(graph_allocation_outlives_its_launch)
{
    CUgraph graph;
    CUgraphNode alloc;
    CUgraphExec exec;
    START();
    OK(cuGraphCreate(&graph, 0));
    CUdeviceptr memory = add_alloc(graph, &alloc, 2 * MIB);
    EXPECT_EQ(cuMemFreeAsync(memory, NULL), CUDA_ERROR_INVALID_VALUE); /* not yet made */
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuMemsetD8(memory, 1, 2 * MIB));
    EXPECT_EQ(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(test_used(), 2 * MIB); /* still live */
    OK(cuGraphExecDestroy(exec));
    OK(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(test_used(), 2 * MIB);
    OK(cuMemFreeAsync(memory, NULL));
    EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(test_used(), 0);
    OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphLaunch(exec, NULL));
    EXPECT_EQ(test_used(), 2 * MIB);
}

TEST(graph_capture_of_stream_ordered_memory)
{
    CUgraph graph;
    CUgraphExec exec;
    CUstream stream;
    CUdeviceptr memory = 0;
    CUgraphNode nodes[8];
    CUgraphNodeType type;
    size_t count = 8;
    START();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAllocAsync(&memory, 100, stream));
    EXPECT(memory != 0);
    OK(cuMemFreeAsync(memory, stream));
    OK(cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(test_used(), 0);
    OK(cuGraphGetNodes(graph, nodes, &count));
    EXPECT_EQ(count, 2);
    OK(cuGraphNodeGetType(nodes[0], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    OK(cuGraphNodeGetType(nodes[1], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT_EQ(test_used(), 2 * MIB);
}

static atomic_int calls;

static void CUDA_CB count_call(void *amount)
{
    calls += (int)(intptr_t)amount;
}

TEST(graph_host_nodes_run_at_launch)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_HOST_NODE_PARAMS params = {.fn = count_call, .userData = (void *)5};
    START();
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddHostNode(&node, graph, NULL, 0, &params));
    OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(calls, 0);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuStreamSynchronize(NULL));
    EXPECT_EQ(calls, 10);
    params.userData = (void *)100;
    OK(cuGraphExecHostNodeSetParams(exec, node, &params));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphExecDestroy(exec)); /* with a launch under way */
    OK(cuCtxSynchronize());
    EXPECT_EQ(calls, 110);
}

TEST(graph_refuses_cycles_and_foreign_nodes)
{
    CUgraph graph;
    CUgraph other;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    START();
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&other, 0));
    OK(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    OK(cuGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    EXPECT_EQ(cuGraphAddEmptyNode(&nodes[1], other, &nodes[0], 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddDependencies_v2(graph, &nodes[1], &nodes[0], NULL, 1));
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphRemoveDependencies_v2(graph, &nodes[1], &nodes[0], NULL, 1));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroyNode(nodes[0]));
    size_t count = 0;
    OK(cuGraphGetNodes(graph, NULL, &count));
    EXPECT_EQ(count, 1);
}

TEST(graph_update)
{
    CUgraph graph;
    CUgraph same;
    CUgraph longer;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr memory;
    CUDA_MEMSET_NODE_PARAMS fill = {.value = 1, .elementSize = 1, .width = 4, .height = 1};
    CUcontext context;
    START();
    OK(cuCtxGetCurrent(&context));
    OK(cuMemAlloc(&memory, 4));
    fill.dst = memory;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&same, 0));
    OK(cuGraphCreate(&longer, 0));
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
    fill.value = 9;
    OK(cuGraphAddMemsetNode(&node, same, NULL, 0, &fill, context));
    OK(cuGraphAddEmptyNode(&node, longer, NULL, 0));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphExecUpdate(exec, same, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuStreamSynchronize(NULL));
    EXPECT_EQ(*(char *)(uintptr_t)memory, 9);
    EXPECT_EQ(cuGraphExecUpdate(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST(graph_user_objects_go_with_the_last_holder)
{
    CUgraph graph;
    CUgraphExec exec;
    CUuserObject object;
    START();
    OK(cuGraphCreate(&graph, 0));
    OK(cuUserObjectCreate(&object, (void *)1, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    EXPECT_EQ(calls, 0);
    OK(cuGraphExecDestroy(exec));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}
