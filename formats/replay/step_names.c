/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the name of a phase, range or mark says of its being a step: told by whole words, as
 * people and frameworks write them (train_step, TrainStep, "step 12", iteration_3). A "writer" has
 * "iter" in it and a BatchNorm2d a batch; operators (aten::batch_norm) name themselves.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "growth.h"

enum { WORD_ROOM = 32 };

struct word {
    char text[WORD_ROOM]; /* in lower case, cut */
    size_t length;
};

/* Letters of other scripts are letters. */
static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool is_upper(char c)
{
    return isupper((unsigned char)c) != 0;
}

/* The second begins a word: of "trainStep", of "NCCLStep". */
static bool is_hump(const char *second)
{
    char first = second[-1], third = second[1];
    return is_upper(*second) && (!is_upper(first) || (is_letter(third) && !is_upper(third)));
}

/* The next word of a name, which moves on. False behind the last. */
static bool next_word(const char **name, struct word *word)
{
    const char *at = *name;
    *word = (struct word){.length = 0};
    while (*at != '\0' && !is_letter(*at))
        at++;
    for (const char *first = at; is_letter(*at) && (at == first || !is_hump(at)); at++)
        if (word->length + 1 < WORD_ROOM)
            word->text[word->length++] = (char)tolower((unsigned char)*at);
    *name = at;
    return word->length != 0;
}

static bool is_word(const struct word *word, const char *text)
{
    return strcmp(word->text, text) == 0;
}

/* "step" and "timestep", not "steps" or "stepper". */
static bool ends_with(const struct word *word, const char *text)
{
    size_t length = strlen(text);
    return word->length >= length && strcmp(word->text + word->length - length, text) == 0;
}

static bool is_of_a_batch(const char *rest)
{
    struct word next;
    return !next_word(&rest, &next) || !(is_word(&next, "norm") || is_word(&next, "size"));
}

enum vs_name_says vs_step_name_says(const char *name)
{
    enum vs_name_says says = VS_SAYS_NOTHING;
    struct word word;
    if (strstr(name, "::") != NULL)
        return VS_SAYS_NOTHING;
    while (next_word(&name, &word)) {
        if (ends_with(&word, "step") || is_word(&word, "iter") || is_word(&word, "iteration"))
            return VS_SAYS_STEP;
        if ((ends_with(&word, "batch") && is_of_a_batch(name)) || is_word(&word, "forward"))
            says = VS_SAYS_PASS;
    }
    return says;
}
