/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The connection to the bus. Leases stay in force while it is lost. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "dbus/names.h"
#include "protocol/protocol.h"

#define PAUSE_USEC UINT64_C(10000)
#define PAUSE_MAX_USEC UINT64_C(500000)

struct bus_connection {
	sd_event_source *retry;
	uint64_t pause_usec; /* before the next attempt; 0: connected */
	bool name_taken;     /* another process had the name, which was logged */
};

static const char *address(const struct daemon *daemon)
{
	return daemon->options->bus_address ? daemon->options->bus_address : "the system bus";
}

static const char *why_no_name(int r)
{
	if (r == -EEXIST)
		return "another process owns it";
	if (r == -EACCES)
		return "only the user of the service may own it: run 'systemctl start gpuarbd', or "
		       "set GPUARB_BUS_ADDRESS to a private bus";
	return strerror(-r);
}

static int open_bus(struct daemon *daemon);

static void try_later(struct daemon *daemon)
{
	uint64_t pause = daemon->connection->pause_usec ? daemon->connection->pause_usec
							: PAUSE_USEC;

	daemon->connection->pause_usec = pause * 2 < PAUSE_MAX_USEC ? pause * 2 : PAUSE_MAX_USEC;
	sd_event_source_set_time_relative(daemon->connection->retry, pause);
	sd_event_source_set_enabled(daemon->connection->retry, SD_EVENT_ONESHOT);
}

static int on_reconnect(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;
	int r;

	daemon->bus = bus_free(daemon->bus);
	r = open_bus(daemon);
	if (r >= 0)
		r = bus_own_name_async(daemon->bus);
	if (r < 0)
		try_later(daemon);
	return 0;
}

static void reconnect(struct daemon *daemon, const char *why)
{
	int r = 0;

	if (daemon->connection->pause_usec == 0)
		log_warning("%s: %s: leases stay in force, and gpuarbd reconnects", address(daemon),
			    why);
	if (!daemon->connection->retry)
		r = sd_event_add_time_relative(daemon->event, &daemon->connection->retry,
					       CLOCK_MONOTONIC, 0, 1000, on_reconnect, daemon);
	if (r < 0) {
		sd_event_exit(daemon->event, r); /* no memory: the service manager restarts it */
		return;
	}
	try_later(daemon);
}

static void on_disconnected(void *userdata)
{
	reconnect(userdata, "connection lost");
}

static void on_stalled(void *userdata)
{
	reconnect(userdata, "the bus has read nothing for 10 s");
}

static void on_named(void *userdata, int r)
{
	struct daemon *daemon = userdata;

	if (r < 0) {
		/* The other process is no gpuarbd with these leases: their directory is locked. */
		if (r == -EEXIST && !daemon->connection->name_taken)
			log_error("%s: another process owns " GPUARB_BUS_NAME
				  ": gpuarbd tries again",
				  address(daemon));
		daemon->connection->name_taken = r == -EEXIST;
		try_later(daemon);
		return;
	}
	daemon->connection->pause_usec = 0;
	daemon->connection->name_taken = false;
	log_notice("%s: connected again", address(daemon));
}

static int open_bus(struct daemon *daemon)
{
	static const struct bus_events events = { .disconnected = on_disconnected,
						  .stalled = on_stalled,
						  .named = on_named };

	return bus_new(daemon->event, daemon->options->bus_address, daemon->arbiter, &requests_host,
		       &events, daemon, &daemon->bus);
}

int bus_connection_open(struct daemon *daemon)
{
	int r;

	daemon->connection = calloc(1, sizeof(*daemon->connection));
	r = daemon->connection ? open_bus(daemon) : -ENOMEM;
	if (r < 0) {
		log_error("%s: cannot connect: %s", address(daemon), strerror(-r));
		return r;
	}
	r = bus_own_name(daemon->bus);
	if (r < 0)
		log_error("%s: cannot own " GPUARB_BUS_NAME ": %s", address(daemon),
			  why_no_name(r));
	return r;
}

void bus_connection_close(struct daemon *daemon)
{
	daemon->bus = bus_free(daemon->bus);
	if (daemon->connection)
		sd_event_source_disable_unref(daemon->connection->retry);
	free(daemon->connection);
}
