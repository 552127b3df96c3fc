/* SPDX-License-Identifier: Apache-2.0 */
/* Two libraries alike to the byte, but for the size of a frame: one takes the other's place. */
int through(int (*function)(void *), void *context);

#ifdef SECOND
#define FRAME_BYTES 1000
#else
#define FRAME_BYTES 400
#endif

__attribute__((visibility("default"))) int through(int (*function)(void *), void *context)
{
    volatile char frame[FRAME_BYTES];
    frame[0] = 1;
    return function(context) + frame[0];
}
