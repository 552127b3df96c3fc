/* SPDX-License-Identifier: Apache-2.0 */
/* A library linked against one CUDA runtime: its calls go through the preloaded symbols. */
int cudaEventQuery(void *event);
int cudaMalloc(void **out, unsigned long bytes);

__attribute__((visibility("default"))) int plugin_query(void);
int plugin_query(void)
{
    volatile int result = cudaEventQuery((void *)1); /* no tail call: its caller would be ours */
    return result;
}

__attribute__((visibility("default"))) void *plugin_malloc(unsigned long bytes);
void *plugin_malloc(unsigned long bytes)
{
    void *out = 0;
    cudaMalloc(&out, bytes);
    return out;
}
