/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue slots of a GPU, from ReadSlots. */

#include <errno.h>
#include <stdlib.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

struct gpuarb_slots {
	struct arena arena;
	struct slots_facts facts;
	const struct gpuarb_queue_slot *rows;
	size_t n;
};

DEFINE_CLEANUP(struct gpuarb_slots *, gpuarb_slots_free)

static int call_slots(struct gpuarb *gpuarb, const char *gpu, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	if (!dbus_validate_utf8(gpu, NULL))
		return fail(gpuarb, -EINVAL, "gpu is not UTF-8");
	r = call_new(GPUARB_PATH, GPUARB_INTERFACE, "ReadSlots", &call, DBUS_TYPE_STRING, &gpu,
		     DBUS_TYPE_INVALID);
	return r < 0 ? r : call_send(gpuarb, call, "aa{sv}a{sv}", ret);
}

static int slots_new(struct gpuarb *gpuarb, const char *gpu, struct gpuarb_slots **ret)
{
	_cleanup_(gpuarb_slots_freep) struct gpuarb_slots *slots = calloc(1, sizeof(*slots));
	_cleanup_(free_message) DBusMessage *reply = NULL;
	const char *key = NULL;
	DBusMessageIter iter;
	int r;

	if (!slots)
		return -ENOMEM;
	r = call_slots(gpuarb, gpu, &reply);
	if (r < 0)
		return r;
	dbus_message_iter_init(reply, &iter);
	r = read_slots(&iter, &slots->arena, &slots->rows, &slots->n, &slots->facts, &key);
	if (r < 0)
		return r == -EPROTO ? fail_answer(gpuarb, "ReadSlots", key) : r;
	*ret = TAKE_PTR(slots);
	return 0;
}

GPUARB_EXPORT int gpuarb_read_slots(struct gpuarb *gpuarb, const char *gpu,
				    struct gpuarb_slots **ret)
{
	HANDLE_BEGIN(gpuarb && gpu && ret, gpuarb);
	return handle_end(gpuarb, slots_new(gpuarb, gpu, ret));
}

GPUARB_EXPORT void gpuarb_slots_free(struct gpuarb_slots *slots)
{
	arena_object_free(slots);
}

GPUARB_EXPORT const struct gpuarb_queue_slot *gpuarb_slots_get(const struct gpuarb_slots *slots,
							       size_t i)
{
	return slots && i < slots->n ? &slots->rows[i] : NULL;
}

GPUARB_EXPORT const struct gpuarb_queue_slot *gpuarb_slots_sdma(const struct gpuarb_slots *slots,
								size_t i)
{
	return slots && i < slots->facts.n_sdma ? &slots->facts.sdma[i] : NULL;
}

GPUARB_EXPORT uint64_t gpuarb_slots_usec(const struct gpuarb_slots *slots)
{
	return slots ? slots->facts.usec : 0;
}

GPUARB_EXPORT unsigned gpuarb_slots_queues(const struct gpuarb_slots *slots, unsigned *ret_without)
{
	if (ret_without)
		*ret_without = slots ? slots->facts.without_slot : 0;
	return slots ? slots->facts.queues : 0;
}
