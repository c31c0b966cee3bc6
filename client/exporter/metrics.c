/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/exporter/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

#define MASK_WORDS 32 /* of the largest GPU */

/* What the leases of one tenant have, and their processes use, on one GPU. */
struct tally {
	uint64_t leases, paused, cus, queues, processes, vram;
	uint64_t borrowed_cus, observed_cus, observed_queues;
};

/* What the leases of one tenant are on the whole machine. */
struct tenant {
	const char *name;
	uint64_t waiting, oldest_usec, drifts, disturbed;
};

struct metrics {
	FILE *file;
	const struct metrics_format *format;
	const struct gpuarb_view *view;
	const struct gpuarb_counters *counters;
	const struct gpuarb_gpu *gpus;
	const struct gpuarb_lease_info *leases;
	size_t n_gpus, n_leases, n_tenants;
	struct tenant tenants[METRICS_TENANTS + 1]; /* the last one: all others */
	struct tally *tallies;                      /* [n_gpus][METRICS_TENANTS + 1] */
	uint64_t usec;
};

/* ---- the text ---------------------------------------------------------------------------- */

/* The value of a label, with the escapes of both formats. */
static void write_value(FILE *file, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', file);
		if (*value == '\n')
			fputs("\\n", file);
		else
			fputc(*value, file);
	}
}

static void write_label(FILE *file, const char *before, const char *name, const char *value)
{
	fprintf(file, "%s%s=\"", before, name);
	write_value(file, value);
	fputc('"', file);
}

/* The two formats name a counter differently: without and with _total. */
static void begin(const struct metrics *metrics, const char *name, const char *type,
		  const char *help)
{
	const char *suffix = strcmp(type, "counter") == 0 && !metrics->format->open ? "_total" : "";

	fprintf(metrics->file, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		type);
}

/* A line "NAMESUFFIX{LABEL="VALUE"} NUMBER"; second: another label with its value, or NULL. */
static void write_sample(const struct metrics *metrics, const char *name, const char *suffix,
			 const char *label, const char *value, const char *second,
			 const char *second_value, double number)
{
	fprintf(metrics->file, "%s%s", name, suffix);
	write_label(metrics->file, "{", label, value);
	if (second)
		write_label(metrics->file, ",", second, second_value);
	fprintf(metrics->file, "} %.17g\n", number);
}

/* ---- the sums ---------------------------------------------------------------------------- */

static struct tenant *find_tenant(struct metrics *metrics, const char *name)
{
	for (size_t i = 0; i < metrics->n_tenants; i++)
		if (strcmp(metrics->tenants[i].name, name) == 0)
			return &metrics->tenants[i];
	return &metrics->tenants[METRICS_TENANTS];
}

static size_t find_gpu(const struct metrics *metrics, const char *name)
{
	size_t i = 0;

	while (i < metrics->n_gpus && strcmp(metrics->gpus[i].name, name) != 0)
		i++;
	return i;
}

static struct tally *find_tally(struct metrics *metrics, size_t gpu, const char *tenant)
{
	size_t i = (size_t)(find_tenant(metrics, tenant) - metrics->tenants);

	return &metrics->tallies[gpu * (METRICS_TENANTS + 1) + i];
}

static void add_mask(uint32_t sum[MASK_WORDS], const uint32_t *mask, size_t words)
{
	for (size_t w = 0; w < words && w < MASK_WORDS; w++)
		sum[w] |= mask[w];
}

static void add_partition(struct metrics *metrics, const char *tenant,
			  const struct gpuarb_partition *partition)
{
	size_t gpu = find_gpu(metrics, partition->gpu);
	struct tally *tally;

	if (gpu == metrics->n_gpus)
		return;
	tally = find_tally(metrics, gpu, tenant);
	tally->leases++;
	tally->paused += partition->paused;
	tally->cus += partition->cus;
	tally->queues += partition->queues;
	tally->processes += partition->processes;
	tally->vram += partition->vram;
}

static void add_lease(struct metrics *metrics, size_t i)
{
	const struct gpuarb_lease_info *lease = &metrics->leases[i];
	struct tenant *tenant = find_tenant(metrics, lease->tenant);
	uint64_t since = gpuarb_view_since(metrics->view, i);

	for (size_t k = 0; k < lease->n_partitions; k++)
		add_partition(metrics, lease->tenant, &lease->partitions[k]);
	for (size_t k = 0; gpuarb_view_drift(metrics->view, i, k); k++)
		tenant->drifts++;
	tenant->disturbed += gpuarb_view_intruder(metrics->view, i, 0) != NULL;
	if (strcmp(lease->state, "waiting") != 0)
		return;
	tenant->waiting++;
	if (since > 0 && since < metrics->usec && metrics->usec - since > tenant->oldest_usec)
		tenant->oldest_usec = metrics->usec - since;
}

static int by_id(const void *id, const void *element)
{
	const struct gpuarb_lease_info *lease = element;
	uint64_t wanted = *(const uint64_t *)id;

	return wanted < lease->id ? -1 : wanted > lease->id;
}

/* The tenant of a lease by its number: leases are sorted. "": there is no such lease. */
static const char *tenant_of(const struct metrics *metrics, uint64_t id)
{
	const struct gpuarb_lease_info *lease =
		metrics->n_leases > 0
			? bsearch(&id, metrics->leases, metrics->n_leases, sizeof(*lease), by_id)
			: NULL;

	return lease ? lease->tenant : "";
}

static void add_observed(struct metrics *metrics, size_t gpu)
{
	const struct gpuarb_cover *cover;

	for (size_t k = 0; (cover = gpuarb_view_cover(metrics->view, gpu, k)); k++) {
		struct tally *tally;

		if (cover->lease == 0)
			continue;
		tally = find_tally(metrics, gpu, tenant_of(metrics, cover->lease));
		tally->observed_cus += cover->cus;
		tally->observed_queues += cover->queues;
	}
}

/* Whether other leases may have its CUs: it lends them, or has not got all of them back. */
static bool lends(const struct gpuarb_lease_info *lease)
{
	return strcmp(lease->lease_class, "realtime") == 0 &&
	       (strcmp(lease->state, "inactive") == 0 || strcmp(lease->state, "activating") == 0);
}

static const struct gpuarb_partition *partition_on(const struct metrics *metrics, size_t lease,
						   size_t gpu)
{
	const struct gpuarb_lease_info *info = &metrics->leases[lease];

	for (size_t i = 0; i < info->n_partitions; i++)
		if (strcmp(info->partitions[i].gpu, metrics->gpus[gpu].name) == 0)
			return &info->partitions[i];
	return NULL;
}

/* CUs of leases that lend, in masks of other leases. */
static void add_borrowed(struct metrics *metrics, size_t gpu)
{
	const struct gpuarb_partition *partition;
	uint32_t lent[MASK_WORDS] = { 0 };

	for (size_t i = 0; i < metrics->n_leases; i++)
		if (lends(&metrics->leases[i]) && (partition = partition_on(metrics, i, gpu)))
			add_mask(lent, partition->cu_mask, partition->cu_mask_words);
	for (size_t i = 0; i < metrics->n_leases; i++) {
		struct tally *tally;

		if (lends(&metrics->leases[i]) || !(partition = partition_on(metrics, i, gpu)))
			continue;
		tally = find_tally(metrics, gpu, metrics->leases[i].tenant);
		for (size_t w = 0; w < partition->cu_mask_words && w < MASK_WORDS; w++)
			tally->borrowed_cus += (unsigned)__builtin_popcount(lent[w] &
									    partition->cu_mask[w]);
	}
}

static int metrics_init(struct metrics *metrics)
{
	const char *const *names;
	size_t n = gpuarb_view_tenants(metrics->view, &names);

	metrics->n_gpus = gpuarb_view_gpus(metrics->view, &metrics->gpus);
	metrics->n_leases = gpuarb_view_leases(metrics->view, &metrics->leases);
	metrics->n_tenants = n < METRICS_TENANTS ? n : METRICS_TENANTS;
	for (size_t i = 0; i < metrics->n_tenants; i++)
		metrics->tenants[i].name = names[i];
	metrics->tenants[METRICS_TENANTS].name = "";

	metrics->tallies = calloc(metrics->n_gpus * (METRICS_TENANTS + 1) + 1,
				  sizeof(*metrics->tallies));
	if (!metrics->tallies)
		return -ENOMEM;
	for (size_t i = 0; i < metrics->n_leases; i++)
		add_lease(metrics, i);
	for (size_t i = 0; i < metrics->n_gpus; i++) {
		add_borrowed(metrics, i);
		add_observed(metrics, i);
	}
	return 0;
}

/* ---- GPUs -------------------------------------------------------------------------------- */

/* CUs that queues of processes without a lease cover. */
static double unmanaged_cus(const struct metrics *metrics, size_t i)
{
	const struct gpuarb_cover *cover;
	uint32_t mask[MASK_WORDS] = { 0 };
	unsigned cus = 0;

	if (gpuarb_view_masks_observed(metrics->view, i) == 0)
		return NAN;
	for (size_t k = 0; (cover = gpuarb_view_cover(metrics->view, i, k)); k++)
		if (cover->lease == 0)
			add_mask(mask, cover->cu_mask, cover->cu_mask_words);
	for (size_t w = 0; w < MASK_WORDS; w++)
		cus += (unsigned)__builtin_popcount(mask[w]);
	return cus;
}

/* Gauges of GPU i: names, values, where NAN is unknown, and what they mean. */
/* clang-format off */
#define GPU_GAUGES(ROW)                                                                           \
	ROW(cus, gpu->cus, "Compute units of the GPU.")                                           \
	ROW(cus_free, gpu->cus_free, "Compute units in no mask of a lease.")                      \
	ROW(queue_slots, gpu->queue_slots, "Hardware queue slots.")                               \
	ROW(queue_slots_free, gpu->queue_slots_free, "Hardware queue slots that can be granted.") \
	ROW(process_slots, gpu->process_slots, "Process slots (VMIDs).")                          \
	ROW(process_slots_free, gpu->process_slots_free, "Process slots that can be granted.")    \
	ROW(vram_bytes, gpu->vram_bytes, "Memory of the GPU.")                                    \
	ROW(vram_free_bytes, gpu->vram_free, "Memory that can be granted.")                       \
	ROW(vram_pressure, gpuarb_view_vram_pressure(metrics->view, i), "1: its memory runs short.") \
	ROW(unmanaged_processes, gpu->n_unmanaged,                                                \
	    "Processes with queues and without a lease, at most 64.")                             \
	ROW(unmanaged_cus, unmanaged_cus(metrics, i),                                             \
	    "Compute units that queues of processes without a lease cover.")                      \
	ROW(oversubscribed, gpu->oversubscribed, "1: more is in use than the GPU has.")           \
	ROW(draining, gpu->draining, "1: an administrator has stopped new grants.")               \
	ROW(fairness_ratio, gpuarb_view_fairness(metrics->view, i),                               \
	    "How equally adaptable leases share the GPU; 1: equally.")
/* clang-format on */

#define WRITE_GAUGE(gauge, value, help)                                                         \
	begin(metrics, "gpuarb_gpu_" #gauge, "gauge", help);                                    \
	for (size_t i = 0; i < metrics->n_gpus; i++) {                                          \
		const struct gpuarb_gpu *gpu = &metrics->gpus[i];                               \
		double number = (double)(value);                                                \
                                                                                                \
		if (!isnan(number))                                                             \
			write_sample(metrics, "gpuarb_gpu_" #gauge, "", "gpu", gpu->name, NULL, \
				     NULL, number);                                             \
	}

static void write_gpus(const struct metrics *metrics)
{
	GPU_GAUGES(WRITE_GAUGE)
}

static void write_driver_events(const struct metrics *metrics)
{
	begin(metrics, "gpuarb_gpu_driver_events", "counter",
	      "Events of the driver since gpuarbd was started.");
	for (size_t i = 0; i < metrics->n_gpus; i++) {
		const struct gpuarb_driver_events *events;
		size_t n = gpuarb_view_driver_events(metrics->view, i, &events);

		for (size_t k = 0; k < n; k++)
			write_sample(metrics, "gpuarb_gpu_driver_events", "_total", "gpu",
				     metrics->gpus[i].name, "kind", events[k].kind,
				     (double)events[k].count);
	}
}

/* ---- tenants ----------------------------------------------------------------------------- */

static const struct {
	const char *name, *help;
	size_t offset; /* in struct tally */
} tally_gauges[] = {
#define TALLY(name, member, help)                                           \
	{                                                                   \
		"gpuarb_tenant_" name, help, offsetof(struct tally, member) \
	}
	TALLY("leases", leases, "Leases with a partition of the GPU."),
	TALLY("leases_paused", paused, "Leases that are paused on the GPU."),
	TALLY("cus", cus, "Compute units that were granted."),
	TALLY("cus_borrowed", borrowed_cus, "Compute units that inactive leases lend it."),
	TALLY("cus_observed", observed_cus, "Compute units that queues of processes cover."),
	TALLY("queues", queues, "Hardware queues that were granted."),
	TALLY("queues_observed", observed_queues, "Hardware queues that were observed."),
	TALLY("processes", processes, "Processes that were granted."),
	TALLY("vram_bytes", vram, "Memory that was granted."),
};

static uint64_t number_at(const void *object, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)object + offset, sizeof(value));
	return value;
}

static void write_tallies(const struct metrics *metrics)
{
	static const struct tally nothing;

	for (size_t g = 0; g < ARRAY_SIZE(tally_gauges); g++) {
		begin(metrics, tally_gauges[g].name, "gauge", tally_gauges[g].help);
		for (size_t i = 0; i < metrics->n_gpus * (METRICS_TENANTS + 1); i++) {
			const struct tally *tally = &metrics->tallies[i];

			if (memcmp(tally, &nothing, sizeof(nothing)) == 0)
				continue;
			write_sample(metrics, tally_gauges[g].name, "", "gpu",
				     metrics->gpus[i / (METRICS_TENANTS + 1)].name, "tenant",
				     metrics->tenants[i % (METRICS_TENANTS + 1)].name,
				     (double)number_at(tally, tally_gauges[g].offset));
		}
	}
}

static const struct {
	const char *name, *help;
	size_t offset; /* in struct tenant */
	double unit;
} tenant_gauges[] = {
	{ "gpuarb_tenant_waiting_leases", "Leases that wait.", offsetof(struct tenant, waiting),
	  1 },
	{ "gpuarb_tenant_waiting_seconds", "How long the first of them waits.",
	  offsetof(struct tenant, oldest_usec), 1e6 },
	{ "gpuarb_tenant_drifts", "Ways in which leases exceed what they were granted.",
	  offsetof(struct tenant, drifts), 1 },
	{ "gpuarb_tenant_disturbed_leases", "Leases on whose CUs queues of others are.",
	  offsetof(struct tenant, disturbed), 1 },
};

static void write_tenants(const struct metrics *metrics)
{
	for (size_t g = 0; g < ARRAY_SIZE(tenant_gauges); g++) {
		begin(metrics, tenant_gauges[g].name, "gauge", tenant_gauges[g].help);
		for (size_t i = 0; i <= METRICS_TENANTS; i++) {
			uint64_t value = number_at(&metrics->tenants[i], tenant_gauges[g].offset);

			if (i < metrics->n_tenants || value > 0)
				write_sample(metrics, tenant_gauges[g].name, "", "tenant",
					     metrics->tenants[i].name, NULL, NULL,
					     (double)value / tenant_gauges[g].unit);
		}
	}
}

/* ---- counters ---------------------------------------------------------------------------- */

static const struct {
	const char *name, *help;
	size_t offset; /* in struct gpuarb_counters_row */
} tenant_counters[] = {
#define COUNTER(name, member, help)                                                       \
	{                                                                                 \
		"gpuarb_tenant_" name, help, offsetof(struct gpuarb_counters_row, member) \
	}
	COUNTER("grants", grants, "Leases that were granted."),
	COUNTER("waits", waits, "Leases that began to wait."),
	COUNTER("revocations", revocations, "Leases that their holders did not end."),
	COUNTER("preemptions", preemptions, "Leases that were revoked for a waiting lease."),
	COUNTER("moves", moves, "Moves of leases to other CUs, for another lease."),
	COUNTER("drift_events", drifts, "Times that a lease began to use more than granted."),
};

static void write_tenant_counters(const struct metrics *metrics)
{
	const struct gpuarb_counters_row *row;

	for (size_t c = 0; c < ARRAY_SIZE(tenant_counters); c++) {
		begin(metrics, tenant_counters[c].name, "counter", tenant_counters[c].help);
		for (size_t i = 0; (row = gpuarb_counters_get(metrics->counters, i)); i++)
			write_sample(metrics, tenant_counters[c].name, "_total", "tenant",
				     row->tenant, NULL, NULL,
				     (double)number_at(row, tenant_counters[c].offset));
	}
	begin(metrics, "gpuarb_tenant_refusals", "counter", "Requests that were refused.");
	for (size_t i = 0; (row = gpuarb_counters_get(metrics->counters, i)); i++)
		for (size_t k = 0; k < row->n_refusals; k++)
			write_sample(metrics, "gpuarb_tenant_refusals", "_total", "tenant",
				     row->tenant, "reason", row->refusals[k].reason,
				     (double)row->refusals[k].count);
}

static void write_histogram(const struct metrics *metrics, const struct gpuarb_duration *duration,
			    const char *name, const char *help)
{
	uint64_t count = 0;

	begin(metrics, name, "histogram", help);
	for (size_t i = 0; i < duration->n_bounds; i++) {
		count += duration->counts[i];
		fprintf(metrics->file, "%s_bucket{le=\"%g%s\"} %" PRIu64 "\n", name,
			(double)duration->bounds_usec[i] / 1e6,
			duration->bounds_usec[i] % 1000000 == 0 ? ".0" : "", count);
	}
	count += duration->counts[duration->n_bounds];
	fprintf(metrics->file,
		"%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.17g\n%s_count %" PRIu64 "\n", name,
		count, name, (double)duration->sum_usec / 1e6, name, count);
}

static void write_histograms(const struct metrics *metrics)
{
	static const struct {
		const char *duration, *name, *help;
	} histograms[] = {
		{ "decision", "gpuarb_decision_seconds",
		  "How long gpuarbd took to decide about a request." },
		{ "activation", "gpuarb_activation_seconds",
		  "How long leases waited for CUs that others had borrowed." },
		{ "wait", "gpuarb_wait_seconds", "How long leases waited for their grant." },
	};
	const struct gpuarb_duration *duration;

	for (size_t i = 0; (duration = gpuarb_counters_duration(metrics->counters, i)); i++)
		for (size_t h = 0; h < ARRAY_SIZE(histograms); h++)
			if (strcmp(duration->name, histograms[h].duration) == 0)
				write_histogram(metrics, duration, histograms[h].name,
						histograms[h].help);
}

static void write_counters(const struct metrics *metrics)
{
	begin(metrics, "gpuarb_start_time_seconds", "gauge",
	      "When gpuarbd was started, since 1970.");
	fprintf(metrics->file, "gpuarb_start_time_seconds %" PRIu64 "\n",
		gpuarb_counters_since(metrics->counters));
	write_tenant_counters(metrics);
	write_histograms(metrics);
}

/* ---- all of it --------------------------------------------------------------------------- */

static void write_states(const struct metrics *metrics)
{
	static const char *const states[] = { "waiting",    "granted",  "inactive",
					      "activating", "revoking", "ending" };

	begin(metrics, "gpuarb_leases", "gauge", "Leases by state.");
	for (size_t s = 0; s < ARRAY_SIZE(states); s++) {
		size_t n = 0;

		for (size_t i = 0; i < metrics->n_leases; i++)
			n += strcmp(metrics->leases[i].state, states[s]) == 0;
		fprintf(metrics->file, "gpuarb_leases{state=\"%s\"} %zu\n", states[s], n);
	}
}

static void write_up(const struct metrics *metrics, bool up)
{
	begin(metrics, "gpuarb_up", "gauge", "1: gpuarbd has answered.");
	fprintf(metrics->file, "gpuarb_up %d\n", up);
}

static void end(const struct metrics *metrics)
{
	if (metrics->format->open)
		fputs("# EOF\n", metrics->file);
}

int metrics_write(FILE *file, const struct metrics_format *format, const struct gpuarb_view *view,
		  const struct gpuarb_counters *counters, uint64_t usec)
{
	struct metrics metrics = {
		.file = file, .format = format, .view = view, .counters = counters, .usec = usec
	};
	int r = metrics_init(&metrics);

	if (r < 0)
		return r;
	write_up(&metrics, true);
	begin(&metrics, "gpuarb_version", "gauge",
	      "Always 1; the label has the version of gpuarbd.");
	write_label(file, "gpuarb_version{", "version", gpuarb_view_version(view));
	fputs("} 1\n", file);
	write_gpus(&metrics);
	write_driver_events(&metrics);
	write_states(&metrics);
	write_tallies(&metrics);
	write_tenants(&metrics);
	if (counters)
		write_counters(&metrics);
	end(&metrics);
	free(metrics.tallies);
	return 0;
}

void metrics_write_absent(FILE *file, const struct metrics_format *format)
{
	struct metrics metrics = { .file = file, .format = format };

	write_up(&metrics, false);
	end(&metrics);
}
