/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/output/print.h"
#include "util/number.h"

/* A gpuarbd that starts needs less; then systemd is asked whether it has failed. */
#define START_USEC UINT64_C(1500000)
#define START_ROUNDS 16U /* 25 s with a slow start, as a call */

/* Without this, a call waits until the bus gives up: systemd starts a gpuarbd that fails again and
 * again, so the bus does not learn of the failure. */
static int await_daemon(struct command *command)
{
	char why[1024];
	int r = -ETIMEDOUT;

	for (unsigned i = 0; r == -ETIMEDOUT && i < START_ROUNDS; i++) {
		r = gpuarb_start(command->gpuarb, START_USEC);
		if (r == -ETIMEDOUT && command->service_failed &&
		    command->service_failed(false, why, sizeof(why)))
			return fail(command, EXIT_ABSENT, "gpuarbd failed to start: %s", why);
	}
	if (r == -ECONNREFUSED && command->service_failed &&
	    strstr(gpuarb_last_error_name(command->gpuarb), ".Spawn.") &&
	    command->service_failed(true, why, sizeof(why)))
		return fail(command, EXIT_ABSENT, "gpuarbd failed to start: %s\n%s",
			    gpuarb_last_error(command->gpuarb), why);
	if (r == -ETIMEDOUT)
		return fail(command, EXIT_ABSENT, "%s", gpuarb_last_error(command->gpuarb));
	/* Any other failure is for the call to report. */
	return r == -ECONNREFUSED ? fail_asked(command, r) : EXIT_OK;
}

int session_open(struct command *command)
{
	int r;

	if (command->gpuarb)
		return EXIT_OK;
	r = gpuarb_open(&command->gpuarb);
	return r < 0 ? fail_asked(command, r) : await_daemon(command);
}

int session_refresh(struct command *command)
{
	struct gpuarb_view *view = NULL;
	int r = gpuarb_look(command->gpuarb, &view);

	if (r < 0)
		return r;
	gpuarb_view_free(command->view);
	command->view = view;
	command->n_gpus = gpuarb_view_gpus(view, &command->gpus);
	command->n_leases = gpuarb_view_leases(view, &command->leases);
	return 0;
}

int session_snapshot(struct command *command)
{
	int r = session_open(command);

	if (r != EXIT_OK)
		return r;
	r = session_refresh(command);
	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}

/* An older daemon does not know the call, and its snapshot is as good without. */
int session_observe(struct command *command)
{
	int r = session_open(command);

	if (r != EXIT_OK)
		return r;
	(void)gpuarb_observe_clients(command->gpuarb);
	return session_snapshot(command);
}

int session_administer(struct command *command)
{
	int r = session_open(command);

	if (r == EXIT_OK)
		gpuarb_set_interactive(command->gpuarb, isatty(STDIN_FILENO));
	return r;
}

void session_done(struct command *command)
{
	gpuarb_view_free(command->view);
	gpuarb_close(command->gpuarb);
	free(command->visible);
	command->visible = NULL;
	command->view = NULL;
	command->gpuarb = NULL;
}

int session_end(struct command *command, int code)
{
	session_done(command);
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_OK)
		return fail(command, EXIT_FAILED, "standard output: %s", strerror(errno));
	return code;
}

int session_gpu(const struct command *command, const char *gpu, const struct gpuarb_gpu **ret)
{
	size_t n = command->n_gpus;
	uint64_t index = UINT64_MAX;

	(void)number_parse(gpu, 0, n, &index);
	for (size_t i = 0; i < n; i++) {
		if (i == index || strcmp(command->gpus[i].name, gpu) == 0) {
			*ret = &command->gpus[i];
			return EXIT_OK;
		}
	}
	return fail_gpu(command, gpu);
}

const struct gpuarb_lease_info *session_find(const struct command *command, uint64_t id)
{
	for (size_t i = 0; i < command->n_leases; i++)
		if (command->leases[i].id == id)
			return &command->leases[i];
	return NULL;
}

int session_lease(const struct command *command, uint64_t id, const struct gpuarb_lease_info **ret)
{
	const struct gpuarb_lease_info *lease = session_find(command, id);

	if (!lease)
		return fail(command, EXIT_FAILED,
			    "no lease %" PRIu64 ": it may have ended; gpuarbctl list prints all "
			    "leases",
			    id);
	*ret = lease;
	return EXIT_OK;
}

/* Nobody knows which lease is meant: any user can give a lease any name. */
static int refuse_name(const struct command *command, const char *name)
{
	char all[512] = "", user[PRINT_USER];
	size_t used = 0;

	for (size_t i = 0; i < command->n_leases && used < sizeof(all); i++) {
		const struct gpuarb_lease_info *lease = &command->leases[i];

		if (strcmp(lease->name, name) != 0)
			continue;
		print_user(lease->owner_uid, user);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%" PRIu64 " of %s",
					 used ? ", " : "", lease->id, user);
	}
	return fail(command, EXIT_USAGE, "several leases have the name '%.80s': use a number: %s",
		    name, all);
}

int session_choose(struct command *command, const char *word)
{
	const struct gpuarb_lease_info *named = NULL;
	int r = EXIT_OK;

	if (number_parse(word, 1, UINT64_MAX, &command->id) >= 0)
		return EXIT_OK;
	if (!*word || word[strspn(word, "0123456789")] == '\0')
		return fail(command, EXIT_USAGE,
			    "invalid lease '%.80s': use a number or name of gpuarbctl list", word);
	if (!command->view)
		r = session_snapshot(command);
	for (size_t i = 0; r == EXIT_OK && i < command->n_leases; i++) {
		if (strcmp(command->leases[i].name, word) != 0)
			continue;
		if (named)
			return refuse_name(command, word);
		named = &command->leases[i];
	}
	if (r == EXIT_OK && !named)
		return fail(command, EXIT_FAILED,
			    "no lease '%.80s': it may have ended; gpuarbctl list prints all leases",
			    word);
	if (named)
		command->id = named->id;
	return r;
}

pid_t session_screen(struct command *command, bool pages)
{
	command->colour = print_may_colour(stdout);
	command->width = command->wide ? 0 : print_width(stdout);
	return pages && !command->json && !command->no_pager && !command->svg && !command->watch &&
			       isatty(STDOUT_FILENO)
		       ? pager_start()
		       : 0;
}
