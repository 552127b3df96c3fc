/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose device memory moves like a training job's, over the driver
 * API alone, so that it runs wherever libcuda.so.1 is: on a GPU or on the
 * simulated device. Weights first, activations that grow forward and go
 * backward, optimizer state in the first step, a larger validation batch, and a
 * history of losses that somebody forgot to detach. scripts/quickstart traces it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 12, MAX_KEPT = 4096 };

static const uint64_t MIB = 1024U * 1024U;

struct driver {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*context_retain)(void **, int);
    int (*context_set)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*release)(uint64_t);
    int (*error_name)(int, const char **);
    void (*step)(uint64_t);
    void (*phase_begin)(const char *);
    void (*phase_end)(void);
};

struct model {
    uint64_t weights[LAYERS];
    uint64_t optimizer[LAYERS];
    uint64_t activations[LAYERS];
    uint64_t kept[MAX_KEPT];
    size_t kept_count;
};

static void *need(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "training-like: %s has no %s\n", "libcuda.so.1", name);
        exit(1);
    }
    return found;
}

static struct driver open_driver(void)
{
    struct driver driver = {0};
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL) {
        fprintf(stderr, "training-like: no CUDA driver (%s); try scripts/simgpu -- training-like\n",
                dlerror());
        exit(1);
    }
    *(void **)&driver.init = need(cuda, "cuInit");
    *(void **)&driver.device_get = need(cuda, "cuDeviceGet");
    *(void **)&driver.context_retain = need(cuda, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.context_set = need(cuda, "cuCtxSetCurrent");
    *(void **)&driver.alloc = need(cuda, "cuMemAlloc_v2");
    *(void **)&driver.release = need(cuda, "cuMemFree_v2");
    *(void **)&driver.error_name = need(cuda, "cuGetErrorName");
    /* Optional: marks, when the program is traced. */
    *(void **)&driver.step = dlsym(RTLD_DEFAULT, "vramscope_step");
    *(void **)&driver.phase_begin = dlsym(RTLD_DEFAULT, "vramscope_begin");
    *(void **)&driver.phase_end = dlsym(RTLD_DEFAULT, "vramscope_end");
    return driver;
}

static uint64_t allocate(const struct driver *driver, uint64_t bytes)
{
    uint64_t address = 0;
    int result = driver->alloc(&address, bytes);
    if (result != 0) {
        const char *name = "unknown error";
        driver->error_name(result, &name);
        fprintf(stderr, "training-like: %s on a request of %llu MiB\n", name,
                (unsigned long long)(bytes / MIB));
        exit(1);
    }
    return address;
}

static void forward_and_backward(const struct driver *driver, struct model *model, uint64_t batch)
{
    for (int layer = 0; layer < LAYERS; layer++)
        model->activations[layer] = allocate(driver, batch * 3 * MIB);
    uint64_t workspace = allocate(driver, 32 * MIB);
    for (int layer = LAYERS - 1; layer >= 0; layer--)
        driver->release(model->activations[layer]);
    driver->release(workspace);
}

static void train(const struct driver *driver, struct model *model, int steps, uint64_t batch)
{
    for (int step = 0; step < steps; step++) {
        if (driver->step != NULL)
            driver->step((uint64_t)step);
        forward_and_backward(driver, model, batch);
        for (int layer = 0; layer < LAYERS && step == 0; layer++)
            model->optimizer[layer] = allocate(driver, 48 * MIB);
        if (model->kept_count < MAX_KEPT)
            model->kept[model->kept_count++] = allocate(driver, 2 * MIB);
        if (step % 10 == 9) {
            if (driver->phase_begin != NULL)
                driver->phase_begin("validation");
            forward_and_backward(driver, model, batch * 2);
            if (driver->phase_end != NULL)
                driver->phase_end();
        }
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    uint64_t batch = argc > 2 ? strtoull(argv[2], NULL, 10) : 8;
    if (steps < 1 || batch < 1 || (argc > 1 && strcmp(argv[1], "--help") == 0)) {
        fprintf(stderr, "usage: training-like [STEPS [BATCH]]\n");
        return 2;
    }
    struct driver driver = open_driver();
    static struct model model;
    int device = 0;
    void *context = NULL;
    if (driver.init(0) != 0 || driver.device_get(&device, 0) != 0 ||
        driver.context_retain(&context, device) != 0 || driver.context_set(context) != 0) {
        fprintf(stderr, "training-like: no usable CUDA device\n");
        return 1;
    }
    for (int layer = 0; layer < LAYERS; layer++)
        model.weights[layer] = allocate(&driver, 24 * MIB);
    train(&driver, &model, steps, batch);
    printf("training-like: %d steps, batch %llu, done\n", steps, (unsigned long long)batch);
    return 0;
}
