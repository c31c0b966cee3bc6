/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which units the daemon caps, and what it tells clients about it. The test answers in place of
 * gpuarb-budget; tests/system/kernel has the kernel.
 */

#include <sched.h>

#include "budget-rig.h"
#include "check.h"
#include "machine.h"

NEEDS(daemon_missing);

#define CAPS "[tenant *]\ncap = yes\n"

struct scene {
	struct machine machine;
	struct budget_rig budget;
	struct unit_rig unit;
	pid_t pid;
	int fd; /* of pid */
	struct live_lease lease;
};

/* A daemon that has asked for the first time; a process in a unit of its own. false: no unit can be made. */
static bool arrive(struct scene *s, const char *tenants)
{
	char options[256];

	memset(s, 0, sizeof(*s));
	if (!unit_rig_new(&s->unit, "capped"))
		return false;
	machine_build(&s->machine, 2);
	rig_write(&s->machine.rig, "tenants.d/10-test.conf", tenants);
	budget_rig_new(&s->budget, s->machine.rig.dir);
	snprintf(options, sizeof(options), "%s --budget=%s", s->machine.option, s->budget.path);
	rig_start(&s->machine.rig, options);
	machine_connect(&s->machine);
	CHECK(budget_rig_receive(&s->budget) == 0);
	s->pid = idler(0, &s->fd);
	unit_rig_add(&s->unit, s->pid);
	return true;
}

#define ARRIVE(s, tenants)                                                          \
	do {                                                                        \
		if (!arrive(s, tenants))                                            \
			SKIP("there is no cgroup of version 2 that could be made"); \
	} while (0)

static void depart(struct scene *s)
{
	end_process(s->pid);
	close(s->fd);
	machine_halt(&s->machine);
	budget_rig_done(&s->budget);
	unit_rig_done(&s->unit);
}

static struct live_lease reserve_queues(struct scene *s, unsigned queues, unsigned sdma_queues)
{
	return granted(call(ask_for(s->machine.bus, "cus=15 queues=%u sdma-queues=%u; process=%d",
				    queues, sdma_queues, s->fd)));
}

static sd_bus_message *resize_queues(struct scene *s, unsigned queues)
{
	return call(with_request(call_lease(s->machine.bus, s->lease.path, "Resize"),
				 "cus=15 queues=%u", queues));
}

static bool says(struct scene *s, const char *name, const char *text)
{
	return lease_says(s->machine.bus, s->lease.path, name, text);
}

static bool budgets_are(struct scene *s, const char *text)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m =
		call(get(s->machine.bus, GPUARB_PATH, GPUARB_INTERFACE, "QueueBudgets"));
	const char *state;

	CHECK(sd_bus_message_read(m, "v", "s", &state) > 0);
	return strcmp(state, text) == 0;
}

static uint64_t refusals(struct scene *s)
{
	return number_of(s->machine.bus, s->lease.path, GPUARB_INTERFACE_LEASE, "QueueRefusals");
}

/* A lease of three queues, whose unit the kernel caps. */
static void capped(struct scene *s)
{
	budget_rig_answer(&s->budget);
	s->lease = reserve_queues(s, 3, 0);
	CHECK(says(s, "Tier", "cooperative"));
	CHECK(budget_rig_receive(&s->budget) == 1);
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, says(s, "Tier", "capped"));
}

FIXTURE(struct scene, s, ARRIVE(s, CAPS), depart(s));

TEST_WITH(the_budget_follows_the_lease_until_its_end, struct scene *s)
{
	capped(s);
	CHECK(is_fine(resize_queues(s, 7)));
	CHECK(budget_rig_receive(&s->budget) == 1 && s->budget.request.rows[0].limit == 7);
	budget_rig_answer(&s->budget);
	machine_use(&s->machine, s->pid, 0, 3);
	CHECK(is_fine(call(release(s->machine.bus, s->lease.path))));
	CHECK(budget_rig_receive(&s->budget) == 1 && s->budget.request.rows[0].limit == 0);
	budget_rig_answer(&s->budget);
	for (unsigned i = 0; i < 3; i++)
		CHECK(fake_sysfs_queue_gone(s->machine.sys, s->pid, i) == 0);
	CHECK(fake_sysfs_process_gone(s->machine.sys, s->pid) == 0);
	CHECK(budget_rig_receive(&s->budget) == 0);
}

TEST_WITH(a_unit_with_a_process_that_does_not_belong_to_the_lease_has_no_budget, struct scene *s)
{
	pid_t other;

	budget_rig_answer(&s->budget);
	other = idler(0, NULL);
	unit_rig_add(&s->unit, other);
	s->lease = reserve_queues(s, 3, 0);
	end_process(other);
	CHECK(says(s, "Tier", "cooperative") && says(s, "Uncapped", "unit"));
	CHECK(is_fine(call(call_arbiter(s->machine.bus, "Reload"))));
	CHECK(budget_rig_receive(&s->budget) == 1); /* the first request since: it is alone now */
}

TEST_WITH(a_bound_process_outside_of_the_unit_ends_the_tier_and_not_the_budget, struct scene *s)
{
	pid_t other;
	int fd;

	capped(s);
	other = idler(0, &fd);
	bind_process(s->machine.bus, &s->lease, fd);
	CHECK(says(s, "Tier", "cooperative"));
	CHECK(is_fine(resize_queues(s, 4)));
	CHECK(budget_rig_receive(&s->budget) == 1 && s->budget.request.rows[0].limit == 4);
	budget_rig_answer(&s->budget);
	end_process(other);
	close(fd);
	CHECK(is_fine(resize_queues(s, 5)));
	CHECK(budget_rig_receive(&s->budget) == 1);
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, says(s, "Tier", "capped"));
}

TEST(units_of_tenants_without_cap_have_no_budget)
{
	static struct scene s;

	ARRIVE(&s, "[tenant *]\n");
	CHECK(s.budget.request.try == 0);
	budget_rig_answer(&s.budget);
	s.lease = reserve_queues(&s, 3, 0);
	rig_write(&s.machine.rig, "tenants.d/10-test.conf", CAPS);
	CHECK(is_fine(call(call_arbiter(s.machine.bus, "Reload"))));
	CHECK(budget_rig_receive(&s.budget) == 1 && s.budget.request.try != 0);
	budget_rig_answer(&s.budget);
	AWAIT(s.machine.bus, says(&s, "Tier", "capped"));
	rig_write(&s.machine.rig, "tenants.d/10-test.conf", "");
	CHECK(is_fine(call(call_arbiter(s.machine.bus, "Reload"))));
	CHECK(budget_rig_receive(&s.budget) == 0);
	CHECK(says(&s, "Tier", "cooperative"));
	budget_rig_answer(&s.budget);
	AWAIT(s.machine.bus, budgets_are(&s, "unused"));
	depart(&s);
}

#define REALTIME "[tenant *]\nclass = realtime\n"

TEST(a_realtime_lease_is_capped_without_an_option_or_says_why_not)
{
	static struct scene s;
	struct live_lease other;

	ARRIVE(&s, REALTIME);
	CHECK(s.budget.request.try != 0);
	budget_rig_answer(&s.budget);
	AWAIT(s.machine.bus, budgets_are(&s, "enforced"));
	s.lease = reserve_queues(&s, 3, 0); /* SDMA queues that it did not ask for would count */
	CHECK(says(&s, "Uncapped", "sdma-queues"));
	CHECK(is_fine(call(release(s.machine.bus, s.lease.path))));
	other = reserve(s.machine.bus, 15);
	CHECK(lease_says(s.machine.bus, other.path, "Uncapped", "process"));

	s.lease = reserve_queues(&s, 3, 2);
	CHECK(budget_rig_receive(&s.budget) == 1 && s.budget.request.rows[0].limit == 5);
	CHECK(s.budget.request.rows[0].lease == s.lease.id);
	CHECK(s.budget.request.rows[0].cgroup == s.unit.id);
	CHECK(says(&s, "Tier", "cooperative")); /* not before the kernel does it */
	CHECK(says(&s, "Uncapped", "pending"));
	budget_rig_answer(&s.budget);
	AWAIT(s.machine.bus, says(&s, "Tier", "capped"));
	CHECK(says(&s, "Uncapped", ""));

	rig_write(&s.machine.rig, "tenants.d/10-test.conf", REALTIME "cap = no\n");
	CHECK(is_fine(call(call_arbiter(s.machine.bus, "Reload"))));
	CHECK(budget_rig_receive(&s.budget) == 0);
	CHECK(says(&s, "Tier", "cooperative") && says(&s, "Uncapped", ""));
	budget_rig_answer(&s.budget);
	AWAIT(s.machine.bus, budgets_are(&s, "unused"));
	depart(&s);
}

TEST_WITH(a_kernel_that_cannot_is_reported_with_the_reason, struct scene *s)
{
	s->lease = reserve_queues(s, 1, 0);
	CHECK(says(s, "Uncapped", "pending"));
	s->budget.answer.r = -EOPNOTSUPP;
	strcpy(s->budget.answer.sentence, "the kernel is too old");
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, budgets_are(s, "the kernel is too old"));
	CHECK(says(s, "Uncapped", "kernel"));
	s->lease = reserve_queues(s, 3, 0);
	CHECK(says(s, "Tier", "cooperative") && says(s, "Uncapped", "kernel"));
}

TEST_WITH(a_budget_that_the_kernel_does_not_take_leaves_the_lease_uncapped, struct scene *s)
{
	budget_rig_answer(&s->budget);
	s->budget.answer.rows[0].r = -E2BIG;
	s->lease = reserve_queues(s, 3, 0);
	CHECK(budget_rig_receive(&s->budget) == 1);
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, budgets_are(s, "enforced"));
	CHECK(says(s, "Tier", "cooperative"));
}

TEST_WITH(a_helper_that_fails_does_not_lift_the_cap, struct scene *s)
{
	capped(s);
	CHECK(is_fine(resize_queues(s, 4)));
	CHECK(budget_rig_receive(&s->budget) == 1);
	budget_rig_hang_up(&s->budget);
	AWAIT(s->machine.bus, budgets_are(s, "gpuarb-budget ended before it answered"));
	CHECK(says(s, "Tier", "capped"));
	CHECK(budget_rig_receive(&s->budget) == 1); /* again, ten seconds later */
	CHECK(s->budget.request.rows[0].limit == 4);
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, budgets_are(s, "enforced"));
}

TEST_WITH(refused_calls_are_counted, struct scene *s)
{
	capped(s);
	s->budget.answer.rows[0].refused = 5;
	CHECK(is_fine(resize_queues(s, 4)));
	CHECK(budget_rig_receive(&s->budget) == 1);
	budget_rig_answer(&s->budget);
	while (refusals(s) < 5)
		sched_yield();
	CHECK(refusals(s) == 5);
}

TEST_WITH(the_next_daemon_asks_for_the_same_budget, struct scene *s)
{
	char options[256];

	machine_halt(&s->machine);
	budget_rig_done(&s->budget);

	machine_build(&s->machine, 2);
	rig_write(&s->machine.rig, "tenants.d/10-test.conf", CAPS);
	budget_rig_new(&s->budget, s->machine.rig.dir);
	snprintf(options, sizeof(options), "%s --budget=%s", s->machine.option, s->budget.path);
	rig_start_managed(&s->machine.rig, options, "--store-max=64");
	machine_connect(&s->machine);
	CHECK(budget_rig_receive(&s->budget) == 0);
	capped(s);
	rig_restart(&s->machine.rig);
	rig_await_ready(&s->machine.rig);
	CHECK(budget_rig_receive(&s->budget) == 1); /* never one without it */
	CHECK(s->budget.request.rows[0].lease == s->lease.id);
	CHECK(s->budget.request.rows[0].limit == 3);
	s->budget.answer.rows[0].refused = 5; /* since the budget was set: counted before, or not */
	budget_rig_answer(&s->budget);
	AWAIT(s->machine.bus, says(s, "Tier", "capped"));
	CHECK(refusals(s) == 0);
}

TEST_WITH(a_daemon_that_ends_its_leases_removes_their_budgets, struct scene *s)
{
	capped(s);
	rig_stop(&s->machine.rig);
	CHECK(budget_rig_receive(&s->budget) == 0 && s->budget.request.try == 0);
}
