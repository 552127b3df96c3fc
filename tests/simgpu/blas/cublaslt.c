/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated cuBLASLt: descriptors that remember their attributes, one
 * algorithm that always fits and needs no workspace, products that are a launch.
 */
#include "blas.h"

#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 64, ATTRIBUTE_BYTES = 64 };

/* A matmul, layout, preference or transform description. */
struct description {
    struct {
        size_t bytes;
        unsigned char value[ATTRIBUTE_BYTES];
    } attributes[ATTRIBUTES];
};

struct lt_handle {
    size_t unused;
};

/* What cublasLtMatmulAlgo_t is to us: 64 bytes of configuration. */
struct algorithm {
    uint32_t config[16];
};

/* cublasLtMatmulHeuristicResult_t. */
struct heuristic {
    struct algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves_count;
    int reserved[4];
};

_Static_assert(sizeof(struct algorithm) == 64, "cublasLtMatmulAlgo_t");
_Static_assert(sizeof(struct heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

int cublasLtCreate(struct lt_handle **handle)
{
    if (!handle)
        return BLAS_INVALID_VALUE;
    *handle = NULL;
    int status = simblas_need_context();
    if (status != BLAS_SUCCESS)
        return status;
    *handle = calloc(1, sizeof(**handle));
    return *handle ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

int cublasLtDestroy(struct lt_handle *handle)
{
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    free(handle);
    return BLAS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return SIMBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? (size_t)version : 0;
}

int cublasLtGetProperty(int type, int *value)
{
    return simblas_property(type, value);
}

const char *cublasLtGetStatusName(int status)
{
    return simblas_status_name(status);
}

const char *cublasLtGetStatusString(int status)
{
    return simblas_status_text(status);
}

static int create(struct description **description)
{
    if (!description)
        return BLAS_INVALID_VALUE;
    *description = calloc(1, sizeof(**description));
    return *description ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

static int destroy(struct description *description)
{
    free(description);
    return BLAS_SUCCESS;
}

static int set(struct description *description, int attribute, const void *value, size_t bytes)
{
    if (!description || !value || attribute < 0 || attribute >= ATTRIBUTES ||
        bytes > ATTRIBUTE_BYTES)
        return BLAS_INVALID_VALUE;
    memcpy(description->attributes[attribute].value, value, bytes);
    description->attributes[attribute].bytes = bytes;
    return BLAS_SUCCESS;
}

/* Every attribute's default is zero of whatever size is asked for. */
static int get(const struct description *description, int attribute, void *value, size_t bytes,
               size_t *written)
{
    if (!description || attribute < 0 || attribute >= ATTRIBUTES || bytes > ATTRIBUTE_BYTES)
        return BLAS_INVALID_VALUE;
    size_t known = description->attributes[attribute].bytes;
    if (written)
        *written = known ? known : bytes;
    if (bytes == 0)
        return written ? BLAS_SUCCESS : BLAS_INVALID_VALUE;
    if (!value || bytes < known)
        return BLAS_INVALID_VALUE;
    memcpy(value, description->attributes[attribute].value, bytes);
    return BLAS_SUCCESS;
}

#define DESCRIPTION(kind)                                                                  \
    int cublasLt##kind##Destroy(struct description *description)                           \
    {                                                                                      \
        return destroy(description);                                                       \
    }                                                                                      \
    int cublasLt##kind##SetAttribute(struct description *description, int attribute,       \
                                     const void *value, size_t bytes)                      \
    {                                                                                      \
        return set(description, attribute, value, bytes);                                  \
    }                                                                                      \
    int cublasLt##kind##GetAttribute(const struct description *description, int attribute, \
                                     void *value, size_t bytes, size_t *written)           \
    {                                                                                      \
        return get(description, attribute, value, bytes, written);                         \
    }

DESCRIPTION(MatmulDesc)
DESCRIPTION(MatrixLayout)
DESCRIPTION(MatmulPreference)
DESCRIPTION(MatrixTransformDesc)

/* Attributes that creating a description sets, by their public numbers. */
enum { MATMUL_COMPUTE_TYPE = 0, MATMUL_SCALE_TYPE = 1 };
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_STRIDE = 4 };
enum { TRANSFORM_SCALE_TYPE = 0 };

int cublasLtMatmulDescCreate(struct description **description, int compute_type, int scale_type)
{
    int status = create(description);
    if (status == BLAS_SUCCESS)
        status = set(*description, MATMUL_COMPUTE_TYPE, &compute_type, sizeof(compute_type));
    return status == BLAS_SUCCESS
               ? set(*description, MATMUL_SCALE_TYPE, &scale_type, sizeof(scale_type))
               : status;
}

int cublasLtMatrixLayoutCreate(struct description **description, int type, uint64_t rows,
                               uint64_t columns, int64_t stride)
{
    int status = create(description);
    if (status == BLAS_SUCCESS)
        status = set(*description, LAYOUT_TYPE, &type, sizeof(type));
    if (status == BLAS_SUCCESS)
        status = set(*description, LAYOUT_ROWS, &rows, sizeof(rows));
    if (status == BLAS_SUCCESS)
        status = set(*description, LAYOUT_COLUMNS, &columns, sizeof(columns));
    return status == BLAS_SUCCESS ? set(*description, LAYOUT_STRIDE, &stride, sizeof(stride))
                                  : status;
}

int cublasLtMatmulPreferenceCreate(struct description **description)
{
    return create(description);
}

int cublasLtMatrixTransformDescCreate(struct description **description, int scale_type)
{
    int status = create(description);
    return status == BLAS_SUCCESS
               ? set(*description, TRANSFORM_SCALE_TYPE, &scale_type, sizeof(scale_type))
               : status;
}

int cublasLtMatmulAlgoGetHeuristic(struct lt_handle *handle, const struct description *matmul,
                                   const struct description *a, const struct description *b,
                                   const struct description *c, const struct description *d,
                                   const struct description *preference, int wanted,
                                   struct heuristic *results, int *found)
{
    if (!handle || !matmul || !a || !b || !c || !d || !preference || wanted < 1 || !results ||
        !found)
        return BLAS_INVALID_VALUE;
    memset(results, 0, sizeof(*results));
    results->state = BLAS_SUCCESS;
    results->waves_count = 1.0f;
    *found = 1;
    return BLAS_SUCCESS;
}

int cublasLtMatmulAlgoGetIds(struct lt_handle *handle, int compute, int scale, int a, int b, int c,
                             int d, int wanted, int *ids, int *found)
{
    (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!handle || wanted < 1 || !ids || !found)
        return BLAS_INVALID_VALUE;
    ids[0] = 0;
    *found = 1;
    return BLAS_SUCCESS;
}

int cublasLtMatmulAlgoInit(struct lt_handle *handle, int compute, int scale, int a, int b, int c,
                           int d, int id, struct algorithm *algorithm)
{
    (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!handle || !algorithm || id != 0)
        return BLAS_INVALID_VALUE;
    memset(algorithm, 0, sizeof(*algorithm));
    return BLAS_SUCCESS;
}

int cublasLtMatmulAlgoCheck(struct lt_handle *handle, const struct description *matmul,
                            const struct description *a, const struct description *b,
                            const struct description *c, const struct description *d,
                            const struct algorithm *algorithm, struct heuristic *result)
{
    if (!handle || !matmul || !a || !b || !c || !d || !algorithm || !result)
        return BLAS_INVALID_VALUE;
    struct algorithm checked = *algorithm; /* may be the one inside `result` */
    memset(result, 0, sizeof(*result));
    result->algorithm = checked;
    result->waves_count = 1.0f;
    return BLAS_SUCCESS;
}

enum { CONFIG_ATTRIBUTES = 16 };

int cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, int attribute,
                                         void *value, size_t bytes, size_t *written)
{
    if (!algorithm || attribute < 0 || attribute >= CONFIG_ATTRIBUTES ||
        bytes > sizeof(algorithm->config[0]) || (bytes && !value))
        return BLAS_INVALID_VALUE;
    if (bytes)
        memcpy(value, &algorithm->config[attribute], bytes);
    if (written)
        *written = bytes ? bytes : sizeof(algorithm->config[0]);
    return BLAS_SUCCESS;
}

int cublasLtMatmulAlgoConfigSetAttribute(struct algorithm *algorithm, int attribute,
                                         const void *value, size_t bytes)
{
    if (!algorithm || !value || attribute < 0 || attribute >= CONFIG_ATTRIBUTES ||
        bytes > sizeof(algorithm->config[0]))
        return BLAS_INVALID_VALUE;
    memcpy(&algorithm->config[attribute], value, bytes);
    return BLAS_SUCCESS;
}

int cublasLtMatmul(struct lt_handle *handle, const struct description *matmul, const void *alpha,
                   const void *a, const struct description *a_layout, const void *b,
                   const struct description *b_layout, const void *beta, const void *c,
                   const struct description *c_layout, void *d, const struct description *d_layout,
                   const struct algorithm *algorithm, void *workspace, size_t workspace_bytes,
                   cudaStream_t stream)
{
    (void)algorithm, (void)workspace, (void)workspace_bytes, (void)c, (void)beta;
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    if (!matmul || !alpha || !a || !a_layout || !b || !b_layout || !c_layout || !d || !d_layout)
        return BLAS_INVALID_VALUE;
    return simblas_launch(stream);
}

int cublasLtMatrixTransform(struct lt_handle *handle, const struct description *transform,
                            const void *alpha, const void *a, const struct description *a_layout,
                            const void *beta, const void *b, const struct description *b_layout,
                            void *c, const struct description *c_layout, cudaStream_t stream)
{
    (void)alpha, (void)beta, (void)b, (void)b_layout;
    if (!handle)
        return BLAS_NOT_INITIALIZED;
    if (!transform || !a || !a_layout || !c || !c_layout)
        return BLAS_INVALID_VALUE;
    return simblas_launch(stream);
}

#define UNSUPPORTED(name)                  \
    int name(void)                         \
    {                                      \
        return simblas_unsupported(#name); \
    }
#include "unsupported_lt.def"
