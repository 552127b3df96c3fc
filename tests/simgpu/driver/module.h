/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded code: modules and libraries are one struct, functions and kernels another. */
#ifndef SIMGPU_DRIVER_MODULE_H
#define SIMGPU_DRIVER_MODULE_H

#include "driver.h"

#define SIM_FUNCTION_ATTRIBUTES 16

struct sim_function {
    struct sim_object object;
    struct sim_module *module;
    char *name;
    int attributes[SIM_FUNCTION_ATTRIBUTES];
    struct sim_function *next;
};

struct sim_module {
    struct sim_object object;    /* SIM_MODULE or SIM_LIBRARY */
    struct sim_context *context; /* whose device pays; NULL: a library no context used yet */
    struct sim_function *functions;
    size_t function_count;
    struct sim_module *view;    /* of a library: the module cuLibraryGetModule gave */
    struct sim_module *library; /* of a view: what it shows */
    struct sim_module *next;
};

CUresult sim_module_new(enum sim_type type, struct sim_context *context,
                        struct sim_module **module);
void sim_module_delete(struct sim_module *module);

/* Any name is taken for a function's: images are not read. NULL without memory. */
struct sim_function *sim_module_function(struct sim_module *module, const char *name);

/* The ends of calls on modules and libraries alike: MODULE NULL is a wrong handle. They leave the
 * lock that the caller has taken. */
CUresult sim_module_give_function(struct sim_module *module, const char *name, void **out);
CUresult sim_module_give_count(const struct sim_module *module, unsigned *count);
/* At most ROOM functions; what is left of OUT becomes NULL. */
CUresult sim_module_give_functions(const struct sim_module *module, void **out, unsigned room);

/* Lets CONTEXT's device pay for a library that no context has used so far. */
CUresult sim_module_bind(struct sim_module *module, struct sim_context *context);

struct sim_function *sim_function_of(const void *handle);

CUresult sim_function_get_attribute(const struct sim_function *function, int attribute, int *value);
CUresult sim_function_set_attribute(struct sim_function *function, int attribute, int value);

#endif
