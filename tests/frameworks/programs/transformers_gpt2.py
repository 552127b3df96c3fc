# SPDX-License-Identifier: Apache-2.0
"""transformers: a tiny GPT-2 made from a config, three steps of its Trainer, generation."""
import books
import torch
import transformers

VOCABULARY, LENGTH, EXAMPLES = 512, 64, 24


class Tokens(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randint(0, VOCABULARY, (EXAMPLES, LENGTH))

    def __len__(self):
        return EXAMPLES

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


class Watch(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        books.torch_moment(f"step {state.global_step}")


def main():
    transformers.set_seed(0)
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=128,
                                     n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    options = transformers.TrainingArguments(
        output_dir="out", max_steps=3, per_device_train_batch_size=8, report_to=[],
        save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=0)
    trainer = transformers.Trainer(model=model, args=options, train_dataset=Tokens(),
                                   callbacks=[Watch()])
    trainer.remove_callback(transformers.PrinterCallback)  # it prints how long each thing took
    steps = trainer.train().global_step
    books.torch_moment("trained")
    print("steps", steps, "on", next(model.parameters()).device)
    model.eval()
    start = torch.ones(2, 5, dtype=torch.long, device="cuda")
    with torch.no_grad():
        print("logits", tuple(model(start).logits.shape))
    books.torch_moment("used")


main()
