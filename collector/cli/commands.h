/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sub-commands of vramscope, one file each. A command gets its own argument
 * vector (argv[0] is its name) and returns the exit status: 0 done, 1 could not
 * or found a fault, 2 usage. It prints results on stdout and one line about what
 * went wrong on stderr.
 */
#ifndef VS_CLI_COMMANDS_H
#define VS_CLI_COMMANDS_H

enum cmd_status { CMD_DONE = 0, CMD_FAILED = 1, CMD_USAGE = 2 };

int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_pack(int argc, char **argv);
int cmd_redact(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_env(int argc, char **argv);

#endif
