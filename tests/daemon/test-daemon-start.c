/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The start of the shipped daemon: beside another one, after a crash, and where it must fail. */

#include <sys/stat.h>

#include "check.h"
#include "scratch.h"
#include "live.h"

NEEDS(daemon_missing);

static void arrive(struct rig *rig, sd_bus **ret)
{
	rig_new(rig);
	rig_start(rig, "--simulate=radeon-vii");
	*ret = rig_connect(rig, 0);
}

static unsigned saved_leases(const struct rig *rig)
{
	return count_entries(rig_path(rig, "run/leases"));
}

TEST(a_second_daemon_fails_to_start_and_does_no_harm)
{
	struct rig rig, second;
	const char *said;
	sd_bus *bus;

	arrive(&rig, &bus);
	reserve(bus, 15);
	second = rig;
	second.daemon = 0;
	log_begin(&rig);
	CHECK(rig_start_fails(&second, "--simulate=radeon-vii") != 0);
	said = log_end(&rig);
	CHECK(strstr(said, "another")); /* the directory */
	CHECK(saved_leases(&rig) == 1 && gpu_number(bus, "CusFree") == 45);
	rig_done(&rig);
}

/* A second daemon with another runtime directory, as of a package with another prefix. */
TEST(a_second_daemon_on_the_same_bus_fails_to_start_and_does_no_harm)
{
	struct live_lease lease;
	struct rig rig, second;
	const char *said;
	sd_bus *bus;

	arrive(&rig, &bus);
	lease = reserve(bus, 15);
	rig_new(&second);
	rig_kill_bus(&second);
	memcpy(second.address, rig.address, sizeof(second.address));
	log_begin(&rig);
	CHECK(rig_start_fails(&second, "--simulate=radeon-vii") == 1);
	said = log_end(&rig);
	CHECK(strstr(said, "process") && strstr(said, rig.address));
	CHECK(lease_exists(bus, lease.path) && gpu_number(bus, "CusFree") == 45);
	CHECK(saved_leases(&rig) == 1 && saved_leases(&second) == 0);
	rig_done(&second);
	rig_done(&rig);
}

FIXTURE(struct rig, rig, rig_new(rig), rig_done(rig));

/* A bus with the installed policy, and a daemon that is started by hand. */
TEST_WITH(a_bus_that_denies_the_name_is_logged_with_a_remedy, struct rig *rig)
{
	const char *said;

	rig_write(
		rig, "extra.conf",
		"<busconfig><policy context=\"mandatory\"><deny own=\"*\"/></policy></busconfig>");
	rig_kill_bus(rig);
	rig_start_bus(rig);
	log_begin(rig);
	CHECK(rig_start_fails(rig, "--simulate=radeon-vii") == 1);
	said = log_end(rig);
	CHECK(strstr(said, "GPUARB_BUS_ADDRESS"));
	CHECK(strstr(said, "systemctl start gpuarbd"));
}

#define CARDS_5 "v620,v620,v620,v620,v620,"
#define CARDS_15 CARDS_5 CARDS_5 CARDS_5
#define MANY_CARDS "--simulate=" CARDS_15 CARDS_15 CARDS_15 CARDS_15 CARDS_5

static void expect_refusal(struct rig *rig, const char *sentence)
{
	log_begin(rig);
	CHECK(rig_start_fails(rig, "--simulate=radeon-vii") == 6);
	CHECK(strstr(log_end(rig), sentence));
}

TEST_WITH(a_configuration_writable_by_others_is_refused_with_status_6, struct rig *rig)
{
	CHECK(chmod(rig_path(rig, "tenants.d"), 0775) == 0);
	expect_refusal(rig, "/tenants.d: writable by group or others (mode 0775)");
	CHECK(chmod(rig_path(rig, "tenants.d"), 0755) == 0);
	CHECK(chown(rig_path(rig, "tenants.d"), STRANGER, 0) == 0);
	expect_refusal(rig, "/tenants.d: owned by uid 1, which is not trusted");
	CHECK(chown(rig_path(rig, "tenants.d"), 0, 0) == 0);
	CHECK(chmod(rig_path(rig, "gpuarbd.conf"), 0646) == 0);
	expect_refusal(rig, "/gpuarbd.conf: writable by group or others (mode 0646)");
	CHECK(chmod(rig_path(rig, "gpuarbd.conf"), 0644) == 0 && chmod(rig->dir, 01777) == 0);
	expect_refusal(rig, ": writable by group or others (mode 1777)");
	CHECK(chmod(rig->dir, 0755) == 0 && rmdir(rig_path(rig, "tenants.d")) == 0);
	expect_refusal(rig, "/tenants.d: No such file or directory");
	CHECK(access(rig_path(rig, "run/leases"), F_OK) < 0); /* nothing was begun */
}

TEST_WITH(options_that_make_no_sense_are_refused, struct rig *rig)
{
	static const char *const options[][2] = {
		{ "--nonsense", "unrecognized option" },
		{ "--simulate=radeon-vii word", "unexpected argument \"word\"" },
		{ "--simulate=radeon-vii --sysfs=/sys", "exclude each other" },
		{ "--simulate=,", "names no profile" },
		{ MANY_CARDS, "too many cards: at most 64" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		log_begin(rig);
		rig_start_fails(rig, options[i][0]);
		CHECK(strstr(log_end(rig), options[i][1]));
	}
}

TEST(without_a_bus_the_daemon_fails_to_start)
{
	struct rig rig, lost;
	const char *said;

	rig_new(&rig);
	lost = rig;
	snprintf(lost.address, sizeof(lost.address), "unix:path=%s/nobody", rig.dir);
	log_begin(&rig);
	CHECK(rig_start_fails(&lost, "--simulate=radeon-vii") != 0);
	said = log_end(&rig);
	CHECK(strstr(said, lost.address));
	rig_done(&rig);
}
