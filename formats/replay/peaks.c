/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the bands of a device as they were at its highest moments. */
#include <errno.h>
#include <stdlib.h>

#include "analysis.h"

static void on_peak(void *self, const struct vs_state *state, const struct vs_device_state *device,
                    unsigned which)
{
    struct vs_peaks *peaks = self;
    struct vs_device_peaks **slot = &peaks->devices[device->device + VS_DEVICE_OFFSET];
    if (*slot == NULL)
        *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL)
        return; /* the caller finds no peak and says so */
    if (which & VS_PEAK_FRAMEWORK)
        vs_state_bands(state, device, &(*slot)->at_framework);
    if (which & VS_PEAK_DRIVER)
        vs_state_bands(state, device, &(*slot)->at_driver);
    if (which & VS_PEAK_USED)
        vs_state_bands(state, device, &(*slot)->at_used);
}

int vs_peaks_start(struct vs_peaks *peaks, struct vs_state *state)
{
    struct vs_subscriber subscriber = {.self = peaks, .peak = on_peak};
    return vs_state_subscribe(state, &subscriber);
}

/* What NVML said only after the peak about who was there before it is not the context's. What the
   others did in between is not known, so the uncertainty stays. */
static const struct vs_bands *settled(struct vs_bands *bands, const struct vs_device_state *device)
{
    int64_t taken = device->context_of_others - bands->context_of_others;
    int64_t *context = &bands->implicit[VS_IMPLICIT_CONTEXT];
    if (bands->device_known && taken > 0) {
        taken = taken < *context ? taken : *context;
        *context -= taken;
        bands->other_process += taken;
    }
    bands->context_of_others = device->context_of_others;
    return bands;
}

const struct vs_bands *vs_peaks_allocated(const struct vs_peaks *peaks,
                                          const struct vs_device_state *device)
{
    struct vs_device_peaks *kept = peaks->devices[device->device + VS_DEVICE_OFFSET];
    enum vs_layer top = vs_device_top_layer(device);
    if (kept == NULL || device->layers[top].peak_bytes == 0)
        return NULL;
    return settled(top == VS_LAYER_FRAMEWORK ? &kept->at_framework : &kept->at_driver, device);
}

const struct vs_bands *vs_peaks_used(const struct vs_peaks *peaks,
                                     const struct vs_device_state *device)
{
    struct vs_device_peaks *kept = peaks->devices[device->device + VS_DEVICE_OFFSET];
    return kept == NULL || !device->measured ? NULL : settled(&kept->at_used, device);
}

void vs_peaks_release(struct vs_peaks *peaks)
{
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        free(peaks->devices[i]);
}
