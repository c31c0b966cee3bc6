/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random calls of all methods and properties (tests/system/call.c) of a gpuarbd with sanitizers, or under valgrind.
 *
 *	GPUARB_CALL       the program that calls
 *	CALL_SEED=N …     the same calls again
 */

#include "check.h"
#include "book.h"
#include "seed.h"

NEEDS(daemon_missing);

/* In a child. The user may not be able to open the path of the program. */
static _Noreturn void call_at_random(const struct rig *rig, uid_t uid, char *seed, char *spared)
{
	char name[] = "call", seconds[] = "3";
	char *const argv[] = { name, seed, seconds, spared, NULL };
	int program = open(getenv("GPUARB_CALL"), O_RDONLY | O_CLOEXEC);

	setenv("DBUS_SYSTEM_BUS_ADDRESS", rig->address, 1);
	if (program < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(126);
	fexecve(program, argv, environ);
	_exit(127);
}

static void call_as(const struct rig *rig, uid_t uid, char *spared)
{
	char seed[16];
	int status;
	pid_t pid;

	snprintf(seed, sizeof(seed), "%u", SEED_OF_RUN("CALL_SEED"));
	pid = fork();
	if (pid == 0)
		call_at_random(rig, uid, seed, spared);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* uid calls while root has a lease, which the calls do not end. No other lease is left. */
static void calls_of(uid_t uid)
{
	struct live_lease lease;
	struct book book;
	struct rig rig;
	sd_bus *bus;
	pid_t pid;

	rig_new(&rig);
	rig_write(&rig, "gpuarbd.conf", CROWD);
	rig_start(&rig, "--simulate=radeon-vii");
	bus = rig_connect(&rig, 0);
	lease = reserve(bus, 15);
	pid = rig.daemon;

	call_as(&rig, uid, lease.path);
	CHECK(waitpid(pid, NULL, WNOHANG) == 0 && rig.daemon == pid);
	CHECK(lease_exists(bus, lease.path));
	close(lease.holder);
	do
		book_read(bus, &book);
	while (book.n_leases > 0);
	rig_done(&rig);
}

TEST_CASE(random_calls_of_a_user_are_answered, calls_of(STRANGER));
TEST_CASE(random_calls_of_root_are_answered, calls_of(0));
