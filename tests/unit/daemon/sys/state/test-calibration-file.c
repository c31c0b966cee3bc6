/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reports of gpuarbctl calibrate that gpuarbd believes, and those that it does not. */

#include "sys/state/calibration-file.h"

#include <errno.h>
#include <inttypes.h>

#include "check.h"
#include "core/mask/codec.h"
#include "made-gpus.h"
#include "scratch.h"

#define NAME "0000:03:00.0"
#define FILE_NAME "calibration/" NAME ".json"

static const struct trust trust = { { 0 } };

/* The CUs 0 to n - 1 of each shader engine. */
static void write_point(FILE *out, const struct gpu_info *gpu, unsigned n, bool last)
{
	struct codec codec;
	struct cuset set = { 0 };
	uint32_t mask[CODEC_WORDS] = { 0 };

	codec_init(&codec, &gpu->geometry);
	for (unsigned e = 0; e < 4; e++)
		set.pair[cuset_pair(0, e)] = (UINT32_C(1) << n) - 1;
	codec_encode(&codec, &set, mask);
	fprintf(out,
		"{\"use\": \"law\", \"cu_mask\": \"0x%08" PRIx32 "%08" PRIx32 "\", \"cus\": %u, "
		"\"effective_cus\": %u, \"expected_cus\": %u, \"occupied_cus\": %u, "
		"\"throttled\": false, \"mask_honoured\": true, \"usec\": %.3f}%s",
		mask[1], mask[0], 4 * n, 4 * n, 4 * n, 4 * n, 60000.0 / (4 * n) + 250,
		last ? "" : ", ");
}

/* t = 60 ms / E + 250 us: 20 % of the time on the whole GPU do not depend on the mask. */
static char *report_of(const struct gpu_info *gpu)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	fprintf(out,
		"{\"schema\": \"gpuarb-calibration\", \"version\": 1, \"date\": \"2026-11-23\", "
		"\"emulated\": false, \"gpu\": \"%s\", \"device\": \"%s\", \"gfx_target\": "
		"\"gfx906\", \"cus\": 60, \"points\": [",
		gpu->name, gpu->device);
	for (unsigned n = 1; n <= 15; n++)
		write_point(out, gpu, n, n == 15);
	fprintf(out,
		"], \"law\": {\"a_usec\": 60000.0, \"b_usec\": 250.0}, \"interference\": "
		"[{\"emulated\": false, \"kind\": \"memory\", \"neighbours\": 3, "
		"\"slowdown_percent\": 170, \"throttled\": false, \"rounds\": [0.9, 1.1, "
		"1.695, 1.2, 1.3]}, {\"kind\": \"compute\", \"neighbours\": 1, "
		"\"slowdown_percent\": 100, \"throttled\": false, \"rounds\": [0.9, 0.8, 0.7, "
		"0.9, 0.6]}], \"costs\": {\"preemption_usec\": 41.2}, \"a_later_member\": [1, {}]}\n");
	CHECK(fclose(out) == 0);
	return text;
}

struct machine {
	struct scratch scratch;
	struct gpu_info gpu;
	struct diagnostics diagnostics;
};

static struct machine machine_new(void)
{
	struct machine machine = { .scratch = scratch_new(), .gpu = radeon_vii(NAME) };

	scratch_mkdir(&machine.scratch, "calibration");
	return machine;
}

static void machine_done(struct machine *machine)
{
	diagnostics_done(&machine->diagnostics);
	scratch_done(&machine->scratch);
}

static void load(struct machine *machine)
{
	const struct trust own = { { geteuid() } };

	calibration_load(machine->scratch.path, &own, &machine->gpu, &machine->diagnostics);
}

/* Replaces the first occurrence. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *copy = NULL;

	CHECK(at);
	CHECK(asprintf(&copy, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return copy;
}

FIXTURE(struct machine, machine, *machine = machine_new(), machine_done(machine));

TEST_WITH(law_margins_and_preemption_come_from_the_report, struct machine *machine)
{
	char *report = report_of(&machine->gpu);

	scratch_write(&machine->scratch, FILE_NAME, report);
	load(machine);
	CHECK(machine->diagnostics.n == 0 && machine->gpu.calibrated.problem[0] == '\0');
	CHECK(machine->gpu.law.basis == LAW_MEASURED && machine->gpu.law.constant == 20);
	CHECK(strcmp(machine->gpu.law.source, "calibrated 2026-11-23") == 0);
	CHECK(strcmp(machine->gpu.calibrated.date, "2026-11-23") == 0);
	CHECK(machine->gpu.calibrated.preemption_usec == 42);
	CHECK(machine->gpu.calibrated.n_slowdowns == 2);
	CHECK(machine->gpu.calibrated.slowdowns[0].kind == NEIGHBOURS_MEMORY);
	CHECK(machine->gpu.calibrated.slowdowns[0].neighbours == 3);
	CHECK(machine->gpu.calibrated.slowdowns[0].percent == 170);
	CHECK(machine->gpu.calibrated.slowdowns[1].kind == NEIGHBOURS_COMPUTE);
	CHECK(machine->gpu.calibrated.slowdowns[1].percent == 100);
	free(report);
}

TEST_WITH(gpu_without_a_report_keeps_the_law_of_its_target, struct machine *machine)
{
	struct law before = machine->gpu.law;

	load(machine);
	CHECK(machine->diagnostics.n == 0 && machine->gpu.calibrated.date[0] == '\0');
	CHECK(machine->gpu.calibrated.problem[0] == '\0' && machine->gpu.law.basis == before.basis);
}

TEST_WITH(partition_has_a_file_without_a_slash, struct machine *machine)
{
	char *report;

	snprintf(machine->gpu.name, sizeof(machine->gpu.name), NAME "/3");
	report = report_of(&machine->gpu);
	scratch_write(&machine->scratch, "calibration/" NAME "-3.json", report);
	load(machine);
	CHECK(strcmp(machine->gpu.calibrated.date, "2026-11-23") == 0);
	free(report);
}

TEST(edited_foreign_and_damaged_reports_are_refused)
{
	static const struct {
		const char *from, *to, *why;
	} rows[] = {
		{ "\"emulated\": false", "\"emulated\": true", "emulated" },
		{ "\"emulated\": false, ", "", "emulated" },
		{ "\"version\": 1", "\"version\": 2", "newer" },
		{ "\"version\": 1", "\"version\": \"1\"", "version: has another type" },
		{ "gpuarb-calibration", "gpuarb-latency", "schema" },
		{ NAME, "0000:04:00.0", "gpu: is '0000:04:00.0'" },
		{ "gfx906", "gfx90a", "gfx_target: is 'gfx90a'" },
		{ "\"device\": \"", "\"device\": \"Another ", "device: is 'Another" },
		{ "\"cus\": 60, \"points\"", "\"cus\": 64, \"points\"", "another GPU" },
		{ "2026-11-23", "2026-11-2x", "date" },
		{ "2026-11-23", "yesterday", "date" },
		{ "2026-11-23", "2026-13-01", "date" },
		{ "2026-11-23", "2026-02-30", "date" },
		{ "\"a_usec\": 60000.0", "\"a_usec\": 50000.0", "it was edited" },
		{ "\"b_usec\": 250.0", "\"b_usec\": 0.0", "it was edited" },
		{ "\"b_usec\": 250.0", "\"b_usec\": 1e99", "b_usec: is out of range" },
		{ "\"a_usec\": 60000.0", "\"a_usec\": -1.0", "a_usec: is out of range" },
		{ "\"a_usec\": 60000.0", "\"a_usec\": NaN", "" },
		{ "\"usec\": 15250.000", "\"usec\": 0.0", "usec: is out of range" },
		{ "\"usec\": 15250.000", "\"usec\": 25250.0", "it was edited" },
		{ "\"effective_cus\": 4,", "\"effective_cus\": 5,", "another one" },
		{ "\"cu_mask\": \"0x000000000000000f\"", "\"cu_mask\": \"0x0000000f000000ff\"",
		  "another one" },
		{ "\"cu_mask\": \"0x000000000000000f\"", "\"cu_mask\": \"15\"", "is no mask" },
		{ "\"mask_honoured\": true", "\"mask_honoured\": false", "mask_honoured" },
		{ "\"slowdown_percent\": 170", "\"slowdown_percent\": 50", "slowdown_percent" },
		{ "\"neighbours\": 3", "\"neighbours\": 0", "neighbours: is out of range" },
		{ "\"kind\": \"memory\"", "\"kind\": \"evil\"", "kind: is neither" },
		{ "\"slowdown_percent\": 170", "\"slowdown_percent\": 171",
		  "interference 1: slowdown_percent: is not that of the worst round" },
		{ "\"slowdown_percent\": 170", "\"slowdown_percent\": 100",
		  "interference 1: slowdown_percent: is not that of the worst round" },
		{ "\"rounds\": [0.9, 1.1, ", "\"rounds\": [1.1, ",
		  "interference 1: rounds: has another number" },
		{ "\"rounds\": [0.9, 1.1, ", "\"rounds\": [0.5, 0.9, 1.1, ",
		  "interference 1: rounds: has too many" },
		{ "1.695", "null", "interference 1: rounds: has an element" },
		{ "1.695", "-1.0", "interference 1: rounds: has an element" },
		{ "\"rounds\": [0.9, 1.1, ", "\"old\": [", "interference 1: rounds: is missing" },
		{ "\"throttled\": false, \"rounds\": [0.9, 0.8",
		  "\"throttled\": true, \"rounds\": [0.9, 0.8", "interference 2: throttled" },
		{ "\"throttled\": false, \"rounds\": [0.9, 0.8", "\"rounds\": [0.9, 0.8",
		  "interference 2: throttled" },
		{ "\"kind\": \"compute\", ", "", "interference 2: kind: is missing" },
		{ "\"kind\": \"compute\", \"neighbours\": 1",
		  "\"kind\": \"memory\", \"neighbours\": 3",
		  "interference 2: neighbours: is in an earlier" },
		{ "\"neighbours\": 3", "\"neighbours\": 4",
		  "interference 1: neighbours: is out of range" },
		{ "\"emulated\": false, \"gpu\"", "\"emulated\": null, \"gpu\"",
		  "emulated: is not false" },
		{ "\"emulated\": false, \"gpu\"", "\"emulated\": 0, \"gpu\"",
		  "emulated: is not false" },
		{ "\"emulated\": false, \"gpu\"", "\"emulated\": [], \"gpu\"",
		  "emulated: is not false" },
		{ "\"emulated\": false, \"kind\"", "\"emulated\": true, \"kind\"",
		  "interference 1: emulated" },
		{ "\"emulated\": false, \"kind\"", "\"emulated\": null, \"kind\"",
		  "interference 1: emulated" },
		{ "{\"use\": \"law\"", "{\"emulated\": true, \"use\": \"law\"",
		  "points 1: emulated" },
		{ "\"law\": {", "\"law\": {\"emulated\": 0, ", "law: emulated" },
		{ "\"costs\": {", "\"costs\": {\"emulated\": true, ", "costs: emulated" },
		{ "\"a_later_member\"", "\"ladder\": [{}, {\"emulated\": []}], \"a_later_member\"",
		  "ladder 2: emulated" },
		{ "\"preemption_usec\": 41.2", "\"preemption_usec\": -2", "preemption_usec" },
		{ "\"occupied_cus\": 4,", "\"occupied_cus\": 5,", "points 1: occupied_cus" },
		{ "\"expected_cus\": 4,", "\"expected_cus\": 5,", "points 1: occupied_cus" },
		{ "\"throttled\": false, \"mask", "\"throttled\": true, \"mask",
		  "points 1: throttled" },
		{ "\"mask_honoured\": true", "\"mask_honoured\": 1", "points 1: mask_honoured" },
		{ "\"0x000000000000000f\"", "\"0x100000000000000f\"", "points 1: cu_mask" },
		{ "\"preemption_usec\": 41.2", "\"preemption_usec\": 0", "preemption_usec" },
		{ "\"points\": [", "\"points\": 7, \"old\": [", "points: has another type" },
		{ "]}\n", "]", "truncated" },
		{ "{\"schema\"", "[{\"schema\"", "truncated" },
		{ "]}\n", "]} more\n", "truncated" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct machine machine = machine_new();
		struct law before = machine.gpu.law;
		char *report = report_of(&machine.gpu);
		char *bad = replaced(report, rows[i].from, rows[i].to);

		scratch_write(&machine.scratch, FILE_NAME, bad);
		load(&machine);
		printf("  %s\n", machine.gpu.calibrated.problem);
		CHECK(strstr(machine.gpu.calibrated.problem, rows[i].why));
		CHECK(*machine.gpu.calibrated.problem && machine.diagnostics.n == 1);
		CHECK(memcmp(&before, &machine.gpu.law, sizeof(before)) == 0);
		CHECK(*machine.gpu.calibrated.date == '\0' &&
		      machine.gpu.calibrated.n_slowdowns == 0);
		free(bad);
		free(report);
		machine_done(&machine);
	}
}

TEST_WITH(problem_that_quotes_control_characters_can_be_printed, struct machine *machine)
{
	char *report = report_of(&machine->gpu), *bad = replaced(report, "gfx906", "gfx\\u0001");

	scratch_write(&machine->scratch, FILE_NAME, bad);
	load(machine);
	CHECK(strstr(machine->gpu.calibrated.problem, "gfx_target: is 'gfx?'"));
	free(bad);
	free(report);
}

TEST_WITH(report_of_a_part_of_the_gpu_is_refused, struct machine *machine)
{
	char *report = report_of(&machine->gpu), *at = report, *last = NULL;

	while ((at = strstr(at, "\"law\", \"cu_mask\"")))
		last = at++;
	CHECK(last);
	memcpy(last, "\"any\"", 5);
	scratch_write(&machine->scratch, FILE_NAME, report);
	load(machine);
	CHECK(strstr(machine->gpu.calibrated.problem, "points"));
	CHECK(machine->gpu.calibrated.date[0] == '\0');
	free(report);
}

TEST_WITH(report_cut_off_anywhere_is_refused, struct machine *machine)
{
	char *report = report_of(&machine->gpu);
	size_t size = strlen(report);

	for (size_t n = 0; n < size - 1; n += 37) {
		machine->gpu.calibrated = (struct calibrated){ 0 };
		scratch_put(&machine->scratch, FILE_NAME, report, n);
		load(machine);
		CHECK(*machine->gpu.calibrated.problem && !*machine->gpu.calibrated.date);
	}
	free(report);
}

TEST_WITH(report_of_a_gigabyte_is_refused_unread, struct machine *machine)
{
	scratch_write(&machine->scratch, FILE_NAME, "{");
	CHECK(truncate(scratch_at(&machine->scratch, FILE_NAME), 1 << 30) == 0);
	load(machine);
	CHECK(strstr(machine->gpu.calibrated.problem, "1 MiB"));
}

TEST_WITH(report_that_others_can_change_is_refused, struct machine *machine)
{
	char *report = report_of(&machine->gpu);

	scratch_write(&machine->scratch, FILE_NAME, report);
	CHECK(chmod(scratch_at(&machine->scratch, FILE_NAME), 0666) == 0);
	load(machine);
	CHECK(strstr(machine->gpu.calibrated.problem, "0666"));
	CHECK(chmod(scratch_at(&machine->scratch, FILE_NAME), 0644) == 0);
	CHECK(chmod(scratch_at(&machine->scratch, "calibration"), 0777) == 0);
	machine->gpu.calibrated = (struct calibrated){ 0 };
	load(machine);
	CHECK(strstr(machine->gpu.calibrated.problem, "0777"));
	CHECK(chmod(scratch_at(&machine->scratch, "calibration"), 0755) == 0);
	if (geteuid() == 0) {
		CHECK(chown(scratch_at(&machine->scratch, FILE_NAME), 65534, 65534) == 0);
		machine->gpu.calibrated = (struct calibrated){ 0 };
		calibration_load(machine->scratch.path, &trust, &machine->gpu,
				 &machine->diagnostics);
		CHECK(strstr(machine->gpu.calibrated.problem, "65534"));
	}
	free(report);
}

TEST(a_law_needs_two_different_numbers_of_cus)
{
	struct law_point points[] = { { 4, 1000 }, { 4, 1010 }, { 8, 500 } };
	struct law_fit fit;

	CHECK(law_fit(points, 1, &fit) == -EINVAL);
	CHECK(law_fit(points, 2, &fit) == -EINVAL);
	CHECK(law_fit(points, 3, &fit) == 0 && fit.a_usec > 0);
}
