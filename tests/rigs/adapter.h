/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bus adapter alone, in this process, on a bus of its own: two GPUs that are plain
 * values, a host that saves nothing, and clients that wait in the same loop. So a test
 * decides what has happened when.
 */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bus/bus.h"
#include "check.h"
#include "dbus/names.h"
#include "rig.h"

struct adapter {
	struct rig rig;
	sd_event *event;
	struct arbiter *arbiter;
	struct bus *bus;

	struct caller caller; /* of the last call that came to the host */
	unsigned refreshed, described;
	int fail; /* reserve fails so, without a verdict; 0: it does not */

	/* Answers that must outlive the daemon: the last one is kept here if hold is set. */
	bool hold;
	int settle_fails; /* why none is taken; 0: they are */
	void (*settled)(void *call, int r);
	void *call;
	bool disconnected;
};

static inline void adapter_carry_out(struct adapter *adapter)
{
	unsigned touched;

	arbiter_lend(adapter->arbiter, 0);
	for (struct lease *l; (l = ledger_take_touched(adapter->arbiter, &touched));) {
		bus_tell_lease(adapter->bus, l, touched);
		if (touched & TOUCH_REMOVED)
			lease_free(l);
	}
}

static inline void adapter_refresh(void *userdata)
{
	((struct adapter *)userdata)->refreshed++;
}

static inline void adapter_describe(void *userdata, pid_t pid, struct caller *caller)
{
	struct adapter *adapter = userdata;

	adapter->described++;
	snprintf(caller->unit, sizeof(caller->unit), "pid-%d.service", pid);
	adapter->caller = *caller;
}

static inline int adapter_settle(void *userdata, void (*settled)(void *call, int r), void *call)
{
	struct adapter *adapter = userdata;

	if (adapter->settle_fails < 0)
		return adapter->settle_fails;
	if (!adapter->hold) {
		settled(call, 0);
		return 0;
	}
	adapter->settled = settled;
	adapter->call = call;
	return 0;
}

static inline void adapter_disconnected(void *userdata)
{
	((struct adapter *)userdata)->disconnected = true;
}

static inline void adapter_named(void *userdata, int r)
{
	(void)userdata;
	CHECK(r == 0);
}

static inline int adapter_plan(void *userdata, const struct caller *caller, struct request *request,
			       struct lease **ret, struct result *result)
{
	struct adapter *adapter = userdata;

	return arbiter_plan(adapter->arbiter, caller, request, ret, result);
}

static inline int adapter_reserve(void *userdata, const struct caller *caller,
				  struct request *request, int process_fd, const struct lease **ret,
				  int *ret_holder, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *proposal;
	int fds[2], r;

	adapter->caller = *caller;
	if (adapter->fail < 0)
		return adapter->fail;
	r = arbiter_plan(adapter->arbiter, caller, request, &proposal, result);
	if (r < 0)
		return r;
	CHECK(process_fd < 0 || lseek(process_fd, 0, SEEK_CUR) >= 0 || errno == ESPIPE);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	close(fds[0]);
	*ret_holder = fds[1];
	*ret = arbiter_commit(adapter->arbiter, proposal);
	arbiter_add_holder(adapter->arbiter, (*ret)->id);
	adapter_carry_out(adapter);
	return 0;
}

static inline int adapter_resize(void *userdata, const struct caller *caller, uint64_t id,
				 const struct request *request, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *proposal;
	int r;

	r = arbiter_plan_resize(adapter->arbiter, caller, id, request, &proposal, result);
	if (r < 0)
		return r;
	arbiter_commit(adapter->arbiter, proposal);
	adapter_carry_out(adapter);
	return 0;
}

static inline int adapter_release(void *userdata, const struct caller *caller, uint64_t id,
				  struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	arbiter_end(adapter->arbiter, id, RESULT_OK, "released");
	adapter_carry_out(adapter);
	arbiter_observe(adapter->arbiter, NULL, 0);
	adapter_carry_out(adapter);
	return 0;
}

static inline int adapter_bind(void *userdata, const struct caller *caller, uint64_t id,
			       int process_fd, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;

	CHECK(process_fd >= 0);
	return ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
}

static inline int adapter_acknowledge(void *userdata, const struct caller *caller, uint64_t id,
				      uint64_t generation, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
	return r < 0 ? r : arbiter_acknowledge(adapter->arbiter, id, generation);
}

static inline int adapter_activate(void *userdata, const struct caller *caller, uint64_t id,
				   bool active, struct result *result)
{
	struct adapter *adapter = userdata;
	int r;

	r = active ? arbiter_activate(adapter->arbiter, caller, id, result)
		   : arbiter_deactivate(adapter->arbiter, caller, id, result);
	adapter_carry_out(adapter);
	return r;
}

static inline int adapter_revoke(void *userdata, uint64_t id, uint64_t grace_usec,
				 const char *reason, struct result *result)
{
	struct adapter *adapter = userdata;
	int r;

	r = arbiter_revoke(adapter->arbiter, id, 0, grace_usec, reason, result);
	adapter_carry_out(adapter);
	return r;
}

static inline int adapter_drain(void *userdata, const char *gpu, bool drain, struct result *result)
{
	struct adapter *adapter = userdata;

	if (arbiter_drain(adapter->arbiter, gpu, drain) < 0)
		return result_set(result, RESULT_NO_SUCH_GPU, "there is no GPU \"%s\"", gpu);
	bus_tell_gpu(adapter->bus, (unsigned)ledger_find_gpu(adapter->arbiter, gpu));
	return 0;
}

static inline int adapter_reload(void *userdata, struct result *result)
{
	struct adapter *adapter = userdata;

	(void)result;
	bus_tell_tenants(adapter->bus);
	return 0;
}

static const struct bus_host adapter_host = {
	.version = "1.2.3",
	.refresh = adapter_refresh,
	.describe = adapter_describe,
	.settle = adapter_settle,
	.plan = adapter_plan,
	.reserve = adapter_reserve,
	.resize = adapter_resize,
	.release = adapter_release,
	.bind = adapter_bind,
	.acknowledge = adapter_acknowledge,
	.drain = adapter_drain,
	.reload = adapter_reload,
	.activate = adapter_activate,
	.revoke = adapter_revoke,
};

static const struct bus_events adapter_events = {
	.disconnected = adapter_disconnected,
	.named = adapter_named,
};

static inline struct gpu_info adapter_gpu(const char *name)
{
	struct gpu_info info = {
		.gfx_target = 90006,
		.law_measured = true,
		.queue_slots = 24,
		.process_slots = 8,
		.pipes = 4,
		.queues_per_pipe = 8,
		.sdma_queues = 4,
		.vram_bytes = UINT64_C(1) << 34,
		.scheduler = SCHEDULER_HWS,
		.geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
	};

	strcpy(info.name, name);
	strcpy(info.device, "Radeon VII");
	CHECK(geometry_spread(&info.geometry, 60) == 0);
	return info;
}

static inline void adapter_new(struct adapter *ret)
{
	struct gpu_info gpus[] = { adapter_gpu("0000:03:00.0"), adapter_gpu("0000:43:00.0") };
	struct settings *settings;

	*ret = (struct adapter){ 0 };
	rig_new(&ret->rig);
	CHECK(settings_new(&settings) == 0);
	CHECK(arbiter_new(settings, gpus, 2, 1, &ret->arbiter) == 0);
	CHECK(sd_event_new(&ret->event) >= 0);
	CHECK(bus_new(ret->event, ret->rig.address, ret->arbiter, &adapter_host, &adapter_events,
		      ret, &ret->bus) == 0);
	CHECK(bus_own_name(ret->bus) == 0);
}

static inline void adapter_done(struct adapter *adapter)
{
	bus_free(adapter->bus);
	arbiter_free(adapter->arbiter);
	sd_event_unref(adapter->event);
	rig_done(&adapter->rig);
}
