/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How the shipped daemon comes up where another is, was, or cannot be. */

#include <dirent.h>

#include "live.h"

static void arrive(struct rig *rig, sd_bus **ret)
{
	rig_new(rig);
	rig_start(rig, "--simulate=radeon-vii");
	*ret = rig_connect(rig, 0);
}

static unsigned saved_leases(const struct rig *rig)
{
	DIR *dir = opendir(rig_path(rig, "run/leases"));
	unsigned n = 0;

	CHECK(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

TEST(a_killed_daemon_is_followed_by_one_that_says_what_ended)
{
	struct live_lease lease, last;
	char byte[4096], line[96];
	const char *said;
	struct rig rig;
	sd_bus *bus;
	int log;

	NEEDS_DAEMON();
	arrive(&rig, &bus);
	lease = reserve(bus, 15);
	last = reserve(bus, 15);
	rig_kill(&rig);
	while (recv(lease.holder, byte, sizeof(byte), 0) > 0)
		continue;
	log = log_begin(&rig);
	rig_start(&rig, "--simulate=radeon-vii");
	said = log_end(&rig, log);
	CHECK(last.id == lease.id + 1);
	for (uint64_t id = lease.id; id <= last.id; id++) {
		snprintf(line, sizeof(line), "lease %" PRIu64 " of uid 0 ends: it ended with the "
			 "gpuarbd before", id);
		CHECK(strstr(said, line));
	}
	CHECK(strstr(said, "keeps no file descriptors") && saved_leases(&rig) == 0);
	CHECK(gpu_number(bus, "CusFree") == 60 && !lease_exists(bus, lease.path));
	CHECK(reserve(bus, 15).id > last.id);
	leave(bus);
	rig_done(&rig);
}

TEST(a_second_daemon_does_not_come_up_and_does_no_harm)
{
	struct rig rig, second;
	const char *said;
	sd_bus *bus;
	int log;

	NEEDS_DAEMON();
	arrive(&rig, &bus);
	reserve(bus, 15);
	second = rig;
	second.daemon = 0;
	log = log_begin(&rig);
	CHECK(rig_start_fails(&second, "--simulate=radeon-vii") != 0);
	said = log_end(&rig, log);
	CHECK(strstr(said, "another gpuarbd uses it")); /* the directory */
	CHECK(saved_leases(&rig) == 1 && gpu_number(bus, "CusFree") == 45);
	leave(bus);
	rig_done(&rig);
}

TEST(a_name_that_somebody_else_has_is_not_waited_for)
{
	const char *said;
	struct rig rig;
	sd_bus *bus;
	int log;

	NEEDS_DAEMON();
	rig_new(&rig);
	bus = rig_connect(&rig, 0);
	CHECK(sd_bus_request_name(bus, GPUARB_BUS_NAME, 0) >= 0);
	log = log_begin(&rig);
	CHECK(rig_start_fails(&rig, "--simulate=radeon-vii") != 0);
	said = log_end(&rig, log);
	CHECK(strstr(said, "another gpuarbd has it"));
	leave(bus);
	rig_done(&rig);
}

TEST(without_a_bus_it_says_so_and_ends)
{
	struct rig rig, lost;
	const char *said;
	int log;

	NEEDS_DAEMON();
	rig_new(&rig);
	lost = rig;
	snprintf(lost.address, sizeof(lost.address), "unix:path=%s/nobody", rig.dir);
	log = log_begin(&rig);
	CHECK(rig_start_fails(&lost, "--simulate=radeon-vii") != 0);
	said = log_end(&rig, log);
	CHECK(strstr(said, "cannot connect to unix:path=") && strstr(said, "nobody"));
	rig_done(&rig);
}
