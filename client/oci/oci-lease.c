/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/oci-lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "dbus/names.h"
#include "util/base.h"
#include "util/fd.h"

#define CALL_USEC UINT64_C(20000000) /* less than container engines wait for a hook */
#define GPUS REQUEST_WANTS
#define MASK_WORDS 64U
#define NODES "/sys/class/kfd/kfd/topology/nodes"

/* A partition as variables need it. */
struct part {
	uint32_t kfd_gpu_id, queues, processes, streams, effective_cus;
	uint32_t mask[MASK_WORDS];
	size_t words;
};

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

static int append_number(sd_bus_message *m, const char *key, uint32_t value)
{
	return value == 0 ? 0 : sd_bus_message_append(m, "{sv}", key, "u", value);
}

static int append_text(sd_bus_message *m, const char *key, const char *value)
{
	return !value ? 0 : sd_bus_message_append(m, "{sv}", key, "s", value);
}

static int append_want(sd_bus_message *m, const struct typed_want *typed)
{
	const struct gpuarb_want *want = &typed->want;
	int r = sd_bus_message_open_container(m, 'a', "{sv}");

	if (r >= 0)
		r = append_text(m, "gpu", want->gpu);
	if (r >= 0)
		r = append_number(m, "cus", want->cus);
	if (r >= 0)
		r = append_number(m, "cus-percent", typed->share.cus);
	if (r >= 0)
		r = append_number(m, "queues", want->queues);
	if (r >= 0)
		r = append_number(m, "processes", want->processes);
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
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_request(sd_bus_message *m, const struct command *command)
{
	int r = sd_bus_message_open_container(m, 'a', "a{sv}");

	if (r >= 0)
		r = append_want(m, &command->wants[0]);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : append_options(m, &command->options);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static int read_mask(sd_bus_message *m, struct part *part)
{
	const void *words;
	size_t size;
	int r = sd_bus_message_enter_container(m, 'v', "au");

	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', &words, &size);
	if (r >= 0 && size > sizeof(part->mask))
		return -E2BIG;
	if (r >= 0) {
		memcpy(part->mask, words, size);
		part->words = size / sizeof(part->mask[0]);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_entry(sd_bus_message *m, struct part *part)
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

static int read_part(sd_bus_message *m, struct part *ret)
{
	int r;

	*ret = (struct part){ .words = 0 };
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = read_entry(m, ret);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_parts(sd_bus_message *m, struct part *parts, size_t *ret_n)
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

/* ---- variables ----------------------------------------------------------------------------- */

/* One line "NAME VALUE" of the properties of a node, or the only number of its file gpu_id. */
static uint64_t read_node(unsigned node, const char *file, const char *name)
{
	_cleanup_(freep) char *line = NULL;
	char path[128];
	uint64_t value = 0;
	size_t size = 0, n = strlen(name);
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%u/%s", node, file);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0)
		if (strncmp(line, name, n) == 0)
			value = strtoull(line + n, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* A UUID, because a container may see fewer GPUs and number them otherwise; the number where the GPU has none. place: in
 * the lease, of a simulated GPU. */
static void visible_name(uint32_t kfd_gpu_id, size_t place, char name[static 32])
{
	unsigned gpu = 0;

	for (unsigned node = 0; kfd_gpu_id > 0 && node < 1024; node++) {
		uint64_t id = read_node(node, "gpu_id", ""), unique;

		gpu += id > 0 && id != kfd_gpu_id;
		if (id != kfd_gpu_id)
			continue;
		unique = read_node(node, "properties", "unique_id ");
		if (unique > 0)
			snprintf(name, 32, "GPU-%016" PRIx64, unique);
		else
			snprintf(name, 32, "%u", gpu);
		return;
	}
	snprintf(name, 32, "%zu", place);
}

/* Without an effect where there is no room: 64 GPUs with masks of 64 words do not exist. */
__attribute__((format(printf, 2, 3))) static void add(char text[static OCI_LEASE_VARIABLE],
						      const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, OCI_LEASE_VARIABLE - used, format, args);
	va_end(args);
}

static void add_mask(char text[static OCI_LEASE_VARIABLE], const struct part *part)
{
	size_t words = part->words;

	while (words > 1 && part->mask[words - 1] == 0)
		words--;
	add(text, "0x%" PRIx32, words > 0 ? part->mask[words - 1] : 0);
	while (words-- > 1)
		add(text, "%08" PRIx32, part->mask[words - 1]);
}

/* One queue is ROCr's, and each masked stream has its own. */
static unsigned hip_queues(const struct part *part)
{
	unsigned each = part->queues / max_u(part->processes, 1);

	return max_u(each - min_u(each, 1 + part->streams), 1);
}

static void write_variables(const struct part *parts, size_t n, struct oci_lease *lease)
{
	static const char *const starts[OCI_LEASE_VARIABLES] = {
		"ROCR_VISIBLE_DEVICES=", "HSA_CU_MASK=",         "GPUARB_EFFECTIVE_CUS=",
		"GPUARB_LEASE=",         "GPU_MAX_HW_QUEUES=",   "HSA_CU_MASK_SKIP_INIT",
		"HIP_VISIBLE_DEVICES",   "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
	};
	unsigned queues = UINT32_MAX;
	char name[32];

	for (size_t i = 0; i < OCI_LEASE_VARIABLES; i++)
		snprintf(lease->variables[i], OCI_LEASE_VARIABLE, "%s", starts[i]);
	for (size_t i = 0; i < n; i++) {
		visible_name(parts[i].kfd_gpu_id, i, name);
		add(lease->variables[0], "%s%s", i > 0 ? "," : "", name);
		add(lease->variables[1], "%s%zu:", i > 0 ? ";" : "", i);
		add_mask(lease->variables[1], &parts[i]);
		add(lease->variables[2], "%s%" PRIu32, i > 0 ? "," : "", parts[i].effective_cus);
		queues = min_u(queues, hip_queues(&parts[i]));
	}
	add(lease->variables[3], "%" PRIu64, lease->id);
	add(lease->variables[4], "%u", queues);
}

/* ---- leases -------------------------------------------------------------------------------- */

static int read_lease(sd_bus_message *reply, struct oci_lease *ret,
		      char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(freep) struct part *parts = calloc(GPUS, sizeof(*parts));
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
	write_variables(parts, n, ret);
	ret->holder = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return ret->holder < 0 ? -errno : 0;
}

int oci_lease_reserve(const struct command *command, struct oci_lease *ret,
		      char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
	int r = bus_open(&bus, why);

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
