/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What libgpuarb and libgpuarb-agent.so receive. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dbus/record.h"
#include "fuzz.h"
#include "libgpuarb/agent/link.h"
#include "libgpuarb/connection/read.h"
#include "libgpuarb/lease/environment.h"
#include "libgpuarb/lease/lease-handle.h"
#include "libgpuarb/lease/visible.h"

static void check_text(const char *text)
{
	CHECK(text && strlen(text) < SIZE_MAX);
}

static void check_partitions(const struct gpuarb_partition *rows, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		check_text(rows[i].gpu);
		check_text(rows[i].tier);
		for (size_t k = 0; k < rows[i].cu_mask_words; k++)
			sum |= rows[i].cu_mask[k];
		for (size_t k = 0; k < rows[i].n_gaps; k++)
			check_text(rows[i].gaps[k]);
		for (size_t k = 0; k < rows[i].n_shader_engines; k++)
			sum |= rows[i].shader_engines[k];
	}
	CHECK(n > 0 || sum == 0);
}

FUZZ(record)
{
	struct gpuarb_lease_info info = { 0 };
	struct arena arena = { NULL };
	struct record_facts facts;
	int r = record_read(data, size, &arena, &info, &facts);

	CHECK(r == 0 || r == 1 || r == -EPROTO);
	if (r == 1) {
		check_text(info.state);
		check_text(info.reason);
		check_partitions(info.partitions, info.n_partitions);
	}
	arena_clear(&arena);
}

/* ---- answers of the daemon ----------------------------------------------------------------- */

typedef int read_t(DBusMessageIter *iter, struct arena *arena, const char **ret_key);

static int read_a_lease(DBusMessageIter *iter, struct arena *arena, const char **ret_key)
{
	struct gpuarb_lease_info info;
	struct lease_facts facts;
	int r = read_lease(iter, arena, &info, &facts, ret_key);

	if (r >= 0) {
		check_text(info.state);
		check_partitions(info.partitions, info.n_partitions);
	}
	return r;
}

static int read_a_gpu(DBusMessageIter *iter, struct arena *arena, const char **ret_key)
{
	struct gpuarb_gpu gpu;
	struct gpu_facts facts;
	int r = read_gpu(iter, arena, &gpu, &facts, ret_key);

	if (r >= 0)
		check_text(gpu.name);
	return r;
}

static int read_places(DBusMessageIter *iter, struct arena *arena, const char **ret_key)
{
	const struct gpuarb_partition *rows;
	size_t n;
	int r = read_partitions(iter, arena, &rows, &n, ret_key);

	if (r >= 0)
		check_partitions(rows, n);
	return r;
}

static int read_reasons(DBusMessageIter *iter, struct arena *arena, const char **ret_key)
{
	struct refusals refusals = { 0 };
	int r = read_refusals(iter, arena, &refusals, ret_key);

	for (size_t i = 0; r >= 0 && i < refusals.n; i++)
		check_text(refusals.rows[i].reason);
	return r;
}

static int read_effect(DBusMessageIter *iter, struct arena *arena, const char **)
{
	const struct gpuarb_effects *effects = NULL;

	return read_effects(iter, arena, &effects);
}

static void read_slots(DBusMessage *m)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_slots slots = { .n = 0 };
	const char *key = "";
	int r;

	if (!dbus_message_has_signature(m, "aa{sv}a{sv}"))
		return;
	r = read_arguments(m, slots_arguments, SLOTS_ARGUMENTS, &arena, &slots, &key);
	CHECK(r == 0 || (r == -EPROTO && key));
}

/* Calls the reader if the body has the signature, which the caller of the reader checks. */
static void read_if(DBusMessage *m, const char *signature, read_t *read)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	const char *key = "";
	int r;

	if (!dbus_message_has_signature(m, signature))
		return;
	dbus_message_iter_init(m, &iter);
	r = read(&iter, &arena, &key);
	CHECK(r == 0 || (r == -EPROTO && key));
}

/* A message as it comes from the bus. */
FUZZ(reply)
{
	DBusMessage *m = dbus_message_demarshal((const char *)data, (int)size, NULL);
	uint64_t id;

	if (!m)
		return;
	if (dbus_message_get_path(m))
		(void)path_number(dbus_message_get_path(m), "/org/gpuarb/Arbiter1/lease/", &id);
	read_if(m, "a{sv}", read_a_lease);
	read_if(m, "a{sv}", read_a_gpu);
	read_if(m, "aa{sv}", read_places);
	read_if(m, "aa{sv}", read_reasons);
	read_if(m, "aa{sv}", read_effect);
	read_slots(m);
	dbus_message_unref(m);
}

/* ---- grants of gpuarb-agent ------------------------------------------------------------------ */

FUZZ(grant)
{
	static struct link link = { .fd = -1 };
	static int other = -1;
	struct agent_grant grant;
	struct stat st;
	int fds[2], r;

	if (link.fd < 0) {
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
		CHECK(fstat(fds[0], &st) == 0);
		link = (struct link){ .fd = fds[0], .inode = st.st_ino };
		other = fds[1];
	}
	if (size == 0 || send(other, data, size, MSG_DONTWAIT) < 0)
		return;
	r = link_receive(&link, 0, &grant);
	CHECK(r == 1 || r == -EPROTO);
	for (size_t i = 0; r == 1 && i < grant.n_partitions; i++)
		CHECK(grant.partitions[i].n_words <= MASK_WORDS &&
		      grant.partitions[i].n_environment <= MASK_WORDS);
}

/* ---- environment variables of a program -------------------------------------------------------- */

/* Each variable has the same value. */
static const char *any_variable(void *userdata, const char *name)
{
	(void)name;
	return userdata;
}

FUZZ(environment)
{
	struct topology_gpu gpus[] = { { 7, 0x1122334400000001, 90006, 1 },
				       { 8, 0x1122334400000002, 90402, 8 },
				       { 9, 0, 110000, 1 } };
	const struct topology topology = { gpus, 3 };
	char *text = fuzz_text(data, size);
	struct mask mask;
	struct gpuarb gpuarb = { .references = 1 };
	const struct visible visible = { &gpuarb, &topology, any_variable, text };
	size_t order[3], n = visible_parse(text, &topology, order);
	bool shown[3];
	int r = visible_find(&visible, shown);

	CHECK(n <= 3);
	for (size_t i = 0; i < n; i++)
		CHECK(order[i] < 3 && (i == 0 || order[i] != order[0]));
	CHECK(r == -ENODEV || (r == 1 && (shown[0] || shown[1] || shown[2])));
	handle_begin(&gpuarb);
	for (size_t i = 0; i < 3; i++)
		if (environment_mask(text, i, &mask))
			CHECK(mask.words <= MASK_WORDS);
	free(text);
}
