/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Malicious and broken clients of the shipped daemon. */

#include <sys/stat.h>

#include "check.h"
#include "live.h"

NEEDS(daemon_missing);

static void arrive(struct rig *rig, const char *config, sd_bus **ret)
{
	rig_new(rig);
	rig_write(rig, "gpuarbd.conf", config);
	rig_start(rig, "--simulate=radeon-vii");
	*ret = rig_connect(rig, 0);
}

/* ---- limits ------------------------------------------------------------------------ */

TEST(one_user_can_have_half_of_the_holders)
{
	sd_bus *bus, *user, *other;
	struct live_lease lease;
	sd_bus_message *answer;
	struct told told;
	int fd, another;
	_cleanup_(rig_done) struct rig rig;
	pid_t pid, other_pid;

	arrive(&rig, "[daemon]\nmax-holders = 8\n", &bus);
	user = rig_connect(&rig, STRANGER);
	other = rig_connect(&rig, 2);
	listen_in(bus, &told);
	pid = idler(STRANGER, &fd);
	other_pid = idler(STRANGER, &another);
	lease = granted(call(ask_token(user, 15, "t")));
	for (unsigned i = 0; i < 2; i++)
		granted(call(ask_token(user, 15, "t")));
	bind_process(user, &lease, fd);
	CHECK(is_error(call(with(call_lease(user, lease.path, "Bind"), "h", another)),
		       GPUARB_ERROR_TOO_MANY_LEASES, "max-holders"));
	CHECK(is_error(call(ask_token(user, 15, "t")), GPUARB_ERROR_TOO_MANY_LEASES,
		       "max-holders"));
	CHECK(is_error(call(ask(user, "Reserve", 15)), GPUARB_ERROR_TOO_MANY_LEASES,
		       "max-holders"));
	answer = call(ask_for(user, "cus=60; wait-usec=forever"));
	CHECK(sd_bus_message_has_signature(answer, "s")); /* that no GPU has room is no reason */
	CHECK(is_error(answer, GPUARB_ERROR_TOO_MANY_LEASES, "max-holders"));
	CHECK(gpu_number(bus, "CusFree") == 45);
	/* A repeated Bind needs no room. */
	bind_process(user, &lease, fd);

	for (unsigned i = 0; i < 4; i++)
		granted(call(ask_token(other, 15, "u")));
	CHECK(is_error(call(ask(bus, "Reserve", 15)), GPUARB_ERROR_TOO_MANY_LEASES, "max-holders"));
	end_process(pid);
	end_process(other_pid);
	CHECK(is_fine(call(release(user, lease.path))));
	AWAIT(bus, told.removed == 1);
	reserve(bus, 15);
}

/* ---- file descriptors and memory ------------------------------------------------------ */

#define POOR 320         /* 256 of them are not for holders */
#define POOR_LEASES 32   /* one user can have half of the holders */
#define UNDER_VALGRIND 6 /* fewer, since valgrind keeps 12 file descriptors for itself */

/* Starts the daemon with few file descriptors. */
static void start_poor(struct rig *rig, unsigned fds)
{
	const char *daemon = getenv("GPUARBD");
	char script[512], path[128];

	snprintf(script, sizeof(script), "#!/bin/sh\nulimit -n %u\nexec %s \"$@\"\n", fds, daemon);
	snprintf(path, sizeof(path), "%s/poor", rig->dir);
	rig_write(rig, "poor", script);
	CHECK(chmod(path, 0755) == 0);
	snprintf(script, sizeof(script), "%s", daemon);
	setenv("GPUARBD", path, 1);
	rig_start(rig, "--simulate=radeon-vii");
	setenv("GPUARBD", script, 1);
}

TEST(few_file_descriptors_mean_fewer_leases)
{
	struct live_lease leases[64];
	unsigned n = 0, bound = 0;
	sd_bus *bus, *user;
	struct told told;
	sd_bus_message *m;
	_cleanup_(rig_done) struct rig rig;
	pid_t pid;
	int fd;

	rig_new(&rig);
	rig_write(&rig, "gpuarbd.conf", CROWD);
	start_poor(&rig, POOR);
	bus = rig_connect(&rig, 0);
	user = rig_connect(&rig, STRANGER);
	listen_in(bus, &told);
	pid = idler(STRANGER, &fd);
	while (m = call(ask_shared(user)), !sd_bus_message_is_method_error(m, NULL))
		leases[n++] = granted(m);
	CHECK(is_error(m, GPUARB_ERROR_TOO_MANY_LEASES, "max-holders"));
	CHECK(n <= POOR_LEASES && n >= POOR_LEASES - UNDER_VALGRIND);
	while (m = call(with(call_lease(user, leases[0].path, "Bind"), "h", fd)),
	       !sd_bus_message_is_method_error(m, NULL))
		bound++, sd_bus_message_unref(m);
	CHECK(is_error(m, GPUARB_ERROR_TOO_MANY_LEASES, "") && bound == 0);

	for (unsigned i = 0; i < n; i++)
		close(leases[i].holder);
	AWAIT(bus, told.removed == n);
	granted(call(ask_shared(user)));
	end_process(pid);
}

/* From new connections, whose calls wait for the look-up of the caller. */
TEST(calls_full_of_file_descriptors_do_no_harm)
{
	enum { CLIENTS = 20, CALLS = 100, FDS = 16 };
	static struct answer answers[CLIENTS][CALLS];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sd_bus *bus, *users[CLIENTS];
	struct rig rig;

	if (getenv("GPUARB_BUS"))
		SKIP("dbus-broker disconnects a user with so many file descriptors");
	rig_new(&rig);
	start_poor(&rig, POOR);
	bus = rig_connect(&rig, 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		users[i] = rig_connect(&rig, STRANGER);
	for (unsigned i = 0; i < CLIENTS * CALLS; i++) {
		sd_bus_message *m = call_arbiter(users[i % CLIENTS], "Reserve");

		with(m, "aa{sv}", 1, 1, "cus", "u", 15);
		CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
		for (unsigned j = 0; j < FDS; j++)
			with(m, "{sv}", "unheard-of", "h", null);
		CHECK(sd_bus_message_close_container(m) >= 0);
		call_send(m, &answers[i % CLIENTS][i / CLIENTS]);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		/* The bus refuses calls before gpuarbd has answered earlier ones. */
		for (unsigned j = 0; j < CALLS; j++)
			AWAIT(users[i], answers[i][j].came);
		leave(users[i]);
	}
	CHECK(gpu_number(bus, "CusFree") == 60);
	rig_done(&rig);
}
