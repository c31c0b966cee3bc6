/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which GPUs are drained. One that is not here stays drained: who took it out of service,
 * and out of the machine, does not want it back in service because a daemon was restarted. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/state/state-internal.h"

#define DRAINED "drained"
#define TEXT_SIZE (2 * REQUEST_WANTS * (GPU_NAME_MAX + 1)) /* those here, and those away */

/* By its name alone: ledger_find_gpu() would take a number as well. */
static const struct gpu *find(const struct arbiter *arbiter, const char *name)
{
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (strcmp(arbiter->gpus[i].info.name, name) == 0)
			return &arbiter->gpus[i];
	return NULL;
}

int state_save_drained(struct state *state, const struct arbiter *arbiter, uint64_t drained)
{
	char text[TEXT_SIZE] = "", *end = text;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (drained & UINT64_C(1) << i)
			end += sprintf(end, "%s\n", arbiter->gpus[i].info.name);
	for (size_t i = 0; i < state->n_away; i++)
		if (!find(arbiter, state->away[i]))
			end += sprintf(end, "%s\n", state->away[i]);

	if (end > text)
		return state_put_file(state->runtime, DRAINED, text);
	if (unlinkat(state->runtime, DRAINED, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static bool is_name(const char *line)
{
	size_t length = strlen(line);

	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)line[i]))
			return false;
	return length > 0 && length < GPU_NAME_MAX;
}

static void drain(struct state *state, struct arbiter *arbiter, const char *line, unsigned number,
		  struct diagnostics *diagnostics)
{
	if (!is_name(line)) {
		diagnostics_add(diagnostics, false, "%s/" DRAINED ":%u: not the name of a GPU",
				state->path, number);
	} else if (find(arbiter, line)) {
		arbiter_drain(arbiter, line, true);
	} else if (state->n_away < REQUEST_WANTS) {
		strcpy(state->away[state->n_away++], line);
		diagnostics_add(diagnostics, false,
				"%s is drained and not here: it stays drained when it "
				"comes back",
				line);
	} else {
		diagnostics_add(diagnostics, false, "%s/" DRAINED ":%u: %s is one too many",
				state->path, number, line);
	}
}

void state_load_drained(struct state *state, struct arbiter *arbiter,
			struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *text = NULL;
	unsigned number = 0;
	size_t length;
	int r;

	state->n_away = 0;
	r = state_read_file(state->runtime, DRAINED, &text, &length);
	if (r == -EINVAL || (r == 0 && strlen(text) != length)) {
		state_move_aside(state, state->runtime, "", DRAINED, "not a list of GPUs",
				 diagnostics);
		return;
	}
	if (r < 0) {
		if (r != -ENOENT)
			diagnostics_add(diagnostics, true, "%s/" DRAINED ": cannot be read now: %s",
					state->path, strerror(-r));
		return;
	}
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (rest || line[0]) /* behind the last newline there is no line */
			drain(state, arbiter, line, ++number, diagnostics);
}
