/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The connection of a command to the daemon, and its last snapshot. The functions print what failed
 * and return the exit code; 0 is success. */

#include <sys/types.h>

#include "client/options/options.h"

/* Each opens the connection, if it is not open. */
int session_open(struct command *command);
int session_snapshot(struct command *command);
int session_observe(struct command *command);    /* a snapshot, with the processes that draw now */
int session_administer(struct command *command); /* polkit may ask for a password on a terminal */

/* Takes a snapshot. Prints nothing; negative errno: the last snapshot stays. */
int session_refresh(struct command *command);
void session_done(struct command *command);

/* The same, and flushes standard output: its failure is a failure of the program. Returns the exit code. */
int session_end(struct command *command, int code);

/* Fits the output to standard output: colours and width. Starts a pager if `pages`, and standard output is a terminal
 * that shows text. Returns the pid of the pager, for pager_finish(); 0: none. */
pid_t session_screen(struct command *command, bool pages);

/* Sets command->id to the lease that the word stands for: its number, or a name that no other lease has. */
int session_choose(struct command *command, const char *word);

/* Finds a GPU of the snapshot by name or index, a lease by number. */
int session_gpu(const struct command *command, const char *gpu, const struct gpuarb_gpu **ret);
int session_lease(const struct command *command, uint64_t id, const struct gpuarb_lease_info **ret);

/* NULL: the snapshot has no lease of that number. */
const struct gpuarb_lease_info *session_find(const struct command *command, uint64_t id);
