/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/lease-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

#define STRING_MAX 1024U /* more than the daemon accepts for any string */
#define WANTS_MAX 256U

int check_string(struct gpuarb *gpuarb, const char *name, const char *string)
{
	if (!string)
		return 0;
	if (strnlen(string, STRING_MAX) == STRING_MAX)
		return fail(gpuarb, -EINVAL, "%s is longer than %u bytes", name, STRING_MAX - 1);
	if (!dbus_validate_utf8(string, NULL))
		return fail(gpuarb, -EINVAL, "%s is not UTF-8", name);
	return 0;
}

int check_fd(struct gpuarb *gpuarb, const char *name, int fd)
{
	if (fcntl(fd, F_GETFD) < 0)
		return fail(gpuarb, -EINVAL, "%s: %d is not an open file descriptor", name, fd);
	return 0;
}

/*
 * Copies a structure of the program, whose size is that of the header it was compiled with, at
 * least that of gpuarb 0.1; later members are 0 then. A longer structure of a newer header is
 * accepted if its additional bytes are 0.
 */
static int copy_sized(struct gpuarb *gpuarb, const char *init, const void *from, size_t have,
		      size_t least, void *ret, size_t size)
{
	const unsigned char *bytes = from;

	if (have < least || have > 4 * size)
		return fail(gpuarb, -EINVAL,
			    "size is %zu instead of %zu: initialise the structure with %s", have,
			    size, init);
	for (size_t i = size; i < have; i++)
		if (bytes[i] != 0)
			return fail(
				gpuarb, -EOPNOTSUPP,
				"this libgpuarb is older than the header of the program and does "
				"not know all members that it sets");
	memset(ret, 0, size);
	memcpy(ret, from, have < size ? have : size);
	return 0;
}

/* Without memory libdbus 1.14 leaves a copy of the parent in ret, which seems open. Abandoning it
 * would free memory of the parent twice. */
static bool open_in(DBusMessageIter *parent, int type, const char *signature, DBusMessageIter *ret)
{
	static const DBusMessageIter closed = DBUS_MESSAGE_ITER_INIT_CLOSED;

	if (dbus_message_iter_open_container(parent, type, signature, ret))
		return true;
	*ret = closed;
	return false;
}

static bool put(DBusMessageIter *dict, const char *key, int type, const void *value)
{
	const char signature[] = { (char)type, '\0' };
	DBusMessageIter entry = DBUS_MESSAGE_ITER_INIT_CLOSED;
	DBusMessageIter variant = DBUS_MESSAGE_ITER_INIT_CLOSED;

	if (open_in(dict, DBUS_TYPE_DICT_ENTRY, NULL, &entry) &&
	    dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &key) &&
	    open_in(&entry, DBUS_TYPE_VARIANT, signature, &variant) &&
	    dbus_message_iter_append_basic(&variant, type, value) &&
	    dbus_message_iter_close_container(&entry, &variant) &&
	    dbus_message_iter_close_container(dict, &entry))
		return true;

	dbus_message_iter_abandon_container_if_open(&entry, &variant);
	dbus_message_iter_abandon_container_if_open(dict, &entry);
	return false;
}

/* ---- what is requested ------------------------------------------------------------------- */

/* A member that is not sent if it is 0, NULL, or the default. Types as of struct field; 'P': a priority, 'h': a
 * file descriptor or -1. */
struct sent {
	struct field field;
	const char *text; /* the default of 's' */
	uint32_t number;  /* the default of 'u' */
};

/* clang-format off */
#define SENT(object, unused, member) { .field = MEMBER_FIELD(object, , member), .text = "" }
/* clang-format on */

static const struct sent want_members[] = {
	{ .field = FIELD('s', "gpu", gpuarb_want, gpu), .text = "any" },
	EACH(SENT, gpuarb_want, , cus, shader_engines, cus_min, cus_max, cus_percent,
	     cus_min_percent, cus_max_percent, exact),
	{ .field = FIELD('s', "shape", gpuarb_want, shape), .text = "rectangle" },
	EACH(SENT, gpuarb_want, , queues, streams),
	{ .field = FIELD('u', "processes", gpuarb_want, processes), .number = 1 },
	EACH(SENT, gpuarb_want, , sdma_queues, sdma_xgmi_queues, vram, cooperative),
	{ .field = FIELD('P', "priority", gpuarb_want, priority) },
	EACH(SENT, gpuarb_want, , isolation),
};

static const struct sent option_members[] = {
	{ .field = FIELD('s', "class", gpuarb_options, lease_class), .text = "" },
	EACH(SENT, gpuarb_options, , name, tenant, token, wait_usec, duration_usec, start_inactive,
	     adaptable, requeue, exclusive),
	{ .field = FIELD('h', "process", gpuarb_options, process_fd) },
};

static bool put_priority(DBusMessageIter *dict, const uint32_t *priority)
{
	const char *word = "by-class";

	if (*priority == GPUARB_PRIORITY_BY_CLASS)
		return put(dict, "priority", DBUS_TYPE_STRING, &word);
	return *priority == GPUARB_PRIORITY_DEFAULT ||
	       put(dict, "priority", DBUS_TYPE_UINT32, priority);
}

static bool put_member(DBusMessageIter *dict, const char *key, const struct sent *sent,
		       const void *member)
{
	dbus_bool_t yes = TRUE;

	switch (sent->field.type) {
	case 'P': return put_priority(dict, member);
	case 'h': return *(const int *)member == -1 || put(dict, key, DBUS_TYPE_UNIX_FD, member);
	case 'b': return !*(const bool *)member || put(dict, key, DBUS_TYPE_BOOLEAN, &yes);
	case 't': return *(const uint64_t *)member == 0 || put(dict, key, DBUS_TYPE_UINT64, member);
	case 's':
		return !*(const char *const *)member ||
		       strcmp(*(const char *const *)member, sent->text) == 0 ||
		       put(dict, key, DBUS_TYPE_STRING, member);
	default:
		return *(const uint32_t *)member == 0 ||
		       *(const uint32_t *)member == sent->number ||
		       put(dict, key, DBUS_TYPE_UINT32, member);
	}
}

static int put_members(struct gpuarb *gpuarb, DBusMessageIter *dict, const struct sent *sent,
		       size_t n, const void *object)
{
	for (; n > 0; sent++, n--) {
		const void *member = (const char *)object + sent->field.offset;
		char key[32];
		int r = 0;

		snprintf(key, sizeof(key), "%s", sent->field.key);
		for (char *p = key; (p = strchr(p, '_'));)
			*p = '-';
		if (sent->field.type == 's')
			r = check_string(gpuarb, key, *(const char *const *)member);
		if (r < 0 || !put_member(dict, key, sent, member))
			return r < 0 ? r : -ENOMEM;
	}
	return 0;
}

/* Appends a{sv}. */
static int append_members(struct gpuarb *gpuarb, DBusMessageIter *parent, const struct sent *sent,
			  size_t n, const void *object)
{
	DBusMessageIter dict = DBUS_MESSAGE_ITER_INIT_CLOSED;
	int r = -ENOMEM;

	if (open_in(parent, DBUS_TYPE_ARRAY, "{sv}", &dict))
		r = put_members(gpuarb, &dict, sent, n, object);
	if (r >= 0 && !dbus_message_iter_close_container(parent, &dict))
		r = -ENOMEM;
	dbus_message_iter_abandon_container_if_open(parent, &dict);
	return r;
}

/* Appends want i. All elements of the array have the size that the first one states. */
static int append_want(struct gpuarb *gpuarb, DBusMessageIter *array,
		       const struct gpuarb_want *wants, size_t i)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	const char *from = (const char *)wants + i * wants->size;
	int r;

	r = copy_sized(gpuarb, "GPUARB_WANT_INIT", from, wants->size,
		       offsetof(struct gpuarb_want, sdma_xgmi_queues), &want, sizeof(want));
	if (r < 0)
		return r;
	if (want.size != wants->size)
		return fail(gpuarb, -EINVAL,
			    "want %zu has another size than want 0: initialise it with "
			    "GPUARB_WANT_INIT",
			    i);

	return append_members(gpuarb, array, want_members, ARRAY_SIZE(want_members), &want);
}

static int append_wants(struct gpuarb *gpuarb, DBusMessage *m, const struct gpuarb_want *wants,
			size_t n)
{
	DBusMessageIter iter, array = DBUS_MESSAGE_ITER_INIT_CLOSED;
	int r = 0;

	if (!wants || n == 0 || n > WANTS_MAX)
		return fail(gpuarb, -EINVAL, "%zu wants are invalid: pass 1 to %u", wants ? n : 0,
			    WANTS_MAX);

	dbus_message_iter_init_append(m, &iter);
	if (!open_in(&iter, DBUS_TYPE_ARRAY, "a{sv}", &array))
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = append_want(gpuarb, &array, wants, i);
	if (r >= 0 && !dbus_message_iter_close_container(&iter, &array))
		r = -ENOMEM;

	dbus_message_iter_abandon_container_if_open(&iter, &array);
	return r;
}

static int append_options(struct gpuarb *gpuarb, DBusMessage *m,
			  const struct gpuarb_options *options)
{
	struct gpuarb_options copy = GPUARB_OPTIONS_INIT;
	DBusMessageIter iter;
	int r = 0;

	if (options)
		r = copy_sized(gpuarb, "GPUARB_OPTIONS_INIT", options, options->size,
			       offsetof(struct gpuarb_options, exclusive), &copy, sizeof(copy));
	if (r >= 0 && copy.process_fd != -1)
		r = check_fd(gpuarb, "process", copy.process_fd);
	if (r < 0)
		return r;

	if (!copy.bind_at_once)
		copy.process_fd = -1;
	dbus_message_iter_init_append(m, &iter);
	return append_members(gpuarb, &iter, option_members, ARRAY_SIZE(option_members), &copy);
}

int request_new(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		const struct gpuarb_want *wants, size_t n, const struct gpuarb_options *options,
		DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	r = call_new(path, interface, member, &call, DBUS_TYPE_INVALID);
	if (r >= 0)
		r = append_wants(gpuarb, call, wants, n);
	if (r >= 0)
		r = append_options(gpuarb, call, options);
	if (r >= 0)
		*ret = TAKE_PTR(call);
	return r;
}

/* ---- calls by the number of the lease ---------------------------------------------------- */

struct lease_path lease_path(uint64_t id)
{
	struct lease_path path;

	snprintf(path.text, sizeof(path.text), GPUARB_PATH_LEASE "/%" PRIu64, id);
	return path;
}

/* Whether a call that was repeated failed because its first attempt, whose answer was lost, was
 * carried out: then forgets the failure. */
static bool done_before(struct gpuarb *gpuarb, int r, int sign)
{
	if (r != sign || !gpuarb->repeated)
		return false;
	handle_begin(gpuarb);
	return true;
}

int lease_call_release(struct gpuarb *gpuarb, uint64_t id)
{
	int r = call_simple(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Release",
			    DBUS_TYPE_INVALID, NULL);

	return done_before(gpuarb, r, -ENOENT) ? 0 : r;
}

GPUARB_EXPORT int gpuarb_release(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_release(gpuarb, id));
}

GPUARB_EXPORT int gpuarb_resize(struct gpuarb *gpuarb, uint64_t id, const struct gpuarb_want *wants,
				size_t n)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	HANDLE_BEGIN(gpuarb, gpuarb);
	r = request_new(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Resize", wants, n,
			NULL, &call);
	if (r >= 0)
		r = call_send(gpuarb, call, NULL, NULL);
	return handle_end(gpuarb, r);
}

/* A method of the lease and the states that it leads to. */
struct change {
	const char *member;
	const char *states[2];
};

static const struct change activate = { "Activate", { "activating", "granted" } };
static const struct change deactivate = { "Deactivate", { "inactive" } };
static const struct change revoke = { "Revoke", { "revoking", "ending" } };
static const struct change terminate = { "Terminate", { "revoking", "ending" } };

static bool leads_to(const struct change *change, const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(change->states); i++)
		if (change->states[i] && strcmp(change->states[i], state) == 0)
			return true;
	return false;
}

/* After an attempt whose answer was lost the daemon refuses the next one with -EBADFD, because the
 * lease is in the new state already. */
static int send_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		       DBusMessage *call)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = call_send(gpuarb, call, NULL, NULL);
	const char *state;

	if (!done_before(gpuarb, r, -EBADFD))
		return r;
	r = call_property(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "State",
			  DBUS_TYPE_STRING, &reply, &state);
	if (r < 0 || leads_to(change, state))
		return r;
	return fail_as(gpuarb, GPUARB_ERROR_INVALID_STATE,
		       "lease %" PRIu64 " is %s: it cannot be changed by %s", id, state,
		       change->member);
}

int lease_call_set_active(struct gpuarb *gpuarb, uint64_t id, bool active)
{
	const struct change *change = active ? &activate : &deactivate;
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, change->member, &call,
			 DBUS_TYPE_INVALID);

	return r < 0 ? r : send_change(gpuarb, id, change, call);
}

GPUARB_EXPORT int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_set_active(gpuarb, id, true));
}

GPUARB_EXPORT int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_set_active(gpuarb, id, false));
}

static int call_revoke(struct gpuarb *gpuarb, const struct change *how, uint64_t id,
		       dbus_uint64_t grace_usec, const char *reason)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = check_string(gpuarb, "reason", reason);

	if (r >= 0)
		r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, how->member, &call,
			     DBUS_TYPE_UINT64, &grace_usec, DBUS_TYPE_STRING, &reason,
			     DBUS_TYPE_INVALID);
	if (r >= 0)
		r = send_change(gpuarb, id, how, call);
	return done_before(gpuarb, r, -ENOENT) ? 0 : r; /* the lease has ended since */
}

GPUARB_EXPORT int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec,
				const char *reason)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb,
			  call_revoke(gpuarb, &revoke, id, grace_usec, reason ? reason : ""));
}

GPUARB_EXPORT int gpuarb_terminate(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec,
				   const char *reason)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb,
			  call_revoke(gpuarb, &terminate, id, grace_usec, reason ? reason : ""));
}

GPUARB_EXPORT int gpuarb_drain(struct gpuarb *gpuarb, const char *gpu, bool drain)
{
	int r;

	HANDLE_BEGIN(gpuarb && gpu, gpuarb);
	r = check_string(gpuarb, "gpu", gpu);
	if (r >= 0)
		r = call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, drain ? "Drain" : "Undrain",
				DBUS_TYPE_STRING, &gpu);
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT int gpuarb_reload(struct gpuarb *gpuarb)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reload",
					      DBUS_TYPE_INVALID, NULL));
}

GPUARB_EXPORT int gpuarb_observe_clients(struct gpuarb *gpuarb)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE,
					      "ObserveClients", DBUS_TYPE_INVALID, NULL));
}
