/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "bus/bus-clients.h"
#include "bus/bus-methods.h"
#include "bus/bus-objects.h"
#include "bus/bus-polkit.h"
#include "bus/bus-read.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-write.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "dbus/names.h"

static int method_reserve(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct lease *lease;
	const struct caller *caller;
	struct bus *bus = userdata;
	struct request request;
	int r, process_fd, holder;

	caller = bus_sender(bus, m);
	if (!caller || bus_decides_later(bus, m, method_reserve))
		return 1;
	r = bus_read_request(m, &request, &process_fd, &result);
	if (r >= 0 &&
	    bus_waits_for_masks(bus, bus_asked_class(bus, caller, &request), m, method_reserve))
		return 1;
	if (r >= 0)
		r = bus->host->reserve(bus->userdata, caller, &request, process_fd, &lease, &holder,
				       &result);
	if (r < 0)
		return bus_refuse(m, r, &result);
	/* Leases that shrink, move or are revoked have a limited time; then the call can be answered. */
	if (request.wait_usec == 0 &&
	    (lease->state == STATE_ACTIVATING || lease->wait.preempts || lease->wait.moves_usec))
		return bus_defer_reserve(bus, m, lease, holder);
	return bus_reply_reserve(
		bus, m, lease, &request, holder,
		state_names[lease->state == STATE_ACTIVATING ? STATE_WAITING : lease->state]);
}

/* The errors that Plan answers as the result "refused". */
static bool is_refusal(enum result_kind kind)
{
	return kind == RESULT_NO_CAPACITY || kind == RESULT_NEVER_FITS ||
	       kind == RESULT_QUOTA_EXCEEDED || kind == RESULT_NOT_PERMITTED;
}

/* Whether the request could fit after other leases have ended. */
static bool end_could_help(enum result_kind kind)
{
	return kind == RESULT_NO_CAPACITY || kind == RESULT_QUOTA_EXCEEDED;
}

/* A lease that starts inactive, or after borrowers have given back their CUs, is a grant. */
static const char *plan_result(const struct lease *proposal)
{
	if (!proposal)
		return "refused";
	return state_names[proposal->state == STATE_WAITING ? STATE_WAITING : STATE_GRANTED];
}

static int reply_plan(struct bus *bus, sd_bus_message *call, const struct lease *proposal,
		      const struct effects *effects, const struct result *result,
		      const struct advice *advice)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", plan_result(proposal));
	if (r >= 0)
		r = bus_append_partitions(reply, bus->arbiter, proposal, NULL, effects);
	if (r >= 0)
		r = bus_append_refusals(reply, result->refusals, result->n_refusals, advice,
					effects);
	return bus_send(reply, r);
}

/* The user and groups of PlanAs. What narrows a tenant to some programs matches none. */
static int read_user(const struct bus *bus, sd_bus_message *m, struct caller *ret,
		     struct result *result)
{
	const void *groups;
	size_t size;
	uint32_t uid;
	int r = sd_bus_message_read(m, "u", &uid);

	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', &groups, &size);
	if (r < 0)
		return r;
	if (uid == UINT32_MAX || size / sizeof(uint32_t) > CALLER_GROUPS)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "PlanAs takes a user, %u groups at the most", CALLER_GROUPS);
	*ret = (struct caller){ .uid = subuids_user(&bus->arbiter->settings->subuids, uid),
				.n_groups = size / sizeof(uint32_t) };
	if (size > 0)
		memcpy(ret->groups, groups, size);
	return 0;
}

/* Plan and PlanAs. */
static int method_plan(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(effects_done) struct effects effects = { 0 };
	bool other = strcmp(sd_bus_message_get_member(m), "PlanAs") == 0;
	const struct caller *caller;
	struct bus *bus = userdata;
	struct advice advice = { 0 };
	struct request request;
	struct caller user;
	int r, process_fd;

	caller = other ? bus_administrator(bus, m, method_plan, "plan for another user")
		       : bus_sender(bus, m);
	if (!caller || bus_decides_later(bus, m, method_plan))
		return 1;
	r = bus_read_request(m, &request, &process_fd, &result);
	if (r >= 0 && other)
		r = read_user(bus, m, &user, &result);
	if (other)
		caller = &user;
	if (r >= 0 &&
	    bus_waits_for_masks(bus, bus_asked_class(bus, caller, &request), m, method_plan))
		return 1;
	if (r >= 0)
		r = bus->host->plan(bus->userdata, caller, &request, &proposal, &effects, &result);
	if (r < 0 && !is_refusal(result.kind))
		return bus_refuse(m, r, &result);
	if (end_could_help(result.kind))
		r = arbiter_advise(bus->arbiter, caller, &request, &advice);
	return reply_plan(bus, m, proposal, &effects, &result,
			  r >= 0 && (advice.n > 0 || advice.cut) ? &advice : NULL);
}

static int method_observe_clients(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	if (bus_wait_for_clients(userdata, false, m, method_observe_clients))
		return 1;
	return sd_bus_reply_method_return(m, NULL);
}

/* The caller may. The names in the configuration are looked up before. */
static int reload(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct bus *bus = userdata;
	int r;

	if (bus_waits_for_names(bus, m, reload))
		return 1;
	r = bus->host->reload(bus->userdata, &result);
	if (r < 0)
		return bus_refuse(m, r, &result);
	return sd_bus_reply_method_return(m, NULL);
}

static int method_reload(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	if (!bus_administrator(userdata, m, method_reload, "reload the configuration"))
		return 1;
	return reload(m, userdata, error);
}

/* Drain and Undrain. */
static int method_drain(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	_cleanup_(result_done) struct result result = { 0 };
	bool drain = strcmp(sd_bus_message_get_member(m), "Drain") == 0;
	struct bus *bus = userdata;
	const char *gpu;
	int r;

	if (!bus_administrator(bus, m, method_drain, drain ? "drain a GPU" : "undrain a GPU"))
		return 1;
	r = sd_bus_message_read(m, "s", &gpu);
	if (r >= 0)
		r = bus->host->drain(bus->userdata, gpu, drain, &result);
	if (r < 0)
		return bus_refuse(m, r, &result);
	return sd_bus_reply_method_return(m, NULL);
}

BUS_GETTER(get_version)
{
	const struct bus *bus = userdata;

	return sd_bus_message_append(reply, "s", bus->host->version);
}

BUS_GETTER(get_queue_budgets)
{
	const struct bus *bus = userdata;

	return bus_append_text(reply, bus->host->queue_budgets(bus->userdata));
}

BUS_GETTER(get_late_processes)
{
	const struct bus *bus = userdata;
	struct late_user user;

	bus_open(reply, "{uu}");
	for (size_t i = 0; bus->host->late_user(bus->userdata, i, &user); i++)
		sd_bus_message_append(reply, "{uu}", user.uid, user.processes);
	return bus_close(reply);
}

BUS_GETTER(get_tenants)
{
	const struct bus *bus = userdata;
	const struct settings *settings = bus->arbiter->settings;

	bus_open(reply, "s");
	for (size_t i = 0; i < settings->n_tenants; i++)
		bus_append_text(reply, settings->tenants[i].name);
	return bus_close(reply);
}

BUS_GETTER(get_restart_keys)
{
	const struct bus *bus = userdata;
	const struct settings *settings = bus->arbiter->settings;

	bus_open(reply, "s");
	if (settings->restart_for_backend)
		sd_bus_message_append(reply, "s", "backend");
	if (settings->restart_for_simulate)
		sd_bus_message_append(reply, "s", "simulate");
	return bus_close(reply);
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS(
		"Reserve", SD_BUS_ARGS("aa{sv}", wants, "a{sv}", options),
		SD_BUS_RESULT("o", lease, "h", holder, "s", state, "aa{sv}", partitions),
		method_reserve, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"Plan", SD_BUS_ARGS("aa{sv}", wants, "a{sv}", options),
		SD_BUS_RESULT("s", result, "aa{sv}", partitions, "aa{sv}", refusals), method_plan,
		SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"PlanAs", SD_BUS_ARGS("aa{sv}", wants, "a{sv}", options, "u", uid, "au", groups),
		SD_BUS_RESULT("s", result, "aa{sv}", partitions, "aa{sv}", refusals), method_plan,
		SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ObserveClients", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
				method_observe_clients, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reload,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Drain", SD_BUS_ARGS("s", gpu), SD_BUS_NO_RESULT, method_drain,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Undrain", SD_BUS_ARGS("s", gpu), SD_BUS_NO_RESULT, method_drain,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReadSlots", SD_BUS_ARGS("s", gpu),
				SD_BUS_RESULT("aa{sv}", slots, "a{sv}", facts),
				bus_method_read_slots, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReadLimits", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a{sv}", limits, "aa{sv}", users),
				bus_method_read_limits, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReadUsage", SD_BUS_ARGS("t", since),
				SD_BUS_RESULT("aa{sv}", usage, "a{sv}", facts),
				bus_method_read_usage, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"ReadCounters", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("aa{sv}", tenants, "aa{sv}", durations, "a{sv}", facts),
		bus_method_read_counters, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Tenants", "as", get_tenants, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("RestartKeys", "as", get_restart_keys, 0,
			SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("QueueBudgets", "s", get_queue_budgets, 0,
			SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("LateProcesses", "a{uu}", get_late_processes, 0, 0),
	SD_BUS_VTABLE_END,
};

int bus_export_arbiter(struct bus *bus)
{
	return sd_bus_add_object_vtable(bus->sd, NULL, GPUARB_PATH, GPUARB_INTERFACE, vtable, bus);
}

void bus_tell_tenants(struct bus *bus)
{
	bus->unproved = true;
	sd_bus_emit_properties_changed(bus->sd, GPUARB_PATH, GPUARB_INTERFACE, "Tenants",
				       "RestartKeys", NULL);
}

void bus_tell_queue_budgets(struct bus *bus)
{
	bus->unproved = true;
	sd_bus_emit_properties_changed(bus->sd, GPUARB_PATH, GPUARB_INTERFACE, "QueueBudgets",
				       NULL);
}
