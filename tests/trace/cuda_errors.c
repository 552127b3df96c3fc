/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the names vramscope has for lines "CALL NUMBER" on stdin. */
#include <stdio.h>

#include "trace.h"

int main(void)
{
    char call[64], buffer[32];
    int result;
    while (scanf("%63s %d", call, &result) == 2)
        puts(vs_cuda_error_name(call, result, buffer, sizeof buffer));
    return 0;
}
