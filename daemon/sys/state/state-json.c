/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state-json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "sys/state/json-object.h"
#include "util/text.h"

#define ID_MAX ((UINT64_C(1) << 53) - 1) /* the largest integer of all JSON readers */
#define MASK_TEXT (CODEC_WORDS * sizeof("0x00000000,"))

/* ---- the members of saved objects ---------------------------------------------------- */

static const struct member identity[] = {
	RANGE_OF("id", struct lease, id, 1, ID_MAX),
	TEXT_OF("name", struct lease, name),
	TEXT_OF("tenant", struct lease, tenant),
	WORD_OF("class", struct lease, class, class_names, 0, CLASS_REALTIME),
	TEXT_OF("token", struct lease, token),
	NUMBER_OF("owner", struct lease, owner),
	RANGE_OF("pid", struct lease, pid, 0, INT32_MAX),
	TEXT_OF("unit", struct lease, unit),
	BOOL_OF("adaptable", struct lease, adaptable),
	WORD_OF("state", struct lease, state, state_names, 0, STATE_ENDING),
	TEXT_OF("reason", struct lease, reason),
	WORD_OF("cause", struct lease, cause, result_words, 0, RESULT_KINDS - 1),
	RANGE_OF("generation", struct lease, generation, 1, UINT64_MAX),
	RANGE_OF("acknowledged", struct lease, acknowledged, 1, UINT64_MAX),
	NUMBER_OF("deadline_usec", struct lease, deadline_usec),
	NUMBER_OF("disturbances", struct lease, lend.disturbances),
	NUMBER_OF("passed", struct lease, wait.passed),
	OPTIONAL_NUMBER_OF("turn", struct lease, wait.turn),
	OPTIONAL_NUMBER_OF("pauses", struct lease, pause.count),
	OPTIONAL_NUMBER_OF("paused_usec", struct lease, pause.usec),
	OPTIONAL_NUMBER_OF("paused_since_usec", struct lease, pause.since_usec),
	OPTIONAL_BOOL_OF("long_pause_reported", struct lease, pause.long_reported),
	OPTIONAL_NUMBER_OF("since_usec", struct lease, since_usec),
	OPTIONAL_NUMBER_OF("duration_usec", struct lease, duration_usec),
	OPTIONAL_NUMBER_OF("moves", struct lease, lend.moves),
	OPTIONAL_NUMBER_OF("queue_refusals", struct lease, cap.refusals),
	OPTIONAL_NUMBER_OF("resets", struct lease, reset.count),
	OPTIONAL_BOOL_OF("reset_pending", struct lease, reset.pending),
	OPTIONAL_NUMBER_OF("reset_partition", struct lease, reset.partition),
	OPTIONAL_NUMBER_OF("evictions", struct lease, evicted.count),
	OPTIONAL_NUMBER_OF("evicted_usec", struct lease, evicted.usec),
	OPTIONAL_BOOL_OF("resized", struct lease, resized),
	OPTIONAL_BOOL_OF("asker_bound", struct lease, asker_bound),
	OPTIONAL_NUMBER_OF("serial", struct lease, serial),
};

/* Left out where all have their defaults: needs_duties(). */
static const struct member duties[] = {
	BOOL_OF("fresh", struct lease, lend.never_granted),
	BOOL_OF("idle", struct lease, lend.idle),
	BOOL_OF("unseen", struct lease, verify.pending),
	BOOL_OF("revoked", struct lease, revoked),
	BOOL_OF("frozen", struct lease, enforce.frozen),
	WORD_OF("rung", struct lease, enforce.step, enforce_step_names, 0, ENFORCE_STEP_KILL),
	NUMBER_OF("rung_usec", struct lease, enforce.due_usec),
	NUMBER_OF("give_up_usec", struct lease, lend.give_up_usec),
	OPTIONAL_NUMBER_OF("revoked_for", struct lease, revoked_for),
	OPTIONAL_BOOL_OF("kill", struct lease, enforce.kill),
	OPTIONAL_BOOL_OF("terminate", struct lease, enforce.terminate),
};

/* clang-format off */
#define AMOUNTS_OF(type)                                           \
	RANGE_OF("queues", type, queues, 0, UINT32_MAX),           \
	RANGE_OF("processes", type, processes, 0, UINT32_MAX),     \
	RANGE_OF("sdma_queues", type, sdma_queues, 0, UINT32_MAX), \
	OPTIONAL_RANGE_OF("sdma_xgmi_queues", type, sdma_xgmi_queues, UINT32_MAX)
/* clang-format on */

static const struct member budget[] = {
	AMOUNTS_OF(struct budget),
	RANGE_OF("cooperative", struct budget, cooperative, 0, UINT32_MAX),
	NUMBER_OF("vram", struct budget, vram),
};

static const struct member partition[] = {
	NUMBER_OF("asked", struct partition, asked),
	OBJECT_OF("granted", struct partition, granted, budget),
	OBJECT_OF("charged", struct partition, charged, budget),
	NUMBER_OF("streams", struct partition, streams),
	RANGE_OF("priority", struct partition, priority, 0, PRIORITY_MAX),
	WORD_OF("isolation", struct partition, isolation, isolation_names, ISOLATION_SHADER_ENGINE,
		ISOLATION_SHARED),
	BOOL_OF("alone", struct partition, alone),
	BOOL_OF("any_shape", struct partition, any_shape),
	OPTIONAL_BOOL_OF("exclusive", struct partition, exclusive),
	OPTIONAL_BOOL_OF("paused", struct partition, paused),
	OPTIONAL_BOOL_OF("stopped", struct partition, stopped),
};

/* What identifies a GPU after a restart, beside its name. */
struct identity_of_gpu {
	unsigned kfd_gpu_id, xccs, engines, arrays, cus;
};

static const struct member gpu_identity[] = {
	NUMBER_OF("kfd_gpu_id", struct identity_of_gpu, kfd_gpu_id),
	NUMBER_OF("xccs", struct identity_of_gpu, xccs),
	NUMBER_OF("shader_engines", struct identity_of_gpu, engines),
	NUMBER_OF("shader_arrays", struct identity_of_gpu, arrays),
	NUMBER_OF("gpu_cus", struct identity_of_gpu, cus),
};

static const struct member want[] = {
	TEXT_OF("gpu", struct want, gpu),
	NUMBER_OF("cus", struct want, cus),
	NUMBER_OF("shader_engines", struct want, shader_engines),
	NUMBER_OF("cus_min", struct want, cus_min),
	NUMBER_OF("cus_max", struct want, cus_max),
	OPTIONAL_NUMBER_OF("cus_percent", struct want, cus_percent),
	OPTIONAL_NUMBER_OF("cus_min_percent", struct want, cus_min_percent),
	OPTIONAL_NUMBER_OF("cus_max_percent", struct want, cus_max_percent),
	BOOL_OF("exact", struct want, exact),
	BOOL_OF("any_shape", struct want, any_shape),
	AMOUNTS_OF(struct want),
	NUMBER_OF("streams", struct want, streams),
	NUMBER_OF("vram", struct want, vram),
	BOOL_OF("cooperative", struct want, cooperative),
	NUMBER_OF("priority", struct want, priority),
	/* Without a word: the default of the class. */
	OPTIONAL_WORD_OF("isolation", struct want, isolation, isolation_names,
			 ISOLATION_SHADER_ENGINE, ISOLATION_SHARED),
};

static const struct member request[] = {
	/* -1, which has no word: the class of the tenant. */
	OPTIONAL_WORD_OF("class", struct request, class, class_names, 0, CLASS_REALTIME),
	TEXT_OF("name", struct request, name),
	TEXT_OF("tenant", struct request, tenant),
	TEXT_OF("token", struct request, token),
	NUMBER_OF("wait_usec", struct request, wait_usec),
	BOOL_OF("start_inactive", struct request, start_inactive),
	BOOL_OF("adaptable", struct request, adaptable),
	OPTIONAL_BOOL_OF("exclusive", struct request, exclusive),
	OPTIONAL_BOOL_OF("requeue", struct request, requeue),
};

/* ---- writing ------------------------------------------------------------------------- */

#define ADD_MEMBERS(failed, object, table, base) \
	object_add_members(failed, object, table, ARRAY_SIZE(table), base)

/* The words of the mask as on the bus, in one string: an object per word would cost as much as all
 * the rest. */
static void add_mask(bool *failed, struct json_object *object, const char *key,
		     const struct codec *codec, const struct cuset *set)
{
	uint32_t words[CODEC_WORDS] = { 0 };
	char text[MASK_TEXT] = "", *end = text;

	codec_encode(codec, set, words);
	for (size_t i = 0; i < codec_words(codec); i++)
		end += sprintf(end, "%s0x%08x", i > 0 ? "," : "", words[i]);
	object_add(failed, object, key, json_object_new_string(text));
}

static struct identity_of_gpu identify(const struct gpu *gpu)
{
	const struct geometry *geometry = &gpu->info.geometry;

	return (struct identity_of_gpu){
		.kfd_gpu_id = gpu->info.kfd_gpu_id,
		.xccs = geometry->xccs,
		.engines = geometry->engines,
		.arrays = geometry->arrays,
		.cus = gpu->codec.n_bits,
	};
}

static void add_adaptation(bool *failed, struct json_object *object, const struct codec *codec,
			   const struct adaptation *adaptation)
{
	add_mask(failed, object, "base", codec, &adaptation->base);
	if (!cuset_empty(&adaptation->before))
		add_mask(failed, object, "before", codec, &adaptation->before);
	if (!cuset_empty(&adaptation->moved_from))
		add_mask(failed, object, "moved_from", codec, &adaptation->moved_from);
}

static struct json_object *partition_json(bool *failed, const struct gpu *gpu,
					  const struct partition *p)
{
	struct json_object *object = json_object_new_object();
	struct identity_of_gpu saved = identify(gpu);

	/* An absent GPU is saved without its id: when it returns, others may hold it. */
	if (gpu->absent)
		saved.kfd_gpu_id = 0;
	object_add(failed, object, "gpu", json_object_new_string(gpu->info.name));
	ADD_MEMBERS(failed, object, gpu_identity, &saved);
	add_mask(failed, object, "cu_mask", &gpu->codec, &p->cus);
	add_mask(failed, object, "occupied", &gpu->codec, &p->occupied);
	if (!cuset_empty(&p->resize))
		add_mask(failed, object, "resize", &gpu->codec, &p->resize);
	ADD_MEMBERS(failed, object, partition, p);
	if (p->adaptation)
		add_adaptation(failed, object, &gpu->codec, p->adaptation);
	return object;
}

static struct json_object *partitions_json(bool *failed, const struct arbiter *arbiter,
					   const struct lease *lease)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		array_append(failed, array, partition_json(failed, &arbiter->gpus[p->gpu], p));
	}
	return array;
}

static struct json_object *request_json(bool *failed, const struct request *saved)
{
	struct json_object *object = json_object_new_object();
	struct json_object *wants = json_object_new_array();

	for (size_t i = 0; i < saved->n_wants; i++) {
		struct json_object *row = json_object_new_object();

		ADD_MEMBERS(failed, row, want, &saved->wants[i]);
		array_append(failed, wants, row);
	}
	object_add(failed, object, "wants", wants);
	ADD_MEMBERS(failed, object, request, saved);
	return object;
}

static bool needs_duties(const struct lease *lease)
{
	return lease->lend.never_granted || lease->lend.idle || lease->verify.pending ||
	       lease->revoked || lease->enforce.frozen ||
	       lease->enforce.step != ENFORCE_STEP_NONE || lease->enforce.due_usec != UINT64_MAX ||
	       lease->lend.give_up_usec != UINT64_MAX;
}

/* Each as [pid, start time], and with the uid as a third number if root bound the process or an
 * ancestor of it; (uid_t) -1: it died before a scan observed its user. Processes beyond
 * LEASE_PROCESSES_MAX are not saved: after a restart the next scan finds out again to which lease they
 * belong. */
static struct json_object *processes_json(bool *failed, const struct arbiter *arbiter, uint64_t id)
{
	struct json_object *array = json_object_new_array();
	struct lease_process processes[LEASE_PROCESSES_MAX];
	size_t n = known_processes(arbiter, id, false, processes, LEASE_PROCESSES_MAX);

	for (size_t i = 0; i < n && i < LEASE_PROCESSES_MAX; i++) {
		struct json_object *pair = json_object_new_array_ext(3);

		array_append(failed, pair, json_object_new_int64(processes[i].pid));
		array_append(failed, pair, json_object_new_uint64(processes[i].start_time));
		if (processes[i].delegated)
			array_append(failed, pair, json_object_new_int64(processes[i].uid));
		array_append(failed, array, pair);
	}
	return array;
}

/* If json-c cannot enlarge the text it silently leaves a part out; errno shows it. */
static int text_of(struct json_object *object, char **ret)
{
	_cleanup_(freep) char *ascii = NULL;
	const char *text;
	size_t length;

	errno = 0;
	text = json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN, &length);
	if (text && errno != ENOMEM)
		ascii = json_ascii(text, length);
	return ascii && asprintf(ret, "%s\n", ascii) > 0 ? 0 : -ENOMEM;
}

int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret)
{
	struct json_object *object = json_object_new_object(), *duty;
	bool failed = false;
	int r;

	object_add(&failed, object, "version", json_object_new_int(STATE_JSON_VERSION));
	ADD_MEMBERS(&failed, object, identity, lease);
	if (needs_duties(lease)) {
		duty = json_object_new_object();
		ADD_MEMBERS(&failed, duty, duties, lease);
		object_add(&failed, object, "duties", duty);
	}
	object_add(&failed, object, "partitions", partitions_json(&failed, arbiter, lease));
	if (lease->request)
		object_add(&failed, object, "request", request_json(&failed, lease->request));
	object_add(&failed, object, "processes", processes_json(&failed, arbiter, lease->id));

	r = failed ? -ENOMEM : text_of(object, ret);
	json_object_put(object);
	return r;
}

/* ---- reading ------------------------------------------------------------------------- */

/* A file is not trusted because of its name. arbiter_adopt() finds what contradicts itself or other
 * leases. */
struct reading {
	const struct arbiter *arbiter;
	struct state_lease *saved;
	struct read_error error;
};

#define TAKE_MEMBERS(object, table, base) \
	object_take_members(object, table, ARRAY_SIZE(table), base)

/* Parses "0x" and eight lower-case digits for each word, with commas between them. */
static bool parse_mask(const char *text, uint32_t words[static CODEC_WORDS], size_t *ret_n)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (;; text++) {
		if (n == CODEC_WORDS || text[0] != '0' || text[1] != 'x' ||
		    strspn(text + 2, digits) != 8)
			return false;
		words[n++] = (uint32_t)strtoul(text, NULL, 16);
		text += 10;
		if (*text != ',')
			break;
	}
	*ret_n = n;
	return *text == '\0';
}

/* Returns the number of bits of the mask. codec NULL: the GPU is absent and the order of the bits
 * unknown, so *ret stays as it is. Each bit must be that of a CU, each WGP complete: then encoding
 * the CUs gives the same mask. */
static unsigned take_mask(struct object *object, const char *key, const struct codec *codec,
			  struct cuset *ret)
{
	uint32_t words[CODEC_WORDS], again[CODEC_WORDS];
	char text[MASK_TEXT];
	unsigned count = 0;
	size_t n;

	object_take_text(object, key, text, sizeof(text));
	if (!parse_mask(text, words, &n)) {
		read_invalid(object->error, key, "is not a mask");
		return 0;
	}
	if (codec && n == codec_words(codec)) {
		codec_decode(codec, words, n, ret);
		codec_encode(codec, ret, again);
	}
	if (codec && (n != codec_words(codec) || memcmp(words, again, n * sizeof(*words)) != 0))
		read_invalid(object->error, key, "is not a mask of this GPU");
	for (size_t i = 0; i < n; i++)
		count += cuset_count_word(words[i]);
	return count;
}

/* Returns the index of the GPU, or GPU_ABSENT if it is absent or another GPU has its name. */
static unsigned take_gpu(struct object *object, const struct reading *reading)
{
	const struct arbiter *arbiter = reading->arbiter;
	char name[GPU_NAME_MAX], *lost = reading->saved->lost;
	struct identity_of_gpu saved = { 0 };

	object_take_text(object, "gpu", name, sizeof(name));
	TAKE_MEMBERS(object, gpu_identity, &saved);
	if (name[0] == '\0')
		read_invalid(object->error, "gpu", "has no name");

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct identity_of_gpu present = identify(&arbiter->gpus[i]);

		if (!arbiter->gpus[i].absent && strcmp(arbiter->gpus[i].info.name, name) == 0 &&
		    memcmp(&present, &saved, sizeof(saved)) == 0)
			return i;
	}
	if (lost[0] == '\0')
		memcpy(lost, name, sizeof(name));
	return GPU_ABSENT;
}

static void take_adaptation(struct object *object, const struct codec *codec,
			    struct adaptation *ret)
{
	take_mask(object, "base", codec, &ret->base);
	if (object_has(object, "before"))
		take_mask(object, "before", codec, &ret->before);
	if (object_has(object, "moved_from"))
		take_mask(object, "moved_from", codec, &ret->moved_from);
}

static void read_partition(struct object *object, const struct reading *reading,
			   struct partition *p)
{
	const struct codec *codec;

	p->gpu = take_gpu(object, reading);
	codec = p->gpu == GPU_ABSENT ? NULL : &reading->arbiter->gpus[p->gpu].codec;
	p->count = take_mask(object, "cu_mask", codec, &p->cus);
	take_mask(object, "occupied", codec, &p->occupied);
	if (object_has(object, "resize"))
		take_mask(object, "resize", codec, &p->resize);
	TAKE_MEMBERS(object, partition, p);
	if (p->adaptation)
		take_adaptation(object, codec, p->adaptation);
	object_end(object, "partition");
}

static struct request *take_request(struct object *parent)
{
	struct object object = object_take_object(parent, "request");
	struct request saved = { .class = -1 }, *kept;
	struct json_object *wants;

	wants = object_take_array(&object, "wants", REQUEST_WANTS, &saved.n_wants);
	if (wants && saved.n_wants == 0)
		read_invalid(object.error, "wants", "is empty");
	for (size_t i = 0; i < saved.n_wants; i++) {
		struct object row = array_object(object.error, wants, i, "wants");

		TAKE_MEMBERS(&row, want, &saved.wants[i]);
		object_end(&row, "want");
	}
	TAKE_MEMBERS(&object, request, &saved);
	object_end(&object, "request");
	if (parent->error->r < 0)
		return NULL;

	kept = request_keep(&saved);
	if (!kept)
		parent->error->r = -ENOMEM;
	return kept;
}

static void take_processes(struct object *object, struct state_lease *saved)
{
	struct read_error *error = object->error;
	struct json_object *array, *pair;

	array = object_take_array(object, "processes", LEASE_PROCESSES_MAX, &saved->n_processes);
	for (size_t i = 0; i < saved->n_processes; i++) {
		pair = array_array(error, array, i, "processes", 2, 3);
		if (!pair)
			return;
		saved->processes[i].pid = (pid_t)array_number(error, pair, 0, "processes", 1,
							      INT32_MAX);
		saved->processes[i].start_time = array_number(error, pair, 1, "processes", 0,
							      UINT64_MAX);
		saved->processes[i].delegated = json_object_array_length(pair) > 2;
		saved->processes[i].uid = !saved->processes[i].delegated
						  ? 0
						  : (uid_t)array_number(error, pair, 2, "processes",
									0, UINT32_MAX);
	}
}

static void check_version(struct object *object)
{
	struct read_error *error = object->error;
	uint64_t version = object_take_number(object, "version", 0, UINT64_MAX);

	if (error->r < 0 || version == STATE_JSON_VERSION)
		return;
	error->r = refuse(error->why, error->size, -EINVAL,
			  version > STATE_JSON_VERSION
				  ? "version %llu is newer than %d, the version of this gpuarbd"
				  : "version %llu is older than %d, the version of this gpuarbd: "
				    "its leases ended with their daemon",
			  (unsigned long long)version, STATE_JSON_VERSION);
}

static void read_lease(struct reading *reading, struct object *object)
{
	struct json_object *partitions;
	struct lease *lease;
	struct object nested;
	size_t n;

	check_version(object);
	partitions = object_take_array(object, "partitions", REQUEST_WANTS, &n);
	if (reading->error.r < 0)
		return;
	reading->error.r = lease_new(&lease);
	if (reading->error.r < 0)
		return;
	reading->saved->lease = lease;
	TAKE_MEMBERS(object, identity, lease);
	object->taken += object_has(object, "pause_reported"); /* written by gpuarbd 0.2 */
	if (reading->error.r >= 0)
		reading->error.r = lease_make_partitions(lease, n);
	if (reading->error.r < 0)
		return;
	if (lease->acknowledged > lease->generation)
		read_invalid(object->error, "acknowledged", "is out of range");
	if (lease->reset.partition > 0 && lease->reset.partition >= n)
		read_invalid(object->error, "reset_partition", "is out of range");
	for (size_t i = 0; i < n; i++) {
		nested = array_object(object->error, partitions, i, "partitions");
		read_partition(&nested, reading, &lease->partitions[i]);
	}
	take_processes(object, reading->saved);
	if (object_has(object, "duties")) {
		nested = object_take_object(object, "duties");
		TAKE_MEMBERS(&nested, duties, lease);
		object_end(&nested, "duties");
	}
	if (object_has(object, "request"))
		lease->request = take_request(object);
	object_end(object, "lease");
}

int state_json_read(const struct arbiter *arbiter, const char *text, size_t length,
		    struct state_lease *ret, char *why, size_t size)
{
	struct reading reading = { .arbiter = arbiter,
				   .saved = ret,
				   .error = { .why = why, .size = size } };
	struct object object = { .error = &reading.error };

	ret->lease = NULL;
	ret->lost[0] = '\0';
	ret->n_processes = 0;
	object.json = object_parse(text, length, &reading.error);
	if (object.json)
		read_lease(&reading, &object);
	json_object_put(object.json);
	if (reading.error.r < 0)
		ret->lease = lease_free(ret->lease);
	return reading.error.r;
}
