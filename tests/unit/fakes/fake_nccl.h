/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests set and read of fake_nccl.c. */
#ifndef VS_TESTS_FAKE_NCCL_H
#define VS_TESTS_FAKE_NCCL_H

struct fake_nccl {
    int result;       /* of the next calls */
    int group_result; /* of ncclGroupEnd */
    int error;        /* errno they leave behind */
    void *handle;     /* of the next communicator */
    int late;         /* it is written at the end of the group */
    void **late_out;
    unsigned calls, asked;      /* asked: for ranks and the like */
    char first_byte, last_byte; /* of the id that was passed */
};

#endif
