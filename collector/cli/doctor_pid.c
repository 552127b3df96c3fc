/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope doctor --pid N`: a process that runs already. Nothing is asked of
 * it and nothing changes in it: /proc alone is read.
 */
#include "doctor_pid.h"

#include <errno.h>
#include <stdlib.h>

#include "doctor_proc.h"

static void look_at_libraries(struct doctor *doctor, const struct proc_image *image)
{
    for (size_t i = 0; i < image->library_count; i++)
        doctor_note(doctor, "mapped: %s", image->libraries[i]);
    if (image->library_count == 0)
        doctor_note(doctor, "no CUDA library is mapped (yet): there is no device memory to trace");
}

static void look_for_collector(struct doctor *doctor, const struct proc_image *image)
{
    if (image->library_count == 0)
        return;
    if (image->disabled)
        doctor_fault(doctor, "VRAMSCOPE_DISABLE is set: the shim is loaded and does nothing");
    else
        doctor_ok(doctor, "the shim is loaded: memory calls of this process are recorded");
}

int doctor_pid(struct doctor *doctor, pid_t pid)
{
    struct proc_image *image = malloc(sizeof(*image));
    if (image == NULL)
        return -ENOMEM;
    int error = proc_read(pid, image);
    if (error == 0 && !image->maps_seen)
        error = -EACCES;
    if (error != 0)
        goto out;
    doctor_note(doctor, "process %ld: %s", (long)pid, image->executable);
    look_at_libraries(doctor, image);
    const char *why = proc_why_not(image);
    if (image->shim_mapped)
        look_for_collector(doctor, image);
    else if (why != NULL)
        doctor_fault(doctor, "the shim is not loaded: the process %s", why);
    else
        doctor_fault(doctor, "the shim is not loaded, and /proc does not tell why");
    if (!image->shim_mapped)
        doctor_note(doctor, "it cannot be added later: start the program with `vramscope run --`");
out:
    free(image);
    return error;
}
