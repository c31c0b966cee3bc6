/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Looks up the names of the configuration in a child: for a reload, and from time to time while a name is
 * unknown, as at boot before the network is there. The name service can take minutes, and the event loop
 * does not wait for it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "protocol/protocol.h"
#include "sys/process.h"
#include "util/clock.h"
#include "util/fd.h"

struct resolve {
	sd_event_source *io; /* of a child; NULL: no look-up is under way */
	sd_event_source *timer;
	char *text; /* from it, so far */
	size_t size;
	bool retry;          /* of those alone that did not exist */
	bool hangup;         /* SIGHUP waits for it */
	uint64_t again_usec; /* the time until the next one */
	enum { RESOLVE_NONE, RESOLVE_DONE, RESOLVE_FAILED } state; /* for one reload */
	struct names names;                                        /* RESOLVE_DONE */
};

#define END "."
#define TEXT_MAX (8U << 20)
#define PATIENCE_USEC UINT64_C(20000000) /* less than a client waits for Reload */
#define AGAIN_USEC \
	UINT64_C(1000000) /* until names are looked up again: this, twice as long, and so on … */
#define AGAIN_MAX_USEC UINT64_C(300000000)

static bool any_unresolved(struct settings *settings)
{
	const struct id_list *list;
	bool group;

	for (size_t i = 0; (list = settings_list(settings, i, &group)); i++)
		if (list->unresolved)
			return true;
	return false;
}

/* ---- the child ------------------------------------------------------------------------------ */

static void look_up_unresolved(struct settings *settings, struct names *names)
{
	const struct id_list *list;
	char name[256];
	unsigned id;
	bool group;

	for (size_t i = 0; (list = settings_list(settings, i, &group)); i++)
		for (const char *rest = list->unresolved; id_list_next_unresolved(&rest, name);)
			names_find(names, name, group, &id);
}

/* For a reload it reads the configuration as that does, for the names in it. */
__attribute__((noreturn)) static void look_up(struct daemon *daemon, int to)
{
	struct diagnostics diagnostics = { 0 };
	struct names names = { .asks = true };
	struct settings *settings = NULL;
	char *text = NULL;
	sigset_t none;

	dup2(to, 3);
	close_range(4, UINT32_MAX,
		    0); /* no lease and no connection of gpuarbd stays open by this */
	alarm(PATIENCE_USEC / 1000000);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (daemon->resolve->retry)
		look_up_unresolved(daemon->arbiter->settings, &names);
	else
		reload_read(daemon, &names, &settings, &diagnostics);
	if (names_format(&names, &text) >= 0) /* and the mark that it is all of it */
		dprintf(3, "%s" END, text);
	_exit(0);
}

/* ---- reloads ---------------------------------------------------------------------------------- */

int resolve_reload(struct daemon *daemon, struct diagnostics *diagnostics)
{
	bool done = daemon->resolve->state == RESOLVE_DONE;
	int r = -EINVAL;

	daemon->resolve->state = RESOLVE_NONE;
	if (done)
		r = reload_settings(daemon, &daemon->resolve->names, diagnostics);
	else
		diagnostics_add(diagnostics, true,
				"the users and groups of the configuration cannot be looked up: "
				"examine the name service (getent passwd), and reload again");
	daemon->resolve->again_usec = 0;
	resolve_review(daemon);
	return r;
}

void resolve_hangup(struct daemon *daemon)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   (unsigned long long)clock_usec(CLOCK_MONOTONIC));
	daemon->resolve->hangup = resolve_names(daemon);
	if (daemon->resolve->hangup)
		return;
	if (resolve_reload(daemon, &diagnostics) < 0)
		log_error("the configuration has errors: the one in force stays");
	log_diagnostics(&diagnostics);
	sd_notify(false, "READY=1");
}

/* ---- the event loop -------------------------------------------------------------------------- */

static void end(struct daemon *daemon)
{
	if (daemon->resolve->io)
		close(sd_event_source_get_io_fd(daemon->resolve->io));
	daemon->resolve->io = sd_event_source_disable_unref(daemon->resolve->io);
	free(daemon->resolve->text);
	daemon->resolve->text = NULL;
	daemon->resolve->size = 0;
}

/* Puts into force which names exist now. The files may have changed: they wait for a reload. */
static void take_existing(struct daemon *daemon, const struct names *names)
{
	struct id_list *list;
	bool group, any = false;

	for (size_t i = 0; (list = settings_list(daemon->arbiter->settings, i, &group)); i++)
		for (size_t k = 0; k < names->n; k++) {
			const struct name *name = &names->list[k];

			if (!name->known || name->group != group ||
			    !id_list_resolve(list, name->name, name->id))
				continue;
			any = true;
			log_notice("%s '%s' of the configuration exists now, with the number %u",
				   group ? "group" : "user", name->name, name->id);
		}
	if (any && daemon->bus)
		bus_tell_tenants(daemon->bus);
}

/* names: NULL: none came. */
static void finish(struct daemon *daemon, struct names *names)
{
	bool retry = daemon->resolve->retry, hangup = daemon->resolve->hangup;

	end(daemon);
	daemon->resolve->retry = daemon->resolve->hangup = false;
	if (retry) {
		if (names)
			take_existing(daemon, names);
		if (names)
			names_done(names);
		resolve_review(daemon);
		return;
	}
	names_done(&daemon->resolve->names);
	if (names)
		daemon->resolve->names = *names;
	daemon->resolve->state = names ? RESOLVE_DONE : RESOLVE_FAILED;
	if (hangup)
		resolve_hangup(daemon);
	if (daemon->bus)
		bus_observed(daemon->bus); /* Reload */
	resolve_review(daemon);
}

static int on_text(sd_event_source *, int fd, uint32_t, void *userdata)
{
	struct daemon *daemon = userdata;
	struct names names = { 0 };
	char *more = realloc(daemon->resolve->text, daemon->resolve->size + 4097);
	ssize_t n = more ? read(fd, more + daemon->resolve->size, 4096) : -1;
	size_t size = daemon->resolve->size;
	bool good;

	daemon->resolve->text = more ?: daemon->resolve->text;
	if (n > 0 && daemon->resolve->size + (size_t)n <= TEXT_MAX) {
		daemon->resolve->size += (size_t)n;
		return 0;
	}
	if (n < 0 && more && (errno == EINTR || errno == EAGAIN))
		return 0;
	good = n == 0 && size > 0 && more[size - 1] == END[0];
	if (good)
		more[size - 1] = '\0';
	good = good && names_parse(more, &names) >= 0;
	finish(daemon, good ? &names : NULL);
	return 0;
}

static int begin(struct daemon *daemon)
{
	_cleanup_fd_ int from = -1, to = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	to = ends[1];
	r = sd_event_add_io(daemon->event, &daemon->resolve->io, from, EPOLLIN, on_text, daemon);
	if (r < 0)
		return r;
	r = process_fork();
	if (r == 0)
		look_up(daemon, to);
	if (r < 0) {
		daemon->resolve->io = sd_event_source_disable_unref(daemon->resolve->io);
		return r;
	}
	from = -1; /* end() closes it */
	sd_event_source_set_time(daemon->resolve->timer, daemon_now_usec() + PATIENCE_USEC);
	sd_event_source_set_enabled(daemon->resolve->timer, SD_EVENT_ONESHOT);
	return 0;
}

bool resolve_names(void *userdata)
{
	struct daemon *daemon = userdata;
	int r;

	if (daemon->resolve->state != RESOLVE_NONE)
		return false;
	if (daemon->resolve->io && !daemon->resolve->retry)
		return true;
	end(daemon);
	daemon->resolve->retry = false;
	r = begin(daemon);
	if (r < 0)
		log_warning("cannot start a process that looks up names: %s", strerror(-r));
	daemon->resolve->state = r < 0 ? RESOLVE_FAILED : RESOLVE_NONE;
	return r >= 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;

	if (daemon->resolve->io) {
		finish(daemon, NULL);
		return 0;
	}
	daemon->resolve->retry = true;
	if (begin(daemon) < 0)
		finish(daemon, NULL);
	return 0;
}

void resolve_review(struct daemon *daemon)
{
	bool any = any_unresolved(daemon->arbiter->settings);
	uint64_t again_usec = daemon->resolve->again_usec;

	if (daemon->resolve->io)
		return;
	again_usec = again_usec ? min_u64(again_usec * 2, AGAIN_MAX_USEC) : AGAIN_USEC;
	daemon->resolve->again_usec = any ? again_usec : 0;
	if (any)
		sd_event_source_set_time(daemon->resolve->timer, daemon_now_usec() + again_usec);
	sd_event_source_set_enabled(daemon->resolve->timer, any ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

int resolve_start(struct daemon *daemon)
{
	int r;

	daemon->resolve = calloc(1, sizeof(*daemon->resolve));
	if (!daemon->resolve)
		return -ENOMEM;
	r = schedule_add(daemon, 0, on_timer, &daemon->resolve->timer);
	if (r >= 0)
		resolve_review(daemon);
	return r;
}

void resolve_stop(struct daemon *daemon)
{
	if (!daemon->resolve)
		return;
	end(daemon);
	daemon->resolve->timer = sd_event_source_disable_unref(daemon->resolve->timer);
	names_done(&daemon->resolve->names);
	free(daemon->resolve);
}
