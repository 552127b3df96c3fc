/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every hooked entry point, one at a time, on two devices, and logs what
 * the simulated device says after each. Usage: calls LOG MODE [NAME…], MODE
 * driver, proc-address or runtime; the names are those that must be called at
 * least once: what the scenario leaves out is called with zeros at the end.
 */
#include <string.h>

#include "call_log.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    call_log_open(argv[1], CALL_LOG_DEVICES);
    if (strcmp(argv[2], "runtime") == 0)
        calls_runtime();
    else
        calls_driver(strcmp(argv[2], "proc-address") == 0);
    call_log_touch_rest(argc - 3, argv + 3);
    call_log_close();
    return 0;
}
