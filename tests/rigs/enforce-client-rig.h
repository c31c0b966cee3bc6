/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* gpuarbd's side of gpuarb-enforce, and what it heard. */

#include <string.h>
#include <stdbool.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "check-cond.h"
#include "helpers/enforce-protocol.h"
#include "enforce-rig.h"
#include "helpers/clients.h"
#include "sys/process.h"

struct stage {
	struct helper helper;
	sd_event *event;
	struct asker *enforce;
	char why[300];

	/* Answers, in the order in which they came. */
	struct heard {
		uint64_t tag;
		int r;
		char sentence[ENFORCE_TEXT_MAX];
	} heard[600];
	unsigned n;
	unsigned lost;                     /* connections that have ended */
	void (*then)(struct stage *stage); /* from within an answer */
};

asker_done_t on_done;
asker_lost_t on_lost;

/* A socket that listens; who answers is up to the test. */
struct stage *client_stage_new(uint64_t patience_usec);

void client_stage_end(struct stage *stage);

void run_until(struct stage *stage, unsigned n);

void run_all_there_is(struct stage *stage);

int freeze(struct stage *stage, const char *unit, uint64_t tag);

int thaw(struct stage *stage, const char *unit, uint64_t tag);

int kill_it(struct stage *stage, int pidfd, uint64_t tag);

bool heard(const struct stage *stage, unsigned i, uint64_t tag, int r, const char *words);

bool client_says(const struct stage *stage, const char *words);

/* ---- a helper of the test's own -------------------------------------------------------------- */

int accept_one(const struct stage *stage);

/* Sends the answer "ok" or "error ERRNO SENTENCE", or the bytes of another text. */
void client_answer(int fd, const char *text);
