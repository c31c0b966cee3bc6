/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sentences of refusals; their wording is the subject here and nowhere else. */

#include "core/policy/refusal.h"

#include "check.h"
#include "util/text.h"

static bool is(const char *text, const char *wanted)
{
	if (strcmp(text, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", text, wanted);
	return false;
}

static bool line_is(const struct refusal *refusal, const char *wanted)
{
	char line[REFUSAL_TEXT];

	refusal_line(refusal, NULL, line);
	return is(line, wanted);
}

static bool hint_is(const struct refusal *refusal, const char *wanted)
{
	char hint[REFUSAL_TEXT];

	refusal_hint(refusal, hint);
	return is(hint, wanted);
}

static bool wait_is(const struct refusal *refusal, const char *wanted)
{
	char wait[REFUSAL_TEXT];

	refusal_wait(refusal, wait);
	return is(wait, wanted);
}

static struct refusal refusal_of(enum reason reason, enum resource resource, uint64_t asked,
				 uint64_t free, uint64_t total)
{
	return (struct refusal){ .gpu = "g",
				 .reason = reason,
				 .resource = resource,
				 .retry = true,
				 .asked = asked,
				 .free = free,
				 .total = total };
}

static bool fits_are(uint64_t free, uint64_t below, uint64_t above, const char *wanted)
{
	struct refusal refusal = refusal_of(REASON_SHAPE, RESOURCE_CUS, 9, free, 60);

	refusal_set_fits(&refusal, RESOURCE_CUS, below, above);
	return hint_is(&refusal, wanted);
}

TEST(memory_has_units_and_is_rounded_down)
{
	const uint64_t free[] = {
		0, 1023, 1024, UINT64_C(3) << 29, (UINT64_C(2) << 30) - 1, UINT64_MAX - 1
	};
	const char *const wanted[] = { "0", "1023", "1.0K", "1.5G", "1.9G", "15.9E" };
	struct refusal refusal;
	char line[128];

	for (size_t i = 0; i < 6; i++) {
		refusal = refusal_of(REASON_VRAM, RESOURCE_VRAM, UINT64_MAX, free[i], UINT64_MAX);
		snprintf(line, sizeof(line), "15.9E asked, %s of 15.9E free", wanted[i]);
		CHECK(line_is(&refusal, line));
	}
	refusal = refusal_of(REASON_QUEUES, RESOURCE_QUEUES, UINT64_MAX, 4096, 5000);
	CHECK(line_is(&refusal, "18446744073709551615 asked, 4096 of 5000 free"));
}

TEST(floor_names_the_tenant_that_it_is_kept_for)
{
	struct refusal refusal = refusal_of(REASON_FLOOR, RESOURCE_CUS, 30, 15, 60);

	refusal_set_bound(&refusal, "reserved-cus", 15, "vr");
	CHECK(line_is(&refusal, "30 CUs asked, 15 of 60 free; reserved-cus of tenant vr keeps 15 "
				"free"));
	CHECK(wait_is(&refusal, "room beside reserved-cus of tenant vr on g"));
}

TEST(one_is_singular)
{
	struct refusal refusal = refusal_of(REASON_PROCESSES, RESOURCE_PROCESSES, 1, 0, 8);

	CHECK(line_is(&refusal, "1 asked, 0 of 8 free"));
	refusal.n_leases = 1;
	refusal.leases[0] = 7;
	CHECK(line_is(&refusal, "1 asked, 0 of 8 free; held by lease 7"));
	CHECK(fits_are(7, 1, 0, "1 CU fits now"));
	CHECK(fits_are(7, 1, 2, "1 or 2 CUs fit now"));
}

TEST(amounts_that_fit_are_listed)
{
	CHECK(fits_are(7, 7, 0, "7 CUs fit now"));
	CHECK(fits_are(7, 7, 12, "7 or 12 CUs fit now"));
	CHECK(fits_are(7, 0, 12, "12 CUs fit now, fewer do not"));
	CHECK(fits_are(7, 0, 0, "no number of CUs fits now"));
}

TEST(a_gpu_that_is_too_small_is_compared_with_what_it_has)
{
	struct refusal refusal = refusal_of(REASON_CUS, RESOURCE_CUS, 90, 60, 60);

	refusal.retry = false;
	refusal_set_fits(&refusal, RESOURCE_CUS, 60, 0);
	CHECK(line_is(&refusal, "90 asked, the GPU has 60; 60 CUs fit an empty GPU"));
	refusal = refusal_of(REASON_ABSENT, RESOURCE_GPUS, 3, 1, 1);
	refusal.retry = false;
	CHECK(line_is(&refusal, "3 GPUs asked, the machine has 1"));
	refusal.total = 4;
	CHECK(line_is(&refusal, "3 GPUs asked, 1 of the 4 of the machine can be chosen"));
	refusal = refusal_of(REASON_POLICY, RESOURCE_NONE, 0, 0, 0);
	refusal_set_bound(&refusal, "any", 0, "");
	CHECK(line_is(&refusal, "only a request that names this GPU gets it (any = no)"));
}

TEST(without_amounts_that_fit_the_sentence_is_whole)
{
	/* As gpuarbctl has it: fits-resource comes with fits. */
	struct refusal refusal = refusal_of(REASON_SHADER_ENGINES, RESOURCE_SHADER_ENGINES, 2, 1,
					    4);

	CHECK(line_is(&refusal, "2 asked, 1 of 4 free; no number of CUs fits now"));
}

TEST(bounds_name_their_key_tenant_and_user)
{
	struct refusal refusal = refusal_of(REASON_QUOTA, RESOURCE_CUS, 20, 15, 60);

	refusal_set_bound(&refusal, "max-cus", 30, "lab");
	refusal.held = 15;
	refusal.uid = 1000;
	CHECK(line_is(&refusal,
		      "20 CUs asked, 15 left; max-cus of tenant lab is 30, uid 1000 holds 15"));
	refusal.by_default = true;
	CHECK(line_is(
		&refusal,
		"20 CUs asked, 15 left; max-cus of tenant lab is 30, uid 1000 holds 15; asked "
		"by default-vram, not by the request"));
	refusal = refusal_of(REASON_POLICY, RESOURCE_CLASS, CLASS_REALTIME, 0, 0);
	refusal_set_bound(&refusal, "class", CLASS_BESTEFFORT, "*");
	CHECK(line_is(&refusal, "class realtime asked, tenant * allows besteffort; see "
				"gpuarb-tenants(5)"));
	refusal = refusal_of(REASON_POLICY, RESOURCE_NONE, 0, 0, 0);
	refusal_set_bound(&refusal, "tenant", 0, "lab");
	refusal.uid = 1000;
	CHECK(line_is(&refusal, "tenant lab does not match uid 1000"));
	refusal.tenant[0] = '\0';
	CHECK(line_is(&refusal, "no tenant matches uid 1000"));
}

TEST(processes_without_a_lease_are_listed_with_their_queues)
{
	struct refusal refusal = refusal_of(REASON_OVERSUBSCRIBED, RESOURCE_QUEUES, 2, 0, 1);

	refusal.held = 6;
	refusal.n_processes = 2;
	refusal.processes[0] =
		(struct unmanaged_process){ .pid = 10, .command = "python3", .queues = 1 };
	refusal.processes[1] =
		(struct unmanaged_process){ .pid = 11, .command = "ollama", .queues = 5 };
	CHECK(line_is(&refusal, "6 in use, the GPU has 1 queue slot; pid 10 (python3) has 1 queue, "
				"pid 11 (ollama) has 5 queues"));
	refusal.n_processes = 7;
	refusal.processes[2] =
		(struct unmanaged_process){ .pid = 12, .command = "vr", .queues = 1 };
	CHECK(hint_is(&refusal,
		      "6 in use, the GPU has 1 queue slot; pid 10 (python3) has 1 queue, "
		      "pid 11 (ollama) has 5 queues, pid 12 (vr) has 1 queue and 4 more"));
}

TEST(lists_of_leases_are_cut)
{
	struct refusal refusal = refusal_of(REASON_QUEUES, RESOURCE_QUEUES, 3, 2, 24);

	refusal.n_leases = 9;
	for (unsigned i = 0; i < REFUSAL_LEASES; i++)
		refusal.leases[i] = i + 1;
	CHECK(line_is(&refusal, "3 asked, 2 of 24 free; held by leases 1, 2, 3 and 6 "
				"more"));
}

TEST(a_waiting_lease_names_what_it_waits_for)
{
	struct refusal refusal = refusal_of(REASON_CUS, RESOURCE_CUS, 30, 0, 60);

	CHECK(wait_is(&refusal, "30 CUs on g"));
	refusal.others = true;
	CHECK(wait_is(&refusal, "30 CUs on g; other GPUs refuse too"));
	refusal.behind = 7;
	CHECK(wait_is(&refusal, "its turn on g, behind lease 7; other GPUs refuse too"));
	refusal = refusal_of(REASON_UNMANAGED, RESOURCE_QUEUES, 3, 0, 24);
	CHECK(wait_is(&refusal, "queue slots that processes without a lease use on g"));
	refusal = refusal_of(REASON_DRAIN, RESOURCE_CUS, 3, 0, 24);
	CHECK(wait_is(&refusal, "g, which is being drained"));
	refusal = (struct refusal){ 0 };
	CHECK(wait_is(&refusal, "a GPU"));
}

TEST(names_are_read_back)
{
	for (int i = 0; i < REASONS; i++)
		CHECK(reason_from_name(reason_names[i]) == i);
	for (int i = 0; i < RESOURCES; i++)
		CHECK(resource_from_name(resource_name((enum resource)i)) == i);
	CHECK(reason_from_name("bandwidth") < 0 && resource_from_name("bandwidth") < 0);
}

/* A command is bytes of the program's choice, and a sentence that is too long ends in one of them. */
TEST(sentence_that_is_cut_has_no_half_of_a_character)
{
	struct refusal refusal = refusal_of(REASON_UNMASKED, RESOURCE_CUS, 60, 0, 60);
	const struct unmanaged_process process = { .pid = 4711,
						   .command = "\u20ac\u20ac\u20ac\u20ac\u20ac" };
	char line[REFUSAL_TEXT];

	for (unsigned i = 0; i < 3; i++)
		refusal_add_process(&refusal, &process);
	for (size_t n = 1; n + 3 < sizeof(refusal.preempt); n++) {
		memset(refusal.preempt, 'a', n);
		memcpy(refusal.preempt + n, "\u20ac", 4);
		refusal_line(&refusal, NULL, line);
		CHECK(text_printable(line));
	}
	CHECK(strlen(line) == sizeof(line) - 1);
}

TEST(a_refusal_for_graphics_names_the_processes_that_draw)
{
	struct refusal refusal = { .gpu = "0000:03:00.0",
				   .reason = REASON_GRAPHICS,
				   .retry = true };
	char text[REFUSAL_TEXT];

	refusal_hint(&refusal, text);
	CHECK(strstr(text, "unknown") && strstr(text, "gpuarb-fdinfo.socket"));
	refusal.processes[0] =
		(struct unmanaged_process){ .pid = 4711, .uid = 1000, .command = "Xorg" };
	refusal.n_processes = 1;
	refusal_hint(&refusal, text);
	CHECK(strstr(text, "pid 4711 (Xorg) of uid 1000 draws") &&
	      strstr(text, "graphics = refuse-realtime"));
	CHECK(!strstr(text, "unknown") && !strstr(text, "queue"));
	refusal = (struct refusal){ .gpu = "0000:03:00.0", .reason = REASON_GRAPHICS };
	refusal.user_queues = 2;
	refusal_hint(&refusal, text);
	CHECK(strstr(text, "user queues of the graphics driver that compute: 2, which no CU mask "
			   "limits: end their programs, or boot with amdgpu.user_queue=0"));
	refusal.user_queues = -1;
	refusal_hint(&refusal, text);
	CHECK(strstr(text,
		     "it is unknown whether user queues of the graphics driver compute: enable "
		     "gpuarb-userqs.socket, with Linux 6.17 or later, or boot with"));
	CHECK(!strstr(text, "fdinfo") && !strstr(text, "refuse-realtime"));
	refusal_wait(&refusal, text);
	CHECK(strcmp(text, "0000:03:00.0, on which the graphics driver may compute") == 0);
}
