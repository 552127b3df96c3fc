/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may stand where somebody types: `vramscope --complete WORD…`, which the shells' completions
 * in scripts/completion ask. The last WORD is the one that is being typed, perhaps empty. A line
 * is a word that may stand there and, after a tab, what it means; or one of
 *   :traces  :files  :folders  :command
 * for what the shell knows better: file names, and the command line that starts here.
 */
#ifndef VS_CLI_COMPLETE_H
#define VS_CLI_COMPLETE_H

#include <stdbool.h>

#include "options.h"

/* `vramscope --complete COMMAND WORD…` reaches a command as its arguments --complete WORD…. */
#define COMPLETE_OPTION "--complete"

bool complete_asked(int argc, char **argv);
/* Answers for the words after a command's name. Returns CMD_DONE. */
int complete_words(int count, char **words, const struct command_words *known);
/* Prints `word` when it begins with `typed`; `means` (of `bytes`) may be NULL. */
void complete_offer(const char *typed, const char *word, const char *means);

#endif
