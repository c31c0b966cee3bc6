/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "bus/bus-clients.h"
#include "bus/bus-objects.h"
#include "bus/bus-polkit.h"
#include "bus/bus-read.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-signals.h"
#include "bus/bus-write.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "util/text.h"
#include "dbus/names.h"

/* As clients may see it. */
static const void *lease_at(const struct arbiter *arbiter, const char *path)
{
	const struct lease *lease;
	uint64_t id;

	if (bus_path_number(path, GPUARB_PATH_LEASE, &id) < 0)
		return NULL;
	lease = ledger_find(arbiter, id);
	return lease ? lease_shown(lease) : NULL;
}

static size_t count_leases(const struct arbiter *arbiter)
{
	return arbiter->n_leases;
}

static uint64_t lease_number(const struct bus *bus, size_t i)
{
	return bus->arbiter->leases[i]->id;
}

/* The lease may have ended since it was found, while the call waited for polkit. */
static uint64_t lease_id(sd_bus_message *call)
{
	uint64_t id = 0;

	bus_path_number(sd_bus_message_get_path(call), GPUARB_PATH_LEASE, &id);
	return id;
}

static enum lease_class class_of(const struct bus *bus, uint64_t id)
{
	const struct lease *lease = ledger_find(bus->arbiter, id);

	return lease ? lease->class : CLASS_BESTEFFORT;
}

/* What a method does for an owner of the lease. 1: the call is answered, or waits. */
typedef int owner_method_t(struct bus *bus, sd_bus_message *m, const struct caller *caller,
			   uint64_t id, struct result *result);

static int answer(sd_bus_message *call, int r, const struct result *result)
{
	if (r < 0)
		return bus_refuse(call, r, result);
	return r > 0 ? r : sd_bus_reply_method_return(call, NULL);
}

static int as_owner(struct bus *bus, sd_bus_message *m, sd_bus_message_handler_t handler,
		    owner_method_t *method)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct caller *caller = bus_owner(bus, m, handler, lease_id(m));

	return caller ? answer(m, method(bus, m, caller, lease_id(m), &result), &result) : 1;
}

/* Defines the handler of a method that has the body of an owner_method_t. */
#define OWNER_METHOD(name)                                                               \
	static owner_method_t do_##name;                                                 \
	static int method_##name(sd_bus_message *m, void *userdata, sd_bus_error *)      \
	{                                                                                \
		return as_owner(userdata, m, method_##name, do_##name);                  \
	}                                                                                \
	static int do_##name(struct bus *bus, sd_bus_message *m __attribute__((unused)), \
			     const struct caller *caller, uint64_t id, struct result *result)

OWNER_METHOD(release)
{
	return bus->host->release(bus->userdata, caller, id, result);
}

OWNER_METHOD(resize)
{
	struct request request;
	int r = bus_read_request(m, &request, NULL, result);

	if (r < 0)
		return r;
	if (bus_waits_for_masks(bus, class_of(bus, id), m, method_resize))
		return 1;
	return bus->host->resize(bus->userdata, caller, id, &request, result);
}

OWNER_METHOD(acknowledge)
{
	uint64_t generation;
	int r = sd_bus_message_read(m, "t", &generation);

	return r < 0 ? r : bus->host->acknowledge(bus->userdata, caller, id, generation, result);
}

OWNER_METHOD(bind)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r, process_fd;

	r = sd_bus_message_read(m, "h", &process_fd);
	if (r >= 0)
		r = bus->host->bind(bus->userdata, caller, id, process_fd, result);
	if (r >= 0)
		r = sd_bus_message_new_method_return(m, &reply);
	return r < 0 ? r : bus_send_settled(bus, m, reply, 0);
}

/* The lease is capped when a call under the filter has shown that gpuarbd answers it. */
OWNER_METHOD(cap)
{
	int listener, r = sd_bus_message_read(m, "h", &listener);

	return r < 0 ? r : bus->host->cap(bus->userdata, caller, id, listener, result);
}

/* Activate and Deactivate. */
OWNER_METHOD(activate)
{
	bool active = strcmp(sd_bus_message_get_member(m), "Activate") == 0;

	if (active && (bus_decides_later(bus, m, method_activate) ||
		       bus_waits_for_masks(bus, class_of(bus, id), m, method_activate)))
		return 1;
	return bus->host->activate(bus->userdata, caller, id, active, result);
}

static int end_lease(sd_bus_message *m, void *userdata, sd_bus_message_handler_t handler, bool kill)
{
	_cleanup_(result_done) struct result result = { 0 };
	char reason[REQUEST_TEXT];
	struct bus *bus = userdata;
	uint64_t grace_usec;
	const char *text;
	int r;

	if (!bus_administrator(bus, m, handler, "revoke a lease"))
		return 1;
	r = sd_bus_message_read(m, "ts", &grace_usec, &text);
	if (r < 0)
		return r;
	text_clean(reason, sizeof(reason), text);
	r = bus->host->revoke(bus->userdata, lease_id(m), grace_usec, reason, kill, &result);
	return answer(m, r, &result);
}

static int method_revoke(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	return end_lease(m, userdata, method_revoke, false);
}

static int method_terminate(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	return end_lease(m, userdata, method_terminate, true);
}

/* The weakest of the partitions'; of a lease that waits, the one that promises nothing. */
static const char *tier(const struct lease *lease)
{
	static const char *const tiers[] = { "cooperative", "verified", "capped", "hardware" };
	size_t t = lease->n_partitions > 0 ? ARRAY_SIZE(tiers) - 1 : 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		for (size_t weaker = 0; weaker < t; weaker++)
			if (strcmp(partition_tier(&lease->partitions[i]), tiers[weaker]) == 0)
				t = weaker;
	return tiers[t];
}

static int append_reason(sd_bus_message *m, const struct arbiter *arbiter,
			 const struct lease *lease)
{
	char buf[REQUEST_TEXT];

	return bus_append_text(m, arbiter_reason(arbiter, lease, buf));
}

/* No or one dictionary: the refusal of a lease that waits. */
static int append_waits_for(sd_bus_message *m, const struct lease *lease)
{
	bool refused = lease->state == STATE_WAITING && lease->refusal.gpu[0];

	return bus_append_refusals(m, &lease->refusal, refused, NULL, NULL);
}

/* The CUs of the base of each partition; of a fixed lease nothing. */
static int append_cus_min(sd_bus_message *m, const struct lease *lease)
{
	bus_open(m, "u");
	for (size_t i = 0; lease->adaptable && i < lease->n_partitions; i++)
		sd_bus_message_append(m, "u", cuset_count(&lease->partitions[i].adaptation->base));
	return bus_close(m);
}

/* clang-format off */
#define PROPERTIES(ROW)                                                                       \
	ROW(Id, "t", CONST, VALUE("t", lease->id))                                            \
	ROW(Name, "s", CONST, bus_append_text(reply, lease->name))                            \
	ROW(State, "s", CHANGES, VALUE("s", state_names[lease->state]))                        \
	ROW(Class, "s", CONST, VALUE("s", class_names[lease->class]))                          \
	ROW(Tenant, "s", CONST, bus_append_text(reply, lease->tenant))                        \
	ROW(OwnerUid, "u", CONST, VALUE("u", lease->owner))                                   \
	ROW(OwnerPid, "u", CONST, VALUE("u", (uint32_t)lease->pid))                           \
	ROW(OwnerUnit, "s", CONST, bus_append_text(reply, lease->unit))                       \
	ROW(Adaptable, "b", CONST, VALUE("b", lease->adaptable))                              \
	ROW(Generation, "t", CHANGES, VALUE("t", lease->generation))                          \
	ROW(Tier, "s", CHANGES, VALUE("s", tier(lease)))                                      \
	ROW(Verified, "b", CHANGES, VALUE("b", lease_is_verified(lease)))                     \
	ROW(Capped, "b", CHANGES, VALUE("b", lease->cap.active))                              \
	ROW(Uncapped, "s", 0, VALUE("s", lease_uncapped(lease)))                              \
	ROW(Alone, "b", CHANGES, VALUE("b", lease_is_alone(lease)))                           \
	ROW(Partitions, "aa{sv}", CHANGES, bus_append_partitions(reply, arbiter, lease, NULL, NULL)) \
	ROW(Position, "u", 0, VALUE("u", queue_position(arbiter, lease)))                \
	ROW(Reason, "s", CHANGES, append_reason(reply, arbiter, lease))                  \
	ROW(Drift, "aa{sv}", CHANGES, bus_append_drift(reply, arbiter, lease))           \
	ROW(Intruders, "aa{sv}", CHANGES, bus_append_intruders(reply, arbiter, lease))   \
	ROW(WaitsFor, "aa{sv}", 0, append_waits_for(reply, lease))                            \
	ROW(Deadline, "t", CHANGES, VALUE("t", lease->deadline_usec))                         \
	ROW(Since, "t", CHANGES, VALUE("t", lease->since_usec))                               \
	ROW(Duration, "t", CONST, VALUE("t", lease->duration_usec))                          \
	ROW(Moves, "t", CHANGES, VALUE("t", lease->lend.moves))                               \
	ROW(CusMin, "au", CHANGES, append_cus_min(reply, lease))                              \
	ROW(Disturbances, "t", CHANGES, VALUE("t", lease->lend.disturbances))                 \
	ROW(PausedCount, "t", CHANGES, VALUE("t", lease->pause.count))                        \
	ROW(PausedUsec, "t", CHANGES, VALUE("t", lease->pause.usec))                          \
	ROW(PausedSince, "t", CHANGES, VALUE("t", lease->pause.since_usec))                   \
	ROW(Cap, "b", 0, VALUE("b", bus_asks_for_cap(arbiter, lease)))                   \
	ROW(QueueRefusals, "t", 0, VALUE("t", lease->cap.refusals))                     \
	ROW(Resets, "t", CHANGES, VALUE("t", lease->reset.count))                             \
	ROW(EvictedCount, "t", CHANGES, VALUE("t", lease->evicted.count))                     \
	ROW(EvictedUsec, "t", CHANGES, VALUE("t", lease->evicted.usec))                       \
	ROW(EvictedSince, "t", CHANGES, VALUE("t", lease->evicted.since_usec))
/* clang-format on */

#define APPENDER(name, type, flags, append) BUS_APPENDER(lease, name, append)
PROPERTIES(APPENDER)

static const struct bus_property properties[] = { PROPERTIES(BUS_PROPERTY) };
_Static_assert(ARRAY_SIZE(properties) <= BUS_PROPERTIES_MAX, "bus_emit() has room for them");

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_release,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Resize", SD_BUS_ARGS("aa{sv}", wants, "a{sv}", options),
				SD_BUS_NO_RESULT, method_resize, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Activate", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_activate,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Deactivate", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_activate,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Acknowledge", SD_BUS_ARGS("t", generation), SD_BUS_NO_RESULT,
				method_acknowledge, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Bind", SD_BUS_ARGS("h", pidfd), SD_BUS_NO_RESULT, method_bind,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Cap", SD_BUS_ARGS("h", listener), SD_BUS_NO_RESULT, method_cap,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Revoke", SD_BUS_ARGS("t", grace_usec, "s", reason),
				SD_BUS_NO_RESULT, method_revoke, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Terminate", SD_BUS_ARGS("t", grace_usec, "s", reason),
				SD_BUS_NO_RESULT, method_terminate, SD_BUS_VTABLE_UNPRIVILEGED),
	PROPERTIES(BUS_PROPERTY_ROW) SD_BUS_VTABLE_END,
};

const struct bus_kind bus_leases = {
	.prefix = GPUARB_PATH_LEASE,
	.interface = GPUARB_INTERFACE_LEASE,
	.properties = properties,
	.n_properties = ARRAY_SIZE(properties),
	.vtable = vtable,
	.count = count_leases,
	.number = lease_number,
	.at = lease_at,
};

void bus_tell_lease(struct bus *bus, const struct lease *lease, unsigned touched)
{
	bus_answer_deferred(bus, lease, touched);
	if ((touched & (TOUCH_ADDED | TOUCH_REMOVED)) == (TOUCH_ADDED | TOUCH_REMOVED))
		return; /* it was never announced */
	if (touched & TOUCH_REMOVED)
		bus_signal(bus, &bus_leases, lease->id, CHANGE_REMOVED);
	else if (lease->unsignalled)
		return; /* InterfacesAdded will have its present state */
	else if (touched & TOUCH_ADDED)
		bus_signal(bus, &bus_leases, lease->id, CHANGE_ADDED);
	else if (touched & (TOUCH_CHANGED | TOUCH_COMMITTED | TOUCH_ENDING | TOUCH_REASON))
		bus_signal(bus, &bus_leases, lease->id, CHANGE_PROPERTIES);
}
