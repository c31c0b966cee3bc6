/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/oci-lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "client/oci/oci-gpus.h"
#include "dbus/names.h"
#include "util/base.h"
#include "util/fd.h"

#define CALL_USEC UINT64_C(20000000) /* less than container engines wait for a hook */
#define GPUS REQUEST_WANTS

/* ---- calls --------------------------------------------------------------------------------- */

static int bus_open(sd_bus **ret, char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	const char *given = getenv("GPUARB_BUS_ADDRESS");
	const char *address = given && *given ? given : "unix:path=/run/dbus/system_bus_socket";
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "cannot connect to the bus at %s: %s", address,
			 strerror(-r));
		return r;
	}
	*ret = TAKE_PTR(bus);
	return 0;
}

static int call(sd_bus *bus, sd_bus_message *message, sd_bus_message **ret,
		char why[static OCI_LEASE_PROBLEM])
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_call(bus, message, CALL_USEC, &error, ret);

	if (r < 0)
		snprintf(why, OCI_LEASE_PROBLEM, "%s",
			 error.message ? error.message : strerror(-r));
	sd_bus_error_free(&error);
	return r;
}

static int call_new(sd_bus *bus, const char *path, const char *interface, const char *member,
		    sd_bus_message **ret)
{
	return sd_bus_message_new_method_call(bus, ret, GPUARB_BUS_NAME, path, interface, member);
}

/* ---- the request --------------------------------------------------------------------------- */

static int append_text(sd_bus_message *m, const char *key, const char *value)
{
	return !value ? 0 : sd_bus_message_append(m, "{sv}", key, "s", value);
}

static int append_want(sd_bus_message *m, const struct typed_want *typed)
{
	const struct gpuarb_want *want = &typed->want;
	const struct {
		const char *key;
		uint32_t value;
	} numbers[] = {
		{ "cus", want->cus },         { "cus-percent", typed->share.cus },
		{ "cus-min", want->cus_min }, { "cus-min-percent", typed->share.cus_min },
		{ "cus-max", want->cus_max }, { "cus-max-percent", typed->share.cus_max },
		{ "queues", want->queues },   { "processes", want->processes },
	};
	int r = sd_bus_message_open_container(m, 'a', "{sv}");

	if (r >= 0)
		r = append_text(m, "gpu", want->gpu);
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && r >= 0; i++)
		if (numbers[i].value > 0)
			r = sd_bus_message_append(m, "{sv}", numbers[i].key, "u", numbers[i].value);
	if (r >= 0 && want->vram > 0)
		r = sd_bus_message_append(m, "{sv}", "vram", "t", want->vram);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_options(sd_bus_message *m, const struct gpuarb_options *options)
{
	int r = sd_bus_message_open_container(m, 'a', "{sv}");

	if (r >= 0)
		r = append_text(m, "class", options->lease_class);
	if (r >= 0)
		r = append_text(m, "tenant", options->tenant);
	if (r >= 0)
		r = append_text(m, "name", options->name);
	if (r >= 0 && options->adaptable)
		r = sd_bus_message_append(m, "{sv}", "adaptable", "b", 1);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_request(sd_bus_message *m, const struct command *command)
{
	int r = sd_bus_message_open_container(m, 'a', "a{sv}");

	for (size_t i = 0; r >= 0 && i < command->n_wants; i++)
		r = append_want(m, &command->wants[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : append_options(m, &command->options);
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* The mask is in the message. */
static int read_mask(sd_bus_message *m, struct gpuarb_partition *part)
{
	const void *words;
	size_t size;
	int r = sd_bus_message_enter_container(m, 'v', "au");

	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', &words, &size);
	if (r >= 0) {
		part->cu_mask = words;
		part->cu_mask_words = size / sizeof(part->cu_mask[0]);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_entry(sd_bus_message *m, struct gpuarb_partition *part)
{
	const struct {
		const char *key;
		uint32_t *to;
	} numbers[] = {
		{ "kfd-gpu-id", &part->kfd_gpu_id },       { "queues", &part->queues },
		{ "processes", &part->processes },         { "streams", &part->streams },
		{ "effective-cus", &part->effective_cus },
	};
	const char *key;
	int r = sd_bus_message_read(m, "s", &key);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0)
			return sd_bus_message_read(m, "v", "u", numbers[i].to);
	return strcmp(key, "cu-mask") == 0 ? read_mask(m, part) : sd_bus_message_skip(m, "v");
}

static int read_part(sd_bus_message *m, struct gpuarb_partition *ret)
{
	int r;

	*ret = (struct gpuarb_partition){ .gpu = "" };
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = read_entry(m, ret);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_parts(sd_bus_message *m, struct gpuarb_partition *parts, size_t *ret_n)
{
	size_t n = 0;
	int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

	if (r < 0)
		return r;
	while ((r = sd_bus_message_enter_container(m, 'a', "{sv}")) > 0) {
		r = n < GPUS ? read_part(m, &parts[n++]) : -E2BIG;
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return r;
}

/* ---- leases -------------------------------------------------------------------------------- */

static int read_lease(sd_bus_message *reply, struct oci_lease *ret,
		      char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(freep) struct gpuarb_partition *parts = calloc(GPUS, sizeof(*parts));
	const char *path, *state;
	size_t n = 0;
	int fd, r = parts ? sd_bus_message_read(reply, "ohs", &path, &fd, &state) : -ENOMEM;

	if (r >= 0)
		r = read_parts(reply, parts, &n);
	if (r < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "cannot read the answer of gpuarbd: %s",
			 strerror(-r));
		return r;
	}
	if (strcmp(state, "granted") != 0 || n == 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "the lease is %s, and a container does not wait",
			 state);
		return -EBUSY;
	}
	ret->id = strtoull(strrchr(path, '/') + 1, NULL, 10);
	ret->variables = oci_variables(parts, n, ret->id);
	if (!ret->variables) {
		snprintf(why, OCI_LEASE_PROBLEM, "out of memory");
		return -ENOMEM;
	}
	ret->holder = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return ret->holder < 0 ? -errno : 0;
}

int oci_lease_reserve(struct json_object *config, struct command *command, struct oci_lease *ret,
		      char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
	int r = bus_open(&bus, why);

	if (r >= 0)
		r = oci_gpus_choose(bus, config, command, why);
	if (r < 0)
		return r;
	r = call_new(bus, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", &m);
	if (r >= 0)
		r = append_request(m, command);
	if (r < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "cannot make the request: %s", strerror(-r));
		return r;
	}
	r = call(bus, m, &reply, why);
	return r < 0 ? r : read_lease(reply, ret, why);
}

int oci_lease_bind(uint64_t id, pid_t pid, char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
	/* glibc has no pidfd_open() before 2.36. */
	_cleanup_fd_ int process = (int)syscall(SYS_pidfd_open, pid, 0U);
	char path[64];
	int r;

	if (process < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "no process %d: %s", (int)pid, strerror(errno));
		return -errno;
	}
	r = bus_open(&bus, why);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), GPUARB_PATH_LEASE "/%" PRIu64, id);
	r = call_new(bus, path, GPUARB_INTERFACE_LEASE, "Bind", &m);
	if (r >= 0)
		r = sd_bus_message_append(m, "h", process);
	if (r < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "cannot make the request: %s", strerror(-r));
		return r;
	}
	return call(bus, m, &reply, why);
}
