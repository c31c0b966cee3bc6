/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the holder of a lease asks about it, and what it can read without asking. */

#include <errno.h>
#include <inttypes.h>

#include "dbus/names.h"
#include "libgpuarb/agent/agent.h"

static int lease_call(struct gpuarb_lease *lease, const char *member, int type, const void *value)
{
	return call_simple(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			   member, type, value);
}

GPUARB_EXPORT int gpuarb_lease_release(struct gpuarb_lease *lease)
{
	struct gpuarb *gpuarb;
	int r;

	if (!lease)
		return -EINVAL;

	gpuarb = lease->gpuarb;
	begin(gpuarb);
	r = done(gpuarb, call_release(gpuarb, lease->info.id));
	gpuarb_lease_close(lease);
	return r;
}

void lease_abandon(struct gpuarb_lease *lease)
{
	call_tell(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
		  "Release");
}

GPUARB_EXPORT int gpuarb_lease_resize(struct gpuarb_lease *lease, const struct gpuarb_want *wants,
				      size_t n)
{
	int r;

	if (!lease)
		return -EINVAL;

	r = gpuarb_resize(lease->gpuarb, lease->info.id, wants, n);
	return r < 0 ? r : done(lease->gpuarb, lease_refresh(lease));
}

GPUARB_EXPORT int gpuarb_lease_acknowledge(struct gpuarb_lease *lease)
{
	dbus_uint64_t generation;

	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	generation = lease->info.generation;
	/* Of one that is being revoked it says that it may be taken, whatever its queues have. */
	if (lease->agent && !lease_is(lease, "revoking") &&
	    !agent_has_applied(lease->agent, generation))
		return done(lease->gpuarb, fail(lease->gpuarb, -EBUSY,
						"the agent of lease %" PRIu64
						" has not applied generation %" PRIu64 " yet: "
						"gpuarb_lease_agent_error() says whether it can",
						lease->info.id, lease->info.generation));
	return done(lease->gpuarb, lease_call(lease, "Acknowledge", DBUS_TYPE_UINT64, &generation));
}

int lease_bind_process(struct gpuarb_lease *lease)
{
	int r;

	if (lease->process_fd < 0)
		return 0;

	r = lease_call(lease, "Bind", DBUS_TYPE_UNIX_FD, &lease->process_fd);
	if (r >= 0)
		close_fd(&lease->process_fd);
	return r;
}

GPUARB_EXPORT int gpuarb_lease_bind(struct gpuarb_lease *lease, int process_fd)
{
	struct gpuarb *gpuarb;
	int r;

	if (!lease)
		return -EINVAL;

	gpuarb = lease->gpuarb;
	begin(gpuarb);
	r = check_fd(gpuarb, "process_fd", process_fd);
	if (r >= 0)
		r = lease_call(lease, "Bind", DBUS_TYPE_UNIX_FD, &process_fd);
	return done(gpuarb, r);
}

/* Reads (v), a number. */
static int read_position(struct gpuarb *gpuarb, DBusMessage *reply, unsigned *ret)
{
	DBusMessageIter iter, value;
	dbus_uint32_t number;

	dbus_message_iter_init(reply, &iter);
	dbus_message_iter_recurse(&iter, &value);
	if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_UINT32)
		return misunderstood(gpuarb, "Get", "Position");
	dbus_message_iter_get_basic(&value, &number);
	*ret = number;
	return 0;
}

GPUARB_EXPORT int gpuarb_lease_position(struct gpuarb_lease *lease, unsigned *ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r;

	if (!lease || !ret)
		return -EINVAL;

	begin(lease->gpuarb);
	r = call_property(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			  "Position", &reply);
	if (r >= 0)
		r = read_position(lease->gpuarb, reply, ret);
	return done(lease->gpuarb, r);
}

GPUARB_EXPORT int gpuarb_lease_fd(const struct gpuarb_lease *lease)
{
	return lease ? lease->fd : -EINVAL;
}

GPUARB_EXPORT uint64_t gpuarb_lease_id(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.id : 0;
}

GPUARB_EXPORT uint64_t gpuarb_lease_generation(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.generation : 0;
}

GPUARB_EXPORT const char *gpuarb_lease_state(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.state : "";
}

GPUARB_EXPORT const char *gpuarb_lease_reason(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.reason : "";
}

GPUARB_EXPORT uint64_t gpuarb_lease_deadline(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.deadline : 0;
}

GPUARB_EXPORT size_t gpuarb_lease_partitions(const struct gpuarb_lease *lease)
{
	return lease ? lease->info.n_partitions : 0;
}

GPUARB_EXPORT const struct gpuarb_partition *
gpuarb_lease_partition(const struct gpuarb_lease *lease, size_t i)
{
	return i < gpuarb_lease_partitions(lease) ? &lease->info.partitions[i] : NULL;
}

GPUARB_EXPORT const char *gpuarb_lease_gpu(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->gpu : NULL;
}

GPUARB_EXPORT const uint32_t *gpuarb_lease_cu_mask(const struct gpuarb_lease *lease, size_t i,
						   size_t *ret_words)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	if (ret_words)
		*ret_words = partition ? partition->cu_mask_words : 0;
	return partition ? partition->cu_mask : NULL;
}

GPUARB_EXPORT unsigned gpuarb_lease_cus(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->cus : 0;
}

GPUARB_EXPORT unsigned gpuarb_lease_effective_cus(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->effective_cus : 0;
}

GPUARB_EXPORT unsigned gpuarb_lease_queues(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->queues : 0;
}

GPUARB_EXPORT unsigned gpuarb_lease_streams(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->streams : 0;
}

GPUARB_EXPORT unsigned gpuarb_lease_processes(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->processes : 0;
}

GPUARB_EXPORT unsigned gpuarb_lease_priority(const struct gpuarb_lease *lease, size_t i)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	return partition ? partition->priority : 0;
}
