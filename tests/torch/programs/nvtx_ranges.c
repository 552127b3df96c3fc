/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges by NVTX's own header in a program without CUDA's: what it says of each is at its calls. */
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 500, DOMAINS = 6000, STRINGS = 10 };

static int (*allocate)(unsigned long long *, size_t);

static void *call(void *cuda, const char *name)
{
    void *found = dlsym(cuda, name);
    if (found == NULL)
        exit(2);
    return found;
}

static void use_cuda(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (cuda == NULL)
        exit(2);
    int (*init)(unsigned) = (int (*)(unsigned))call(cuda, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))call(cuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void *) = (int (*)(void *))call(cuda, "cuCtxSetCurrent");
    allocate = (int (*)(unsigned long long *, size_t))call(cuda, "cuMemAlloc_v2");
    if (init(0) != 0 || retain(&context, 0) != 0 || current(context) != 0)
        exit(2);
}

static nvtxEventAttributes_t attributes(int type)
{
    nvtxEventAttributes_t made = {0};
    made.version = NVTX_VERSION;
    made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    made.messageType = type;
    return made;
}

static void *many(void *domain)
{
    nvtxEventAttributes_t named = attributes(NVTX_MESSAGE_TYPE_ASCII);
    named.message.ascii = "busy";
    for (int i = 0; i < ROUNDS; i++) {
        nvtxRangeId_t id = nvtxRangeStartA("crossing");
        if (nvtxDomainRangePushEx(domain, &named) != 0 || nvtxRangePushA("nested") != 0)
            exit(3);
        if (nvtxDomainRangePop(domain) != 0 || nvtxRangePop() != 0)
            exit(3);
        nvtxRangeEnd(id);
    }
    return NULL;
}

/* More names than have room, a range of each. Prints how many domains are the one that stands for
   all that had none, and how many strings are. */
static void crowd(void)
{
    static nvtxDomainHandle_t domains[DOMAINS];
    static nvtxStringHandle_t strings[STRINGS];
    char name[32];
    int same_domain = 0, same_string = 0;
    for (int i = 0; i < DOMAINS; i++) {
        nvtxEventAttributes_t named = attributes(NVTX_MESSAGE_TYPE_ASCII);
        named.message.ascii = "range";
        snprintf(name, sizeof(name), "domain %d", i);
        domains[i] = nvtxDomainCreateA(name);
        nvtxDomainRangePushEx(domains[i], &named);
        nvtxDomainRangePop(domains[i]);
    }
    for (int i = 0; i < STRINGS; i++) {
        nvtxEventAttributes_t registered = attributes(NVTX_MESSAGE_TYPE_REGISTERED);
        snprintf(name, sizeof(name), "string %d", i);
        strings[i] = nvtxDomainRegisterStringA(NULL, name);
        registered.message.registered = strings[i];
        nvtxRangePushEx(&registered);
        nvtxRangePop();
    }
    for (int i = 0; i < DOMAINS; i++)
        same_domain += domains[i] == domains[DOMAINS - 1];
    for (int i = 0; i < STRINGS; i++)
        same_string += strings[i] == strings[STRINGS - 1];
    printf("%d %d\n", same_domain, same_string);
}

/* With an argument: one range only, or with "crowd" those. */
int main(int argc, char **argv)
{
    unsigned long long address;
    use_cuda();
    allocate(&address, 1 << 20);
    if (argc > 1 && strcmp(argv[1], "crowd") == 0) {
        crowd();
        return 0;
    }
    if (argc > 1) {
        printf("%d\n", nvtxRangePushA("unheard"));
        return 0;
    }
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t wide = attributes(NVTX_MESSAGE_TYPE_UNICODE);
    nvtxEventAttributes_t registered = attributes(NVTX_MESSAGE_TYPE_REGISTERED);
    nvtxEventAttributes_t unknown = attributes(NVTX_MESSAGE_TYPE_REGISTERED);
    nvtxEventAttributes_t none = attributes(NVTX_MESSAGE_UNKNOWN);
    wide.message.unicode = L"h\u00f6he \U0001f600";
    registered.message.registered = nvtxDomainRegisterStringA(domain, "kept");
    unknown.message.registered = (nvtxStringHandle_t)(void *)&wide;

    /* Two domains do not nest in each other. */
    int levels[] = {nvtxRangePushW(L"default"),
                    nvtxDomainRangePushEx(domain, &registered),
                    nvtxRangePushEx(&wide),
                    nvtxDomainRangePop(domain),
                    nvtxDomainRangePop(domain),
                    nvtxRangePop(),
                    nvtxRangePop(),
                    nvtxRangePop()};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        printf("%d ", levels[i]);
    putchar('\n');
    nvtxMarkEx(&unknown);
    nvtxDomainMarkEx(domain, &none);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, many, domain);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
