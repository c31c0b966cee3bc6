/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/calibration-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/mask/codec.h"
#include "sys/state/json-object.h"
#include "sys/state/state-file.h"
#include "util/fd.h"
#include "util/text.h"

#define POINTS_MAX 256U
#define USEC_MAX 1e10
#define SLOWDOWN_MAX 100.0 /* times as long */
#define MEDIAN_MAX 25.0    /* percent: above it the law does not hold on this GPU */

/* ---- what all parts have ------------------------------------------------------------------ */

/* Says in which row of a list the error is; rows count from 1. row 0: the section has no rows. */
static void name_row(struct read_error *error, const char *section, size_t row)
{
	char why[160];

	if (error->r == 0)
		return;
	snprintf(why, sizeof(why), "%s", error->why);
	if (row > 0)
		error->r = refuse(error->why, error->size, error->r, "%s %zu: %s", section, row,
				  why);
	else
		error->r = refuse(error->why, error->size, error->r, "%s: %s", section, why);
}

/* Whether a member is the boolean, and nothing that only stands for it: null, 0, []. */
static bool is_boolean(struct json_object *json, const char *key, bool wanted)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(json, key, &value) &&
	       json_object_is_type(value, json_type_boolean) &&
	       json_object_get_boolean(value) == wanted;
}

static void check_measured(struct read_error *error, struct json_object *json)
{
	if (json_object_object_get_ex(json, "emulated", NULL) &&
	    !is_boolean(json, "emulated", false))
		read_invalid(error, "emulated", "is not false: nothing was measured");
}

/* Sections and their rows say it again, in case one of them was put in from another report. */
static void check_sections(struct object *report)
{
	static const char *const sections[] = { "points", "law",    "memory_law", "interference",
						"costs",  "ladder", "events" };
	struct read_error *error = report->error;

	for (size_t i = 0; i < ARRAY_SIZE(sections) && error->r == 0; i++) {
		struct json_object *section = json_object_object_get(report->json, sections[i]);
		size_t n = json_object_is_type(section, json_type_array)
				   ? json_object_array_length(section)
				   : 0;

		check_measured(error, section);
		name_row(error, sections[i], 0);
		for (size_t row = 0; row < n && error->r == 0; row++) {
			check_measured(error, json_object_array_get_idx(section, row));
			name_row(error, sections[i], row + 1);
		}
	}
}

static void check_throttled(struct object *object)
{
	if (!is_boolean(object->json, "throttled", false))
		read_invalid(object->error, "throttled",
			     "is not false: the GPU was hot or in use: calibrate again");
}

/* ---- the masks ---------------------------------------------------------------------------- */

/* "0x3f" to words; the mask is refused where it does not fit. */
static bool read_mask(const char *hex, uint32_t mask[static CODEC_WORDS])
{
	size_t n = strlen(hex);

	memset(mask, 0, CODEC_WORDS * sizeof(*mask));
	if (n < 3 || n - 2 > CODEC_BITS / 4 || strncmp(hex, "0x", 2) != 0 ||
	    strspn(hex + 2, "0123456789abcdef") != n - 2)
		return false;
	for (size_t i = 0; i < n - 2; i++) {
		char digit = hex[n - 1 - i];
		uint32_t value = (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);

		mask[i / 8] |= value << i % 8 * 4;
	}
	return true;
}

/* Reads one mask of the law, or of anything else. What the report says of it must be so on this GPU. */
static void read_point(struct object *object, const struct gpu_info *info,
		       const struct codec *codec, struct law_point *points, size_t *n)
{
	char use[32], hex[CODEC_BITS / 4 + 3], why[128];
	uint32_t mask[CODEC_WORDS];
	struct law_point point;
	struct cuset set;
	uint64_t cus;

	object_take_text(object, "use", use, sizeof(use));
	if (strcmp(use, "law") != 0)
		return;
	object_take_text(object, "cu_mask", hex, sizeof(hex));
	cus = object_take_number(object, "cus", 1, CODEC_BITS);
	point.effective = (unsigned)object_take_number(object, "effective_cus", 1, CODEC_BITS);
	point.usec = object_take_real(object, "usec", 1e-3, USEC_MAX);
	if (object_take_number(object, "expected_cus", 1, CODEC_BITS) != cus ||
	    object_take_number(object, "occupied_cus", 1, CODEC_BITS) != cus)
		read_invalid(object->error, "occupied_cus", "differs from the CUs of the mask");
	check_throttled(object);
	if (!is_boolean(object->json, "mask_honoured", true))
		read_invalid(object->error, "mask_honoured", "is false for a mask of the law");
	if (!read_mask(hex, mask))
		read_invalid(object->error, "cu_mask", "is no mask");
	else if (codec_check(codec, &info->geometry, mask, CODEC_WORDS, why, sizeof(why)) < 0)
		read_invalid(object->error, "cu_mask", why);
	codec_decode(codec, mask, CODEC_WORDS, &set);
	if (cuset_count(&set) != cus ||
	    geometry_effective(&info->geometry, &set) != point.effective)
		read_invalid(object->error, "cu_mask",
			     "has other CUs on this GPU: the report is of another one");
	points[(*n)++] = point;
}

/* ---- the law ------------------------------------------------------------------------------ */

static bool near(double a, double b, double scale)
{
	double off = a - b;

	return off * off <= scale * scale * 1e-4;
}

/* The report's law must be the one of its points: an edited figure contradicts the others. */
static void read_law(struct object *report, const struct gpu_info *info, struct law *ret)
{
	struct law_point points[POINTS_MAX];
	struct codec codec;
	struct law_fit fit;
	struct object law;
	size_t n, used = 0;
	struct json_object *list = object_take_array(report, "points", POINTS_MAX, &n);
	struct cuset all;
	unsigned most = 0;
	double a, b;

	codec_init(&codec, &info->geometry);
	geometry_all(&info->geometry, &all);
	for (size_t i = 0; i < n && report->error->r == 0; i++) {
		struct object point = array_object(report->error, list, i, "points");

		read_point(&point, info, &codec, points, &used);
		name_row(report->error, "points", i + 1);
	}
	law = object_take_object(report, "law");
	a = object_take_real(&law, "a_usec", 1e-3, USEC_MAX);
	b = object_take_real(&law, "b_usec", -USEC_MAX, USEC_MAX);
	if (report->error->r < 0)
		return;
	for (size_t i = 0; i < used; i++)
		most = points[i].effective > most ? points[i].effective : most;
	if (law_fit(points, used, &fit) < 0)
		read_invalid(report->error, "points", "have no law");
	else if (!near(a, fit.a_usec, fit.a_usec) ||
		 !near(b, fit.b_usec, fit.a_usec / geometry_cus(&info->geometry)))
		read_invalid(report->error, "law", "is not the one of the points: it was edited");
	else if (most < geometry_effective(&info->geometry, &all))
		read_invalid(report->error, "points",
			     "have none on the whole GPU: measure without other leases");
	else if (fit.median_error > MEDIAN_MAX)
		read_invalid(report->error, "law", "does not hold: the median error is above 25 %");
	ret->basis = LAW_MEASURED;
	ret->constant = (unsigned)(fit.constant + 0.5);
}

/* ---- neighbours and preemption -------------------------------------------------------------- */

static bool is_known(const struct object *object, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(object->json, key, &value) && value;
}

/* The percentage that calibrate writes for the worst of the rounds, or 0 after an error. */
static unsigned read_rounds(struct object *row)
{
	size_t n;
	struct json_object *rounds = object_take_array(row, "rounds", CALIBRATION_ROUNDS, &n);
	double worst = 1;
	unsigned percent;

	if (rounds && n != CALIBRATION_ROUNDS)
		read_invalid(row->error, "rounds", "has another number of elements");
	for (size_t i = 0; i < n; i++) {
		double slowdown = json_object_get_double(json_object_array_get_idx(rounds, i));

		if (!(slowdown > 0 && slowdown <= SLOWDOWN_MAX))
			read_invalid(row->error, "rounds", "has an element out of range");
		worst = slowdown > worst ? slowdown : worst;
	}
	if (row->error->r < 0)
		return 0;
	percent = (unsigned)(worst * 100);
	return percent + (percent < worst * 100);
}

static void read_slowdown(struct object *row, struct calibrated *ret)
{
	struct slowdown *slowdown = &ret->slowdowns[ret->n_slowdowns];
	char kind[16];
	int known;

	object_take_text(row, "kind", kind, sizeof(kind));
	known = text_index(neighbours_names, kind);
	if (known < 0)
		read_invalid(row->error, "kind", "is neither memory nor compute");
	slowdown->kind = known > 0 ? NEIGHBOURS_COMPUTE : NEIGHBOURS_MEMORY;
	slowdown->neighbours = (unsigned)object_take_number(row, "neighbours", 1,
							    CALIBRATION_NEIGHBOURS);
	slowdown->percent = (unsigned)object_take_number(row, "slowdown_percent", 100,
							 100 * (unsigned)SLOWDOWN_MAX);
	check_throttled(row);
	if (read_rounds(row) != slowdown->percent)
		read_invalid(row->error, "slowdown_percent",
			     "is not that of the worst round: it was edited");
	for (size_t i = 0; i < ret->n_slowdowns; i++)
		if (ret->slowdowns[i].kind == slowdown->kind &&
		    ret->slowdowns[i].neighbours == slowdown->neighbours)
			read_invalid(row->error, "neighbours",
				     "is in an earlier row of this kind, too");
	ret->n_slowdowns++;
}

static void read_slowdowns(struct object *report, struct calibrated *ret)
{
	struct json_object *list;
	size_t n;

	if (!is_known(report, "interference"))
		return;
	list = object_take_array(report, "interference", CALIBRATED_SLOWDOWNS, &n);
	for (size_t i = 0; i < n && report->error->r == 0; i++) {
		struct object row = array_object(report->error, list, i, "interference");

		read_slowdown(&row, ret);
		name_row(report->error, "interference", i + 1);
	}
}

static void read_preemption(struct object *report, struct calibrated *ret)
{
	struct object costs;

	if (!is_known(report, "costs"))
		return;
	costs = object_take_object(report, "costs");
	if (is_known(&costs, "preemption_usec"))
		ret->preemption_usec =
			(unsigned)(object_take_real(&costs, "preemption_usec", 1e-3, 6e7) + 0.999);
}

/* ---- the report --------------------------------------------------------------------------- */

static void expect_text(struct object *report, const char *key, const char *wanted)
{
	char text[128], sentence[256];

	object_take_text(report, key, text, sizeof(text));
	if (strcmp(text, wanted) == 0)
		return;
	snprintf(sentence, sizeof(sentence), "is '%s', and '%s' here: the report is of another GPU",
		 text, wanted);
	read_invalid(report->error, key, sentence);
}

static void check_version(struct object *report)
{
	char schema[32];
	uint64_t version;

	object_take_text(report, "schema", schema, sizeof(schema));
	if (strcmp(schema, CALIBRATION_SCHEMA) != 0)
		read_invalid(report->error, "schema", "is not " CALIBRATION_SCHEMA);
	version = object_take_number(report, "version", 1, UINT32_MAX);
	if (version > CALIBRATION_VERSION)
		read_invalid(report->error, "version",
			     "is newer than what this gpuarbd reads: install that gpuarb, or "
			     "calibrate again");
	if (!object_has(report, "emulated"))
		read_invalid(report->error, "emulated", "is missing");
	check_measured(report->error, report->json);
	check_sections(report);
}

static void read_date(struct object *report, char date[static sizeof("2026-11-23")])
{
	static const char like[] = "0000-00-00";
	struct tm time = { 0 };
	bool valid;
	int day;

	object_take_text(report, "date", date, sizeof("2026-11-23"));
	valid = strptime(date, "%Y-%m-%d", &time);
	for (size_t i = 0; i < sizeof(like) - 1; i++)
		valid = valid &&
			(like[i] == '0' ? date[i] >= '0' && date[i] <= '9' : date[i] == like[i]);
	day = time.tm_mday;
	timegm(&time); /* the 31st of a short month becomes the 1st of the next */
	if (!valid || time.tm_mday != day)
		read_invalid(report->error, "date", "is not like 2026-11-23");
}

static void read_report(struct object *report, struct gpu_info *info)
{
	struct calibrated calibrated = { 0 };
	struct law law = { 0 };
	char target[32];

	gpu_info_target_name(info->gfx_target, target, sizeof(target));
	check_version(report);
	expect_text(report, "gpu", info->name);
	expect_text(report, "device", info->device);
	expect_text(report, "gfx_target", target);
	if (object_take_number(report, "cus", 1, CODEC_BITS) != geometry_cus(&info->geometry))
		read_invalid(report->error, "cus", "differs: the report is of another GPU");
	read_date(report, calibrated.date);
	read_law(report, info, &law);
	read_slowdowns(report, &calibrated);
	read_preemption(report, &calibrated);
	if (report->error->r < 0)
		return;
	snprintf(law.source, sizeof(law.source), "calibrated %s", calibrated.date);
	info->law = law;
	info->calibrated = calibrated;
}

static int parse(const char *text, size_t length, struct gpu_info *info, char *why, size_t size)
{
	struct read_error error = { 0, why, size };
	struct object report = { &error, object_parse(text, length, &error), 0 };

	if (error.r == 0 && !json_object_is_type(report.json, json_type_object))
		read_invalid(&error, "report", "is not a JSON object");
	if (error.r == 0)
		read_report(&report, info);
	json_object_put(report.json);
	return error.r;
}

static int load(const char *path, const struct trust *trust, struct gpu_info *info, char *why,
		size_t size)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(freep) char *text = NULL;
	_cleanup_fd_ int fd = trust_open(path, trust, O_RDONLY, &diagnostics);
	size_t length;
	int r;

	if (fd < 0 && diagnostics.n > 0)
		return refuse(why, size, fd, "%s", diagnostics.list[0].text);
	if (fd < 0)
		return fd;
	r = read_whole(fd, STATE_FILE_MAX, &text, &length);
	if (r < 0)
		return refuse(why, size, r, "cannot be read, or is larger than 1 MiB");
	return parse(text, length, info, why, size);
}

void calibration_load(const char *state_directory, const struct trust *trust, struct gpu_info *info,
		      struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *path = NULL;
	char why[sizeof(info->calibrated.problem)] = "";
	char *file;
	int r;

	if (asprintf(&path, "%s/calibration/%s.json", state_directory, info->name) < 0) {
		path = NULL;
		return;
	}
	file = path + strlen(state_directory) + strlen("/calibration/");
	for (char *slash = strchr(file, '/'); slash; slash = strchr(slash, '/'))
		*slash = '-';
	r = load(path, trust, info, why, sizeof(why));
	if (r == 0 || r == -ENOENT)
		return;
	text_clean(info->calibrated.problem, sizeof(info->calibrated.problem), why);
	diagnostics_add(diagnostics, true, "%s: not used: %s", path, why);
}
