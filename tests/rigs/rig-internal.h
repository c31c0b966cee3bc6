/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the rig share. */

#include "rig.h"

/* In a child. */
void rig_die_with_parent(pid_t parent);

/* In a child: the user of the rig, if it has one. Forgets what rig_die_with_parent() did. */
void rig_become_user(const struct rig *rig);

/* The daemon's binary. */
const char *rig_daemon(const struct rig *rig);

/* In a child. program: what comes before the daemon's own arguments, NULL at the end. */
_Noreturn void rig_execute(const struct rig *rig, const char *hardware,
			   const char *const program[]);

/* Waits until the process has ended; its wait status. */
int rig_await_end(pid_t pid);

void rig_stop_manager(struct rig *rig);
