/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VRAMSCOPE_* → struct shim_config, once, before the program's main. A wrong
 * value is one warning that names the variable and what it accepts; then the
 * default holds. Variables that only the collector uses are checked here too,
 * because the collector has no stderr.
 */
#include "config.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "stacks.h"
#include "sys.h"

#define PREFIX "VRAMSCOPE_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)
#define KIB 1024ULL

extern char **environ;

struct shim_config shim_config;

/* Parsers: true and the value stored, or false. A NULL target only checks. */
struct variable {
    const char *name; /* without the prefix */
    bool (*parse)(const struct variable *variable, const char *value);
    const char *accepted; /* for the warning; also the words of parse_word, blank-separated */
    uint64_t lowest, highest;
    void *target;
};

/* ---- values ---------------------------------------------------------------- */

static bool parse_number(const char **text, uint64_t *number)
{
    const char *c = *text;
    uint64_t result = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (__builtin_mul_overflow(result, 10U, &result) ||
            __builtin_add_overflow(result, (uint64_t)(*c - '0'), &result)) {
            return false;
        }
    }
    bool any = c != *text;
    *text = c;
    *number = result;
    return any;
}

static bool parse_count(const struct variable *variable, const char *value)
{
    uint64_t number;
    if (!parse_number(&value, &number) || *value != '\0' || number < variable->lowest ||
        number > variable->highest) {
        return false;
    }
    if (variable->target != NULL) {
        *(uint32_t *)variable->target = (uint32_t)number;
    }
    return true;
}

/* 16M, 16MiB, 16MB, 65536: powers of 1024. */
static bool parse_size(const struct variable *variable, const char *value)
{
    static const char units[] = "KMGT";
    uint64_t number;
    if (!parse_number(&value, &number)) {
        return false;
    }
    const char *unit = *value != '\0' ? strchr(units, *value & ~0x20) : NULL;
    if (unit != NULL) {
        uint64_t factor = KIB << (10 * (unit - units));
        if (__builtin_mul_overflow(number, factor, &number)) {
            return false;
        }
        value++;
    }
    if (*value != '\0' && strcmp(value, "B") != 0 && (unit == NULL || strcmp(value, "iB") != 0)) {
        return false;
    }
    if (number < variable->lowest || number > variable->highest) {
        return false;
    }
    if (variable->target != NULL) {
        *(uint64_t *)variable->target = number;
    }
    return true;
}

/* The place of the word in `accepted` ("a b c") becomes the value. */
static bool parse_word(const struct variable *variable, const char *value)
{
    size_t length = strlen(value);
    const char *word = variable->accepted;
    for (int place = 0; length > 0; place++) {
        size_t word_length = strcspn(word, " ");
        if (word_length == length && memcmp(word, value, length) == 0) {
            if (variable->target != NULL) {
                *(int *)variable->target = place;
            }
            return true;
        }
        if (word[word_length] == '\0') {
            break;
        }
        word += word_length + 1;
    }
    return false;
}

static bool parse_switch(const struct variable *variable, const char *value)
{
    if (strcmp(value, "1") != 0 && strcmp(value, "0") != 0) {
        return false;
    }
    if (variable->target != NULL) {
        *(bool *)variable->target = value[0] == '1';
    }
    return true;
}

static bool parse_on_off(const struct variable *variable, const char *value)
{
    bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0) {
        return false;
    }
    *(bool *)variable->target = on;
    return true;
}

static bool parse_stacks(const struct variable *variable, const char *value)
{
    bool native = false;
    bool python = false;
    (void)variable;
    if (strcmp(value, "none") != 0) {
        while (true) {
            size_t length = strcspn(value, ",");
            if (length == 6 && memcmp(value, "native", 6) == 0) {
                native = true;
            } else if (length == 6 && memcmp(value, "python", 6) == 0) {
                python = true;
            } else {
                return false;
            }
            if (value[length] == '\0') {
                break;
            }
            value += length + 1;
        }
    }
    shim_config.want_native = native;
    shim_config.want_python = python;
    return true;
}

/* A path or a pattern; made absolute later. */
static bool parse_path(const struct variable *variable, const char *value)
{
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof(shim_config.output)) {
        return false;
    }
    memcpy(variable->target, value, length + 1);
    return true;
}

/* ---- VRAMSCOPE_ONLY -------------------------------------------------------- */

/* The file's own name; the title a program gives itself does not count. */
static bool program_name(char *name, size_t size)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    if (strlen(base) >= size) {
        return false;
    }
    memcpy(name, base, strlen(base) + 1);
    return true;
}

/* Disables us when no glob of the list ("python*,train") matches. */
static bool parse_only(const struct variable *variable, const char *value)
{
    char name[256];
    char glob[256];
    (void)variable;
    if (value[0] == '\0') {
        return false;
    }
    if (!program_name(name, sizeof(name))) {
        return true;
    }
    bool matched = false;
    while (*value != '\0') {
        size_t length = strcspn(value, ",: ");
        if (length > 0 && length < sizeof(glob)) {
            memcpy(glob, value, length);
            glob[length] = '\0';
            matched = matched || fnmatch(glob, name, 0) == 0;
        }
        value += length + (value[length] != '\0');
    }
    shim_config.disabled = shim_config.disabled || !matched;
    return true;
}

static bool parse_disable(const struct variable *variable, const char *value)
{
    bool disable = false;
    struct variable plain = *variable;
    plain.target = &disable;
    if (!parse_switch(&plain, value)) {
        return false;
    }
    shim_config.disabled = shim_config.disabled || disable;
    return true;
}

/* ---- the table ------------------------------------------------------------- */

/* clang-format off */
static const struct variable variables[] = {
    /* First, so that it decides about the warnings of the others. */
    {"LOG", parse_word, "error warn info debug", 0, 0, &shim_config.log_level},
    {"DISABLE", parse_disable, "0 or 1", 0, 0, NULL},
    {"ONLY", parse_only, "a list of globs for the executable's name, such as python*,train", 0, 0, NULL},
    {"OUTPUT", parse_path, "a file name pattern or a folder", 0, 0, shim_config.output},
    {"COLLECTOR", parse_path, "the path of vramscope-collector", 0, 0, shim_config.collector},
    {"STACKS", parse_stacks, "native,python or native or python or none", 0, 0, NULL},
    {"DEPTH", parse_count, "a number from 1 to 256", 1, STACKS_DEPTH_MAX, &shim_config.depth},
    {"RING", parse_size, "a size from 64K to 16G, such as 16M", 64 * KIB, 16 * KIB * KIB * KIB, &shim_config.ring_bytes},
    {"WHEN_FULL", parse_word, "wait drop", 0, 0, &shim_config.when_full},
    {"SAMPLE", parse_word, "auto always never", 0, 0, &shim_config.sampling},
    {"RING_AT", parse_word, "memory file", 0, 0, &shim_config.ring_at},
    {"NVTX", parse_on_off, "on or off", 0, 0, &shim_config.nvtx},
    {"EXIT_WAIT_MS", parse_count, "milliseconds from 0 to 60000", 0, 60000, &shim_config.exit_wait_ms},
    {"FLUSH_MS", parse_count, "milliseconds from 1 to 60000", 1, 60000, NULL},
    {"TIME_NS", parse_count, "nanoseconds from 1 to 1000000000", 1, 1000000000, NULL},
    {"KEEP", parse_size, "a size of at least 1M, such as 256M", KIB * KIB, UINT64_MAX, NULL},
    {"PRIVATE", parse_switch, "0 or 1", 0, 0, NULL},
};
/* clang-format on */
#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static uint32_t refused; /* bit i: variables[i] had a wrong value */
_Static_assert(VARIABLES <= 32, "one bit each");

/* Index in the table of "VRAMSCOPE_NAME=…", -1 for anything else. */
static int variable_index(const char *assignment)
{
    if (strncmp(assignment, PREFIX, PREFIX_LENGTH) != 0) {
        return -1;
    }
    const char *name = assignment + PREFIX_LENGTH;
    size_t length = strcspn(name, "=");
    for (size_t i = 0; name[length] == '=' && i < VARIABLES; i++) {
        if (strlen(variables[i].name) == length && memcmp(variables[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool config_refused(const char *assignment)
{
    int index = variable_index(assignment);
    return index >= 0 && (refused >> index & 1U) != 0;
}

static void read_environment(void)
{
    const char *values[VARIABLES] = {NULL};
    bool any = false;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        int index = variable_index(*entry);
        if (index >= 0 && values[index] == NULL) {
            values[index] = strchr(*entry, '=') + 1;
            any = true;
        }
    }
    for (size_t i = 0; any && i < VARIABLES; i++) {
        if (values[i] != NULL && !variables[i].parse(&variables[i], values[i])) {
            refused |= 1U << i;
        }
    }
}

static void warn_about_refused(void)
{
    for (size_t i = 0; refused != 0 && i < VARIABLES; i++) {
        if ((refused >> i & 1U) != 0) {
            shim_log(1, PREFIX "%s has a wrong value, the default is used; it takes: %s",
                     variables[i].name, variables[i].accepted);
        }
    }
}

/* Relative to where the program starts, not to where it goes later. */
static void make_output_absolute(void)
{
    char given[sizeof(shim_config.output)];
    if (shim_config.output[0] == '/') {
        return;
    }
    size_t given_bytes = strlen(shim_config.output) + 1;
    memcpy(given, shim_config.output, given_bytes);
    if (sys_call2(SYS_getcwd, shim_config.output, sizeof(given)) < 0 ||
        shim_config.output[0] != '/') {
        shim_config.output[0] = '\0';
    }
    size_t length = strlen(shim_config.output);
    if (length + 1 + given_bytes > sizeof(given)) {
        shim_log(1, PREFIX "OUTPUT is too long after the working directory: /tmp/ is used");
        memcpy(shim_config.output, "/tmp/", sizeof("/tmp/"));
        return;
    }
    shim_config.output[length] = '/';
    memcpy(shim_config.output + length + 1, given, given_bytes);
}

void config_load(void)
{
    shim_config.log_level = 1;
    shim_config.ring_bytes = 16 * KIB * KIB;
    shim_config.exit_wait_ms = 500;
    shim_config.want_native = true;
    shim_config.want_python = true;
    shim_config.nvtx = true;
    shim_config.depth = 64;
    shim_config.disabled = getauxval(AT_SECURE) != 0;
    if (shim_config.disabled) {
        return;
    }
    read_environment();
    if (!shim_config.disabled) {
        warn_about_refused();
        make_output_absolute();
    }
}

/* ---- the collector beside us ----------------------------------------------- */

void config_find_collector(void)
{
    static const char *const places[] = {"../bin/", "../../bin/", "../libexec/", ""};
    static const char name[] = "vramscope-collector";
    if (shim_config.collector[0] != '\0') {
        return;
    }
    const char *path = modules_path(modules_find(&shim_config));
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash == NULL) {
        return;
    }
    int folder = (int)(slash - path) + 1;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(shim_config.collector, sizeof(shim_config.collector), "%.*s%s%s",
                              folder, path, places[i], name);
        if (length > 0 && (size_t)length < sizeof(shim_config.collector) &&
            access(shim_config.collector, X_OK) == 0) {
            return;
        }
    }
}

/* ---- what we say ----------------------------------------------------------- */

void shim_log(int level, const char *format, ...)
{
    static const char prefix[] = "vramscope: ";
    char line[1024];
    int saved_errno = errno;
    if (level > shim_config.log_level) {
        return;
    }
    memcpy(line, prefix, sizeof(prefix));
    size_t used = sizeof(prefix) - 1;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
    va_end(arguments);
    if (length > 0) {
        used += (size_t)length < sizeof(line) - used - 1 ? (size_t)length : sizeof(line) - used - 2;
        line[used++] = '\n';
        /* One write, so that lines of several processes do not mix. */
        sys_call3(SYS_write, 2, line, used);
    }
    errno = saved_errno;
}
