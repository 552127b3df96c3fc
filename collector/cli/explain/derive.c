/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a message's figures: who holds the rest of the device, what was missing. */
#include "verdict.h"

/* Whose memory the rest of the device is, as far as the message tells them apart. */
static void derive_outside(struct message *subject)
{
    const struct amount *n = subject->numbers;
    struct amount used = amount_rest(n[NUMBER_TOTAL], n[NUMBER_FREE]);
    struct amount reserved = n[NUMBER_RESERVED];
    if (!reserved.known)
        reserved = n[NUMBER_ALLOCATED];
    message_fill(subject, NUMBER_USED, used);
    if (n[NUMBER_PROCESS].known) {
        message_fill(subject, NUMBER_OTHER, amount_rest(used, n[NUMBER_PROCESS]));
        message_fill(subject, NUMBER_OUTSIDE, amount_rest(n[NUMBER_PROCESS], reserved));
    } else if (n[NUMBER_OTHER_LISTED].known) {
        message_fill(subject, NUMBER_OTHER, n[NUMBER_OTHER_LISTED]);
        message_fill(subject, NUMBER_OUTSIDE,
                     amount_rest(amount_rest(used, n[NUMBER_OTHER_LISTED]), reserved));
    } else {
        message_fill(subject, NUMBER_OUTSIDE_ANY, amount_rest(used, reserved));
    }
}

void verdict_derive(struct message *subject)
{
    const struct amount *n = subject->numbers;
    derive_outside(subject);
    message_fill(subject, NUMBER_PENDING, amount_rest(n[NUMBER_ACTIVE], n[NUMBER_ALLOCATED]));
    if (n[NUMBER_REQUESTED].bytes > n[NUMBER_FREE].bytes)
        message_fill(subject, NUMBER_SHORT, amount_rest(n[NUMBER_REQUESTED], n[NUMBER_FREE]));
}
