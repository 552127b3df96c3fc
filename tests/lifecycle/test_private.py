# SPDX-License-Identifier: Apache-2.0
"""Secrets of the environment and of the command line never reach a trace."""

from lab import check, equal, need, program, verify

SECRETS = {"HF_TOKEN": "hf_SECRETvalueOne1", "WANDB_API_KEY": "wandbSECRETvalueTwo2",
           "AWS_SECRET_ACCESS_KEY": "awsSECRETvalueThree3", "MY_PASSWORD": "pwSECRETvalueFour4",
           "CUDA_API_TOKEN": "cudaSECRETvalueFive5", "NCCL_AUTH_KEY": "ncclSECRETvalueSix6",
           "VRAMSCOPE_SECRET": "vsSECRETvalueSeven7", "UNRELATED": "plainSECRETvalueEight8"}
OF_ARGUMENTS = ["--api-key=argSECRETvalueNine9", "argSECRETvalueTen10"]
KNOWN = {"CUDA_LAUNCH_BLOCKING": "1", "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:77",
         "RANK": "3", "WORLD_SIZE": "8"}


def test_private_secrets(lab):
    done = lab.traced([program("ends"), "exit", *OF_ARGUMENTS], {**SECRETS, **KNOWN})
    equal("status", done.status, 7)
    trace = lab.one_trace()
    verify(trace)
    texts = [*SECRETS.values(), *OF_ARGUMENTS, "SECRETvalue", "HF_TOKEN", "WANDB_API_KEY"]
    found = lab.run([program("chunk-strings"), trace, *texts])
    check(found.status in (0, 1), f"chunk-strings: status {found.status}: {found.err}")
    equal("secrets in the trace", found.out.splitlines()[:-1], [])
    # The search itself must be able to find what is there.
    shown = lab.run([program("chunk-strings"), trace, "max_split_size_mb:77"])
    equal("the search finds an allow-listed setting", shown.status, 1)
