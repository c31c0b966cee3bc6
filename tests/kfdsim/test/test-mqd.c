/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What gpuarbd reads in kfd/mqds beside what the emulated driver prints there, which has a mapping
 * and a layout of its own.
 */

#include <errno.h>

#include "core/mask/codec.h"
#include "debugfs-text.h"
#include "kfdsim/test/text-rig.h"
#include "check.h"
#include "random-geometry.h"
#include "seed.h"
#include "sys/config/profile.h"

static const char *const profiles[] = {
	"polaris10",  "vega10", "radeon-vii", "mi100",     "mi210",      "mi250",    "mi300x-spx",
	"mi300x-cpx", "v620",   "rx6900xt",   "rx7900xtx", "strix-halo", "rx9070xt",
};

struct reading {
	struct gpu_info gpus[ARRAY_SIZE(profiles)];
	struct sim *sim;
	char *text;
	size_t size;
	struct observed_mask *seen;
	size_t n;
	char why[200];
};

static void reading_start(struct reading *reading)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char dir[4096];

	*reading = (struct reading){ 0 };
	snprintf(dir, sizeof(dir), "%s/conf/gpus", getenv("GPUARB_ROOT"));
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		CHECK(profile_load(dir, profiles[i], &profile, &diagnostics) == 0);
		reading->gpus[i] = profile.info;
	}
	reading->sim = rig_sim(reading->gpus, ARRAY_SIZE(profiles));
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
		reading->gpus[i] = reading->sim->gpus[i].info;
}

static void print(struct reading *reading)
{
	FILE *out;

	free(reading->text);
	out = open_memstream(&reading->text, &reading->size);
	CHECK(out);
	debugfs_mqds(reading->sim, out);
	CHECK(fclose(out) == 0);
}

static int parse(struct reading *reading, const char *text, size_t size)
{
	free(reading->seen);
	reading->seen = NULL;
	reading->n = 0;
	return kfd_mqds_parse(text, size, reading->gpus, ARRAY_SIZE(profiles), &reading->seen,
			      &reading->n, reading->why, sizeof(reading->why));
}

static void reading_end(struct reading *reading)
{
	free(reading->seen);
	free(reading->text);
	rig_done(reading->sim);
}

/* Masks as clients set them: any bits, short ones too, but no half WGP. *ret: the CUs that they occupy. */
static void mask_randomly(struct sim_queue *queue, struct cuset *ret)
{
	struct codec codec;
	struct cuset set;

	codec_init(&codec, &queue->gpu->info.geometry);
	queue->mask_bits = 32 * (1 + below((unsigned)codec_words(&codec)));
	for (unsigned i = 0; i < queue->mask_bits / 32; i++) {
		queue->mask[i] = (uint32_t)mrand48() & (uint32_t)mrand48();
		if (codec.step == 2)
			queue->mask[i] = (queue->mask[i] & 0x55555555U) * 3;
	}
	sim_mask_map(queue);
	codec_decode(&codec, queue->mask, queue->mask_bits / 32, &set);
	geometry_occupied(&queue->gpu->info.geometry, &set, ret);
}

TEST(daemon_reads_the_mask_that_was_set)
{
	_cleanup_(reading_end) struct reading reading;
	struct cuset set;

	seed_rand(SEED_OF_RUN("SEED"));
	reading_start(&reading);
	for (unsigned gpu = 0; gpu < ARRAY_SIZE(profiles); gpu++)
		for (unsigned round = 0; round < 20; round++) {
			struct sim_process *process = rig_process(reading.sim, 4000 + (int)round);
			struct sim_queue *queue = rig_queue(process, gpu);

			mask_randomly(queue, &set);
			print(&reading);
			CHECK(parse(&reading, reading.text, reading.size) == 0);
			CHECK(reading.n == 1 && reading.seen[0].pid == process->pid);
			CHECK(reading.seen[0].kfd_gpu_id == queue->gpu->info.kfd_gpu_id);
			CHECK(cuset_equal(&reading.seen[0].cus, &set));
			rig_process_gone(process);
		}
}

TEST(daemon_reads_unmasked_queues_as_unmasked_on_every_gpu)
{
	_cleanup_(reading_end) struct reading reading;
	struct cuset all;

	reading_start(&reading);
	for (unsigned gpu = 0; gpu < ARRAY_SIZE(profiles); gpu++)
		rig_queue(rig_process(reading.sim, 100 + (int)gpu), gpu);
	print(&reading);
	CHECK(parse(&reading, reading.text, reading.size) == 0);
	CHECK(reading.n == ARRAY_SIZE(profiles));
	for (unsigned i = 0; i < reading.n; i++) {
		/* Processes, too, are printed with the newest first. */
		unsigned gpu = (unsigned)ARRAY_SIZE(profiles) - 1 - i;

		geometry_all(&reading.gpus[gpu].geometry, &all);
		CHECK(reading.seen[i].pid == (pid_t)(100 + gpu));
		CHECK(cuset_equal(&reading.seen[i].cus, &all));
	}
}

/* Several processes with some queues of each kind on any of the GPUs. */
static unsigned crowd(struct reading *reading)
{
	unsigned compute = 0;
	struct cuset set;

	for (unsigned i = 0; i < 5; i++) {
		struct sim_process *process = rig_process(reading->sim, 1 + (int)below(99999));

		for (unsigned j = below(4); j > 0; j--) {
			struct sim_queue *queue = rig_queue(process,
							    below((unsigned)ARRAY_SIZE(profiles)));

			if (below(3) == 0)
				queue->type = below(2) ? SIM_SDMA : SIM_SDMA_XGMI;
			else if (below(2))
				mask_randomly(queue, &set);
			compute += queue->type == SIM_COMPUTE;
		}
	}
	return compute;
}

TEST(sdma_queues_do_not_disturb_reading_of_multi_xcc_queues)
{
	struct reading reading;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned round = 0; round < 20; round++) {
		unsigned compute;

		reading_start(&reading);
		compute = crowd(&reading);
		print(&reading);
		CHECK(parse(&reading, reading.text, reading.size) == 0);
		CHECK(reading.n == compute);
		reading_end(&reading);
	}
}

/* Garbles the text: bytes that change, go, come twice; an end that is missing. */
static size_t garble(char *text, size_t size)
{
	size_t at, other, n;

	for (unsigned i = 1 + below(3); i > 0 && size > 1; i--) {
		at = below((unsigned)size);
		other = below((unsigned)size);
		n = below((unsigned)(size - (at > other ? at : other)));
		switch (below(5)) {
		case 0: size = at; break;
		case 1: text[at] = (char)below(256); break;
		case 2: memmove(text + at, text + other, n); break;
		case 3: text[at] = "\n :0f-x"[below(7)]; break;
		default: memmove(text + at, text + at + 1, size - at - 1); size--;
		}
	}
	return size;
}

/* Under the sanitizers: it reads no byte too much, and either refuses with a sentence or returns
 * rows that are sound. The copy has exactly the size that it says. */
TEST(garbled_descriptors_are_refused_or_valid)
{
	unsigned taken = 0, refused = 0;
	struct reading reading;
	struct cuset all;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned round = 0; round < 400; round++) {
		char *copy;
		size_t size;
		int r;

		if (round % 20 == 0) {
			if (round > 0)
				reading_end(&reading);
			reading_start(&reading);
			crowd(&reading);
			print(&reading);
		}
		copy = malloc(reading.size + 1);
		CHECK(copy);
		memcpy(copy, reading.text, reading.size);
		size = garble(copy, reading.size);
		copy = realloc(copy, size > 0 ? size : 1);
		CHECK(copy);

		r = parse(&reading, copy, size);
		CHECK(r == 0 || r == -EBADMSG);
		if (r < 0)
			CHECK(strncmp(reading.why, "kfd/mqds, line ", 15) == 0 && !reading.seen);
		for (size_t i = 0; i < reading.n; i++) {
			const struct gpu_info *info = NULL;

			for (size_t j = 0; j < ARRAY_SIZE(profiles); j++)
				if (reading.gpus[j].kfd_gpu_id == reading.seen[i].kfd_gpu_id)
					info = &reading.gpus[j];
			CHECK(info && reading.seen[i].pid > 0);
			geometry_all(&info->geometry, &all);
			CHECK(cuset_within(&reading.seen[i].cus, &all));
		}
		taken += r == 0;
		refused += r < 0;
		free(copy);
	}
	reading_end(&reading);
	printf("%u taken, %u refused\n", taken, refused);
	CHECK(taken > 0 && refused > 0);
}
