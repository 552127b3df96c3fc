# SPDX-License-Identifier: Apache-2.0
"""transformers with a tiny configuration: a GPT-2 trained by its Trainer, with an evaluation now
and then, and answers with its cache of keys; with "leak" behind the name each keeps a block of
512 bytes of every step, at the line marked LEAK NAME.

usage: transformers_tiny.py "NAME [leak]"
Prints a line of JSON: its process id, the case, its exit status.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import transformers

torch.set_num_threads(1)
VOCABULARY, LENGTH, STEPS = 128, 16, 40
leaking = False
kept = []


def leak():
    if leaking:
        kept.append(torch.empty(100, device="cuda"))


class Tokens(torch.utils.data.Dataset):
    def __init__(self, examples):
        self.rows = torch.randint(0, VOCABULARY, (examples, LENGTH))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


class Watch(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        leak()  # LEAK trainer


def tiny():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0))


def trainer():
    options = transformers.TrainingArguments(
        output_dir="out", max_steps=STEPS, per_device_train_batch_size=4, eval_strategy="steps",
        eval_steps=10, per_device_eval_batch_size=4, report_to=[], save_strategy="no",
        logging_strategy="no", disable_tqdm=True, seed=0)
    trains = transformers.Trainer(model=tiny(), args=options, train_dataset=Tokens(4 * STEPS),
                                  eval_dataset=Tokens(20), callbacks=[Watch()])
    trains.remove_callback(transformers.PrinterCallback)
    trains.train()


def answers():
    """Token by token, with a cache of keys for each answer. The length is bounded here: generate()
    asks the device whether it is done, and a simulated one computes nothing."""
    model = tiny().cuda().eval()
    with torch.no_grad():
        for _ in range(STEPS):
            tokens, cache = torch.ones(1, 4, dtype=torch.long, device="cuda"), None
            for _ in range(6):
                out = model(tokens, past_key_values=cache, use_cache=True)
                tokens, cache = out.logits[:, -1:].argmax(-1), out.past_key_values
            leak()  # LEAK answers


def main():
    global leaking
    name, *rest = sys.argv[1].split()
    leaking = rest == ["leak"]
    transformers.set_seed(0)
    {"trainer": trainer, "answers": answers}[name]()
    torch.cuda.synchronize()
    print(json.dumps({"pid": os.getpid(), "case": sys.argv[1], "status": 0}), flush=True)


main()
