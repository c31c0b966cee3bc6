/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The steps against leases that are overdue or drift and processes without a lease; which units
 * are frozen. */

#include "daemon.h"

/* ---- overdue.c ---------------------------------------------------------------------- */

int overdue_start(struct daemon *daemon);

/* Makes a connection to gpuarb-enforce and ends it, so that it thaws what one before it froze and did not thaw,
 * because it was killed. */
void overdue_wake(struct daemon *daemon);

/* Carries out every enforcement step that is due. */
void overdue_enforce(struct daemon *daemon);

/* Freezes again what an earlier daemon had frozen: gpuarb-enforce thawed it when that daemon ended. */
void overdue_resume(struct daemon *daemon);

/* ---- frozen.c ----------------------------------------------------------------------- */

int frozen_start(struct daemon *daemon);

/* Asks gpuarb-enforce to freeze the unit of the bound processes of the lease, if the unit has no other
 * process. pidfd and start_time name a process in it that uses a GPU. -errno with a sentence. */
int frozen_freeze(struct daemon *daemon, const struct lease *lease, int pidfd, uint64_t start_time,
		  uid_t user, char *why, size_t size);

/* The answers of gpuarb-enforce, and its end: another one thaws what it had frozen. */
void frozen_answer_freeze(struct daemon *daemon, uint64_t lease, const char *unit, int r,
			  const char *sentence);
void frozen_answer_thaw(struct daemon *daemon, const char *unit, int r, const char *sentence);
void frozen_helper_lost(struct daemon *daemon);

/* Thaws each unit whose lease was removed or need not be frozen any more, or which has a process that
 * does not belong to the lease. */
void frozen_review(struct daemon *daemon);

void frozen_free(struct daemon *daemon);

/* A process that uses a GPU without a lease, until policy ends it. */
struct unleased {
	pid_t pid;
	uint64_t start_time;
	uid_t uid;
	unsigned gpu; /* index */
	char command[16];
	uint64_t due_usec; /* when it is ended, or was to be last */
	bool present;
	unsigned asked; /* questions to gpuarb-enforce without an answer yet */
};

/* ---- unmanaged.c -------------------------------------------------------------------- */

int unmanaged_start(struct daemon *daemon);
void unmanaged_stop(struct daemon *daemon);

/* After a scan, and before a request is read that might give one of its processes a lease: with unmanaged =
 * refuse, warns the processes without a lease, and ends those whose grace has passed. */
void unmanaged_review(struct daemon *daemon);

/* Warns and kills a process without a lease that has queues on CUs of a realtime lease. Processes of root and of exempt
 * users are spared. */
void unmanaged_kill_intruder(struct daemon *daemon, pid_t pid, uid_t uid, unsigned gpu);

/* gpuarb-enforce has warned the process, or has ended it. */
void unmanaged_answer(struct daemon *daemon, pid_t pid, bool ended, int r, const char *sentence);
