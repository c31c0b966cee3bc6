/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Activation, deactivation and revocation of leases. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "fake-lease.h"
#include "lib-rig.h"
#include "libgpuarb/lease/lease-handle.h"
#include "rig.h"

NEEDS(rig_bus_missing);

static bool is(const struct gpuarb_lease *lease, const char *state)
{
	return strcmp(gpuarb_lease_state(lease), state) == 0;
}

static void count(struct gpuarb_lease *, void *userdata)
{
	(*(int *)userdata)++;
}

/* ---- activating ------------------------------------------------------------------------ */

FIXTURE(struct stage, stage, , stage_strike(stage));

TEST_WITH(a_lease_reserved_inactive_needs_no_wait, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "inactive", NULL);
	lease = stage_reserve(stage, GPUARB_FOREVER);
	CHECK(is(lease, "inactive") && gpuarb_lease_cus(lease, 0) == 30);
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0);
}

TEST_WITH(activation_returns_at_once_and_can_be_waited_for, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "inactive",
										NULL);

	CHECK(gpuarb_lease_activate(lease) == 0 && is(lease, "activating"));
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Activate");
	CHECK(gpuarb_lease_wait(lease, 0) == -ETIMEDOUT);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), "lease 17 "));
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), "") == 0);

	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0 && is(lease, "granted"));
	CHECK(gpuarb_lease_deactivate(lease) == 0 && is(lease, "inactive"));
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0);
}

TEST_WITH(records_from_before_an_activation_are_not_reported_after_it, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "inactive",
										NULL);
	int changes = 0;

	stage_tell(stage, 3, GPUARB_RECORD_INACTIVE, 20);
	stage_tell(stage, 3, GPUARB_RECORD_ACTIVATING, 20);
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_activate(lease) == 0 && is(lease, "granted"));
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 0 && changes == 0);
}

TEST_WITH(the_end_during_an_activation_has_its_reason, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "inactive",
										NULL);

	stage_end(stage, GPUARB_RECORD_NO_SUCH_GPU);
	CHECK(gpuarb_lease_activate(lease) == -ENODEV && is(lease, "ending"));
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), ": so it is"));
}

TEST_WITH(a_refused_call_does_not_change_the_lease, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease =
		stage_begin(stage, "inactive", GPUARB_ERROR_INVALID_STATE);

	CHECK(gpuarb_lease_activate(lease) == -EBADFD && is(lease, "inactive"));
	CHECK(strcmp(gpuarb_last_error(stage->gpuarb), "it is so") == 0);
	CHECK(gpuarb_lease_deactivate(lease) == -EBADFD && is(lease, "inactive"));
	CHECK(gpuarb_activate(stage->gpuarb, 17) == -EBADFD);
	CHECK(gpuarb_deactivate(stage->gpuarb, 17) == -EBADFD);
	CHECK(gpuarb_revoke(stage->gpuarb, 17, 0, NULL) == -EBADFD);
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), GPUARB_ERROR_INVALID_STATE) == 0);
}

/* ---- borrowers return CUs first --------------------------------------------------------- */

TEST_WITH(a_token_of_a_waiting_lease_fails_without_wait_usec, struct stage *stage)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	stage_set(stage, "waiting", NULL);
	options.token = "again";
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == -EBUSY && !lease);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), ": one is before it"));
	CHECK(stage_holder_gone(stage));
}

TEST_WITH(a_token_of_a_lease_granted_meanwhile_returns_it, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "waiting", NULL);
	stage_tell(stage, 1, GPUARB_RECORD_GRANTED, 20);
	lease = stage_reserve(stage, 0);
	CHECK(is(lease, "granted"));
}

/* ---- revoking -------------------------------------------------------------------------- */

TEST_WITH(a_revocation_is_reported_with_its_deadline_and_can_be_acknowledged, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int changes = 0;

	stage_revoke(stage, 4711);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 1 && changes == 1);
	CHECK(is(lease, "revoking") && gpuarb_lease_deadline(lease) == 4711);
	CHECK(strcmp(gpuarb_lease_reason(lease), "so it is") == 0);
	CHECK(gpuarb_lease_cus(lease, 0) == 20);

	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == -EBADFD);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), ": so it is"));
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), GPUARB_ERROR_INVALID_STATE) == 0);
	stage_revoke(stage, 815); /* an earlier deadline replaces it */
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1 && gpuarb_lease_deadline(lease) == 815);

	CHECK(gpuarb_lease_acknowledge(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	stage_end(stage, GPUARB_RECORD_ENDED);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == -ENOENT && changes == 2);
}

TEST_WITH(waiting_fails_when_the_lease_is_revoked, struct stage *stage)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	stage_set(stage, "activating", NULL);
	stage_revoke(stage, 4711);
	options.wait_usec = GPUARB_FOREVER;
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == -EBADFD && !lease);
	CHECK(stage_holder_gone(stage));
}

TEST_WITH(no_process_is_bound_to_a_lease_that_is_being_revoked, struct stage *stage)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	stage_set(stage, "revoking", NULL);
	options.process_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	options.token = "again";
	CHECK(gpuarb_reserve_start(stage->gpuarb, &want, 1, &options, &lease) == 0);
	CHECK(is(lease, "revoking"));
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "GetAll");
	gpuarb_lease_close(lease);
	lease = NULL;
	CHECK(gpuarb_reload(stage->gpuarb) == 0);
	fake_arbiter_saw(&stage->fake, "Reload");
	close(options.process_fd);
}

static int take_revocation(sd_bus_message *call, void *)
{
	uint64_t grace_usec = 0;
	const char *reason = "?";

	if (!sd_bus_message_is_method_call(call, GPUARB_INTERFACE_LEASE, "Revoke") ||
	    strcmp(sd_bus_message_get_path(call), GPUARB_PATH_LEASE "/23") != 0 ||
	    sd_bus_message_read(call, "ts", &grace_usec, &reason) < 0)
		return sd_bus_reply_method_errorf(call, GPUARB_ERROR_INVALID_REQUEST, "not so");
	return sd_bus_reply_method_errorf(call, GPUARB_ERROR_NOT_PERMITTED, "%llu %s.",
					  (unsigned long long)grace_usec, reason);
}

LIB_TEST(revoke_sends_grace_and_reason, take_revocation, NULL)
{
	CHECK(gpuarb_revoke(gpuarb, 23, 1500000, "maintenance") == -EACCES);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "1500000 maintenance.") == 0);
	CHECK(gpuarb_revoke(gpuarb, 23, GPUARB_FOREVER, NULL) == -EACCES);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "18446744073709551615 .") == 0);
}

/* ---- a daemon that dies during the call -------------------------------------------------- */

/* Dies at the first call, and refuses the second with this error. */
struct fate {
	unsigned calls;
	const char *error;
	const char *state; /* in the answer to Get; NULL: the answer is a number */
};

static int die_once(sd_bus_message *call, void *userdata)
{
	struct fate *fate = userdata;

	if (fate->calls++ == 0)
		_exit(0);
	if (!sd_bus_message_is_method_call(call, NULL, "Get"))
		return sd_bus_reply_method_errorf(call, fate->error, "it is so");
	return fate->state ? sd_bus_reply_method_return(call, "v", "s", fate->state)
			   : sd_bus_reply_method_return(call, "v", "u", 2);
}

enum call { ACTIVATE, DEACTIVATE, REVOKE };

static int make_call(struct gpuarb *gpuarb, enum call call)
{
	if (call == ACTIVATE)
		return gpuarb_activate(gpuarb, 17);
	if (call == DEACTIVATE)
		return gpuarb_deactivate(gpuarb, 17);
	return gpuarb_revoke(gpuarb, 17, 0, NULL);
}

static void survive(enum call call, const char *error, const char *state, int wanted,
		    const char *wanted_name)
{
	struct fate *fate = mmap(NULL, sizeof(*fate), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fake_arbiter fake;
	struct rig bus;
	struct gpuarb *gpuarb;

	CHECK(fate != MAP_FAILED);
	rig_new(&bus);
	*fate = (struct fate){ .error = error, .state = state };
	fake_arbiter_keep(bus.address, die_once, NULL, fate, &fake);
	gpuarb = lib_rig_open();
	CHECK(make_call(gpuarb, call) == wanted);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), wanted_name) == 0);
	CHECK((wanted < 0) == (*gpuarb_last_error(gpuarb) != '\0'));
	gpuarb_close(gpuarb);
	fake_arbiter_stop(&fake);
	rig_done(&bus);
	munmap(fate, sizeof(*fate));
}

TEST(a_repeated_change_that_was_carried_out_succeeds)
{
	survive(ACTIVATE, GPUARB_ERROR_INVALID_STATE, "activating", 0, "");
	survive(ACTIVATE, GPUARB_ERROR_INVALID_STATE, "granted", 0, "");
	survive(DEACTIVATE, GPUARB_ERROR_INVALID_STATE, "inactive", 0, "");
	survive(REVOKE, GPUARB_ERROR_INVALID_STATE, "revoking", 0, "");
	survive(REVOKE, GPUARB_ERROR_INVALID_STATE, "ending", 0, "");
	survive(REVOKE, GPUARB_ERROR_NO_SUCH_LEASE, "", 0, "");
}

TEST(a_repeated_change_that_was_not_carried_out_fails)
{
	survive(ACTIVATE, GPUARB_ERROR_INVALID_STATE, "inactive", -EBADFD,
		GPUARB_ERROR_INVALID_STATE);
	survive(DEACTIVATE, GPUARB_ERROR_INVALID_STATE, "waiting", -EBADFD,
		GPUARB_ERROR_INVALID_STATE);
	survive(REVOKE, GPUARB_ERROR_INVALID_STATE, "waiting", -EBADFD, GPUARB_ERROR_INVALID_STATE);
	survive(ACTIVATE, GPUARB_ERROR_NO_SUCH_LEASE, "", -ENOENT, GPUARB_ERROR_NO_SUCH_LEASE);
	survive(ACTIVATE, GPUARB_ERROR_INVALID_STATE, NULL, -EPROTO, "");
}
