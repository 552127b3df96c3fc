/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's backend interface: descriptors that hold attributes. Whatever is set
 * can be read again; a heuristic knows one engine configuration for every
 * graph, a plan needs no workspace, executing one is a launch.
 */
#include "cudnn.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The attributes that have an answer without having been set. */
enum {
    HEURISTIC_RESULTS = 202,
    CONFIG_ENGINE = 300,
    CONFIG_WORKSPACE_SIZE = 303,
    PLAN_WORKSPACE_SIZE = 402,
    GRAPH_ENGINE_COUNT = 802,
    ENGINE_INDEX = 1301,
};

enum { TYPE_BACKEND_DESCRIPTOR = 15 };
enum { KIND_PLAN = 5, KIND_VARIANT_PACK = 16 };

struct attribute {
    int name, type;
    int64_t count;
    void *elements;
    struct attribute *next;
};

struct backend {
    int kind;
    bool finalized;
    struct attribute *attributes;
};

/* Bytes of one element of a cudnnBackendAttributeType_t. */
static size_t element_bytes(int type)
{
    enum { HANDLE = 0, BOOLEAN = 2, INT64 = 3, DOUBLE = 5, POINTER = 6, CHAR = 24, FRACTION = 26 };
    switch (type) {
    case HANDLE:
    case INT64:
    case DOUBLE:
    case POINTER:
    case TYPE_BACKEND_DESCRIPTOR:
        return 8;
    case BOOLEAN:
    case CHAR:
        return 1;
    case FRACTION:
        return 16;
    default:
        return 4; /* enumerations, int32, float */
    }
}

int cudnnBackendCreateDescriptor(int kind, struct backend **descriptor)
{
    if (!descriptor)
        return DNN_BAD_PARAM_NULL_POINTER;
    *descriptor = calloc(1, sizeof(**descriptor));
    if (!*descriptor)
        return DNN_ALLOC_FAILED;
    (*descriptor)->kind = kind;
    return DNN_SUCCESS;
}

int cudnnBackendDestroyDescriptor(struct backend *descriptor)
{
    while (descriptor && descriptor->attributes) {
        struct attribute *attribute = descriptor->attributes;
        descriptor->attributes = attribute->next;
        free(attribute->elements);
        free(attribute);
    }
    free(descriptor);
    return DNN_SUCCESS;
}

static struct attribute *find(const struct backend *descriptor, int name)
{
    struct attribute *attribute = descriptor->attributes;
    while (attribute && attribute->name != name)
        attribute = attribute->next;
    return attribute;
}

static struct attribute *find_or_add(struct backend *descriptor, int name)
{
    struct attribute *attribute = find(descriptor, name);
    if (attribute)
        return attribute;
    attribute = calloc(1, sizeof(*attribute));
    if (!attribute)
        return NULL;
    attribute->name = name;
    attribute->next = descriptor->attributes;
    descriptor->attributes = attribute;
    return attribute;
}

static int store(struct backend *descriptor, int name, int type, int64_t count,
                 const void *elements)
{
    size_t bytes = element_bytes(type) * (size_t)count;
    void *copy = malloc(bytes ? bytes : 1);
    struct attribute *attribute = copy ? find_or_add(descriptor, name) : NULL;
    if (!attribute) {
        free(copy);
        return DNN_ALLOC_FAILED;
    }
    if (bytes)
        memcpy(copy, elements, bytes);
    free(attribute->elements);
    attribute->elements = copy;
    attribute->type = type;
    attribute->count = count;
    return DNN_SUCCESS;
}

int cudnnBackendSetAttribute(struct backend *descriptor, int name, int type, int64_t count,
                             const void *elements)
{
    if (!descriptor || (count > 0 && !elements))
        return DNN_BAD_PARAM_NULL_POINTER;
    if (count < 0 || descriptor->finalized)
        return DNN_BAD_PARAM;
    return store(descriptor, name, type, count, elements);
}

int cudnnBackendFinalize(struct backend *descriptor)
{
    if (!descriptor)
        return DNN_BAD_PARAM_NULL_POINTER;
    descriptor->finalized = true;
    return DNN_SUCCESS;
}

/* Reading a descriptor fills one that the caller made. */
static int copy_descriptor(const struct backend *from, struct backend *to)
{
    if (!from || !to)
        return DNN_BAD_PARAM_NULL_POINTER;
    int status = DNN_SUCCESS;
    for (struct attribute *a = from->attributes; a && status == DNN_SUCCESS; a = a->next)
        status = store(to, a->name, a->type, a->count, a->elements);
    to->finalized = true;
    return status;
}

static int give_stored(const struct attribute *attribute, int64_t wanted, int64_t *found,
                       void *elements)
{
    if (found)
        *found = attribute->count;
    int64_t count = wanted < attribute->count ? wanted : attribute->count;
    if (!elements || count <= 0)
        return DNN_SUCCESS;
    if (attribute->type != TYPE_BACKEND_DESCRIPTOR) {
        memcpy(elements, attribute->elements, element_bytes(attribute->type) * (size_t)count);
        return DNN_SUCCESS;
    }
    int status = DNN_SUCCESS;
    struct backend **from = attribute->elements, **to = elements;
    for (int64_t i = 0; i < count && status == DNN_SUCCESS; i++)
        status = copy_descriptor(from[i], to[i]);
    return status;
}

/* What is known without having been set: one configuration with engine 0. */
static int give_known(int name, int64_t wanted, int64_t *found, void *elements)
{
    int64_t number = name == GRAPH_ENGINE_COUNT;
    int64_t count = 0;
    switch (name) {
    case HEURISTIC_RESULTS:
    case CONFIG_ENGINE:
        count = 1;
        if (wanted > 0 && elements)
            (*(struct backend **)elements)->finalized = true;
        break;
    case CONFIG_WORKSPACE_SIZE:
    case PLAN_WORKSPACE_SIZE:
    case GRAPH_ENGINE_COUNT:
    case ENGINE_INDEX:
        count = 1;
        if (wanted > 0 && elements)
            memcpy(elements, &number, sizeof(number));
        break;
    default:
        break; /* no notes, no knobs, no layouts */
    }
    if (found)
        *found = count;
    return DNN_SUCCESS;
}

int cudnnBackendGetAttribute(const struct backend *descriptor, int name, int type, int64_t wanted,
                             int64_t *found, void *elements)
{
    if (!descriptor)
        return DNN_BAD_PARAM_NULL_POINTER;
    const struct attribute *attribute = find(descriptor, name);
    if (!attribute)
        return give_known(name, wanted, found, elements);
    return attribute->type == type ? give_stored(attribute, wanted, found, elements)
                                   : DNN_BAD_PARAM;
}

int cudnnBackendExecute(struct dnn_handle *handle, const struct backend *plan,
                        const struct backend *pack)
{
    if (!handle || !plan || !pack)
        return DNN_BAD_PARAM_NULL_POINTER;
    if (plan->kind != KIND_PLAN || pack->kind != KIND_VARIANT_PACK || !plan->finalized)
        return DNN_BAD_PARAM;
    return simdnn_launch(handle);
}
