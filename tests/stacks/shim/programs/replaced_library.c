/* SPDX-License-Identifier: Apache-2.0 */
/* One of several libraries that differ in nothing but their name. */
#include <stdint.h>

uint64_t call_through(uint64_t (*call)(void *), void *context);
uint64_t call_through(uint64_t (*call)(void *), void *context)
{
    return call(context) + 1;
}
