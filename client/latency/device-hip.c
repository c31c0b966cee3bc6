/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/device.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/latency/compiler.h"
#include "client/latency/kernel.h"
#include "util/base.h"
#include "libgpuarb/gpuarb-queues.h"
#include "libgpuarb/hip/gpuarb-hip.h"

#define LINE_WORDS 32U /* 128 bytes, the longest cache line of a GPU */
#define STRIDE_WORDS (2 * LINE_WORDS)
#define FLAG_WORDS (CUSET_XCCS * STRIDE_WORDS)
#define ATTEMPTS 3
#define MEMORY_BYTES (UINT32_C(512) << 20)
#define PATIENCE_MS 60000     /* much longer than GAME_SPINS takes */
#define CLOCK_MS 100          /* the GPU clock is compared with the host clock over this time */
#define CLOCK_READINGS 5      /* of which the narrowest counts; the first launch is slow */
#define CLOCK_SOON_NS 2000000 /* so long the end is polled without a pause */

/* Memory that the GPU writes and the host reads. */
struct shared {
	struct report report[2][CUSET_XCCS];
	uint64_t clock;
	uint64_t gap[2]; /* state, longest; of KERNEL_GAP */
};

struct hip {
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease;
	size_t partition;
	const struct stop *stop;
	struct device *device; /* for its message */
	hipModule_t module;
	hipFunction_t play, clear, clock, spin, read, gap, multiply;
	void *memory;       /* zeroes, MEMORY_BYTES; NULL: not allocated yet */
	struct wave *waves; /* memory of n_waves */
	unsigned n_waves;
	unsigned *flags;
	struct shared *shared;
	double tick_ns; /* 0: not measured yet */
	double tick_error;
	hipStream_t raw; /* of create_raw(); NULL: none */
	bool masked;     /* what is not a stream of ours, too */
	bool abandoned;  /* kernels still run; the end of the process ends them */
};

PRINTF_LIKE(3, 4)
static int problem(struct device *device, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(device->problem, sizeof(device->problem), format, args);
	va_end(args);
	return error;
}

static int check(struct hip *hip, const char *call, hipError_t error)
{
	if (error == hipSuccess)
		return 0;
	(void)hipGetLastError();
	return problem(hip->device, error == hipErrorOutOfMemory ? -ENOMEM : -EIO, "%s: %s", call,
		       hipGetErrorString(error));
}

/* ---- streams ---------------------------------------------------------------------- */

/* ROCr creates a queue for itself with the first stream. */
static int mask_others(struct hip *hip)
{
	int r = gpuarb_lease_apply(hip->lease);

	if (r < 0)
		return problem(hip->device, r, "%s", gpuarb_last_error(hip->gpuarb));
	hip->masked = true;
	return 0;
}

static int create(void *data, const uint32_t *mask, size_t words, void **ret)
{
	struct hip *hip = data;
	hipStream_t stream = NULL;
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < ATTEMPTS; i++)
		r = gpuarb_hip_stream_create_within(hip->lease, hip->partition, mask, words,
						    &stream);
	if (r < 0)
		return problem(hip->device, r == -EAGAIN ? -EBUSY : r, "%s",
			       gpuarb_last_error(hip->gpuarb));
	*ret = stream;
	return hip->masked ? 0 : mask_others(hip);
}

/* The mask has a bit for each CU: only GPUs without WGPs have several XCCs. */
static int create_raw(void *data, const uint32_t *mask, size_t words, void **ret)
{
	struct hip *hip = data;
	hipStream_t stream = NULL;
	int r = check(hip, "hipExtStreamCreateWithCUMask",
		      hipExtStreamCreateWithCUMask(&stream, (uint32_t)words, mask));

	if (r >= 0)
		*ret = hip->raw = stream;
	return r;
}

/* hipStreamDestroy() waits for the kernels of the stream. */
static void destroy(void *data, void *stream)
{
	struct hip *hip = data;

	if (hip->abandoned)
		return;
	if (stream != hip->raw) {
		(void)gpuarb_hip_stream_destroy(hip->lease, stream);
		return;
	}
	(void)hipStreamDestroy(hip->raw);
	hip->raw = NULL;
}

/* ---- games ------------------------------------------------------------------------ */

static int finish(struct hip *hip, hipStream_t stream)
{
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		hipError_t error = hipStreamQuery(stream);
		int r;

		if (error != hipErrorNotReady)
			return check(hip, "hipStreamQuery", error);
		r = hip->stop->wait(hip->stop->data, 1);
		if (r < 0) {
			hip->abandoned = true;
			return r;
		}
	}
	hip->abandoned = true;
	return problem(hip->device, -ETIMEDOUT, "a kernel has not ended within %d s",
		       PATIENCE_MS / 1000);
}

static int launch_threads(struct hip *hip, hipFunction_t function, unsigned groups,
			  unsigned threads, hipStream_t stream, void **parameters)
{
	return check(hip, "hipModuleLaunchKernel",
		     hipModuleLaunchKernel(function, groups, 1, 1, threads, 1, 1, 0, stream,
					   parameters, NULL));
}

static int launch(struct hip *hip, hipFunction_t function, unsigned groups, hipStream_t stream,
		  void **parameters)
{
	return launch_threads(hip, function, groups, 1, stream, parameters);
}

static int clear(struct hip *hip, hipStream_t stream)
{
	unsigned words = FLAG_WORDS;
	void *parameters[] = { &hip->flags, &words };
	int r = launch(hip, hip->clear, 1, stream, parameters);

	return r < 0 ? r : finish(hip, stream);
}

static uint64_t our_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Both clocks at one moment, to within so many nanoseconds of ours. */
struct clocks {
	uint64_t theirs, ours, within;
};

/* That of the GPU is 0 if the kernel did not run. */
static int read_clocks_once(struct hip *hip, hipStream_t stream, struct clocks *ret)
{
	uint64_t *where = &hip->shared->clock, before = our_clock();
	void *parameters[] = { &where };
	int r;

	hip->shared->clock = 0;
	r = launch(hip, hip->clock, 1, stream, parameters);
	while (r >= 0 && hipStreamQuery(stream) == hipErrorNotReady &&
	       our_clock() - before < CLOCK_SOON_NS)
		;
	if (r >= 0)
		r = finish(hip, stream);
	ret->theirs = hip->shared->clock & ~KERNEL_CLOCK_MODEL;
	ret->within = our_clock() - before;
	ret->ours = before + ret->within / 2;
	hip->device->emulated = hip->shared->clock & KERNEL_CLOCK_MODEL;
	return r;
}

/* The narrowest of some readings. */
static int read_clocks(struct hip *hip, hipStream_t stream, struct clocks *ret)
{
	int r = 0;

	ret->within = UINT64_MAX;
	for (int i = 0; i < CLOCK_READINGS && r >= 0; i++) {
		struct clocks clocks;

		r = read_clocks_once(hip, stream, &clocks);
		if (r >= 0 && clocks.within < ret->within)
			*ret = clocks;
	}
	return r;
}

/* The clock of the kernel has a constant rate. HIP 5.2 cannot tell the rate. */
static int calibrate(struct hip *hip, hipStream_t stream)
{
	struct clocks first, last;
	int r = read_clocks(hip, stream, &first);

	if (r >= 0)
		r = hip->stop->wait(hip->stop->data, CLOCK_MS);
	if (r >= 0)
		r = read_clocks(hip, stream, &last);
	if (r < 0 || last.theirs == 0) /* the game will report that no kernel ran */
		return r;
	if (hip->device->emulated && hip->device->refuses_model)
		return problem(hip->device, -EOPNOTSUPP,
			       "this GPU is emulated, and its times are those of a model: "
			       "--emulated accepts them");
	if (last.theirs <= first.theirs)
		return problem(hip->device, -EIO, "the clock of the GPU does not advance");

	hip->tick_ns = (double)(last.ours - first.ours) / (double)(last.theirs - first.theirs);
	hip->tick_error = (double)(first.within + last.within) / 2 /
			  (double)(last.ours - first.ours);
	return 0;
}

static int meet(struct hip *hip, void *const streams[static 2], unsigned rules, unsigned lanes)
{
	unsigned *flag[2] = { hip->flags, hip->flags + (rules & GAME_SAME_LINE ? 1 : LINE_WORDS) };
	unsigned stride = STRIDE_WORDS;
	int r = 0;

	for (unsigned player = 0; r >= 0 && player < 2; player++) {
		struct report *reports = hip->shared->report[player];
		unsigned first = player == 0;
		void *parameters[] = { &flag[player], &flag[!player], &stride,
				       &first,        &rules,         &reports };

		r = launch(hip, hip->play, lanes, streams[player], parameters);
	}
	for (unsigned player = 0; r >= 0 && player < 2; player++)
		r = finish(hip, streams[player]);
	return r;
}

static int play(void *data, void *const streams[static 2], unsigned rules, unsigned lanes,
		struct outcome *ret)
{
	struct hip *hip = data;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	memset(hip->shared->report, 0, sizeof(hip->shared->report));
	if (hip->tick_ns <= 0)
		r = calibrate(hip, streams[0]);
	if (r >= 0)
		r = clear(hip, streams[0]);
	if (r >= 0)
		r = meet(hip, streams, rules, lanes);
	if (r < 0)
		return r;

	memcpy(ret->report, hip->shared->report, sizeof(ret->report));
	ret->tick_ns = hip->tick_ns;
	return 0;
}

/* ---- waves ------------------------------------------------------------------------ */

/* The memory is not freed before the end of the process, for the reason at close_hip(). */
static int make_room(struct hip *hip, unsigned groups)
{
	void *waves = NULL;
	int r = 0;

	if (groups > hip->n_waves)
		r = check(
			hip, "hipHostMalloc",
			hipHostMalloc(&waves, groups * sizeof(*hip->waves), hipHostMallocCoherent));
	if (r < 0 || !waves)
		return r;
	hip->waves = waves;
	hip->n_waves = groups;
	return 0;
}

/* Beyond the caches: the largest is 256 MiB. */
static int make_memory(struct hip *hip, hipStream_t stream)
{
	int r = check(hip, "hipMalloc", hipMalloc(&hip->memory, MEMORY_BYTES));

	if (r >= 0)
		r = check(hip, "hipMemsetAsync",
			  hipMemsetAsync(hip->memory, 0, MEMORY_BYTES, stream));
	return r < 0 ? r : finish(hip, stream);
}

/* Every factor is in the same zeroes, and so is the product: it is written, and never read. */
static int launch_product(struct hip *hip, hipStream_t stream, const struct work *work,
			  struct wave *waves)
{
	unsigned size = MULTIPLY_SIZE;
	char *memory = hip->memory;
	void *factor = memory + size * size * sizeof(float),
	     *product = memory + MEMORY_BYTES - size * size * sizeof(float);
	void *parameters[] = { &waves, &size, &hip->memory, &factor, &product };

	return launch_threads(hip, hip->multiply, work->groups, work->threads, stream, parameters);
}

static int launch_work(struct hip *hip, hipStream_t stream, const struct work *work,
		       struct wave *waves)
{
	unsigned groups = work->groups, spins = work->spins, mask = MEMORY_BYTES / 16 - 1;
	void *parameters[] = { &waves, &spins, &hip->memory, &mask, &groups };
	hipFunction_t function = work->kind == NEIGHBOURS_MEMORY ? hip->read : hip->spin;

	if (work->threads > 0)
		return launch_product(hip, stream, work, waves);
	return launch_threads(hip, function, groups, SPIN_THREADS, stream, parameters);
}

static int spin(void *data, void *stream, const struct work *work, struct wave *ret,
		struct spun *ret_spun)
{
	struct hip *hip = data;
	uint64_t before;
	int r = make_room(hip, work->groups);

	memset(ret, 0, work->groups * sizeof(*ret));
	if (r >= 0 && hip->tick_ns <= 0)
		r = calibrate(hip, stream);
	if (r >= 0 && (work->kind == NEIGHBOURS_MEMORY || work->threads > 0) && !hip->memory)
		r = make_memory(hip, stream);
	if (r < 0)
		return r;
	memset(hip->waves, 0, work->groups * sizeof(*hip->waves));
	before = our_clock();
	r = launch_work(hip, stream, work, hip->waves);
	if (r >= 0)
		r = finish(hip, stream);
	if (r < 0)
		return r;
	memcpy(ret, hip->waves, work->groups * sizeof(*ret));
	*ret_spun = (struct spun){ hip->tick_ns, hip->tick_error,
				   (double)(our_clock() - before) / 1000 };
	return 0;
}

static int together(void *data, void *const *streams, unsigned n, const struct work *work,
		    double *ret_host_usec)
{
	struct hip *hip = data;
	uint64_t before;
	int r = make_room(hip, n * work->groups);

	if (r >= 0 && work->threads > 0 && !hip->memory)
		r = make_memory(hip, streams[0]);
	before = our_clock();
	for (unsigned i = 0; i < n && r >= 0; i++)
		r = launch_work(hip, streams[i], work, hip->waves + i * work->groups);
	for (unsigned i = 0; i < n && r >= 0; i++)
		r = finish(hip, streams[i]);
	*ret_host_usec = (double)(our_clock() - before) / 1000;
	return r;
}

/* ---- changes of a mask -------------------------------------------------------------- */

#define GAP_USEC 50000
#define QUEUES_MAX 64

/* The queue that was created since `before` was filled. */
static int new_queue(struct hip *hip, const uint32_t *before, int n_before, uint32_t *ret)
{
	uint32_t ids[QUEUES_MAX];
	int n = gpuarb_lease_queue_ids(hip->lease, hip->partition, ids, QUEUES_MAX);

	for (int i = 0; i < n && i < QUEUES_MAX; i++) {
		int k = 0;

		while (k < n_before && before[k] != ids[i])
			k++;
		if (k == n_before) {
			*ret = ids[i];
			return 0;
		}
	}
	return problem(hip->device, n < 0 ? n : -EBUSY, "the queue of a new stream was not found");
}

static double usec_since(uint64_t before)
{
	return (double)(our_clock() - before) / 1000;
}

/* Starts the kernel that measures gaps, with a work-group for each CU, whose registers a preemption saves. */
static int start_gap(struct hip *hip, hipStream_t stream)
{
	volatile uint64_t *report = hip->shared->gap;
	unsigned long long ticks = (unsigned long long)(GAP_USEC * 1000 / hip->tick_ns);
	void *where = hip->shared->gap, *parameters[] = { &where, &ticks };
	int r;

	report[0] = report[1] = 0;
	r = launch_threads(hip, hip->gap, (unsigned)gpuarb_lease_cus(hip->lease, hip->partition),
			   SPIN_THREADS, stream, parameters);
	for (int i = 0; i < 2000 && r >= 0 && report[0] == 0; i++)
		r = hip->stop->wait(hip->stop->data, 1);
	return r;
}

static int end_gap(struct hip *hip, hipStream_t stream, double *worst)
{
	const volatile uint64_t *report = hip->shared->gap;
	int r = finish(hip, stream);

	if (r >= 0 && report[0] != 2)
		r = -ENODATA;
	else if (r >= 0)
		*worst = fmax(*worst, (double)report[1] * hip->tick_ns / 1000);
	return r;
}

/* Changes the mask of a queue while the kernel runs on another one. */
static int change_once(struct hip *hip, hipStream_t runs, uint32_t queue, const uint32_t *mask,
		       size_t words, struct costs *worst)
{
	uint64_t before;
	int r = start_gap(hip, runs);

	before = our_clock();
	if (r >= 0 && gpuarb_lease_mask_queue(hip->lease, hip->partition, queue, mask, words) < 0)
		r = problem(hip->device, -EIO, "%s", gpuarb_last_error(hip->gpuarb));
	if (r < 0)
		return r;
	worst->change = fmax(worst->change, usec_since(before));
	return end_gap(hip, runs, &worst->preemption);
}

/* Pauses the queue on which the kernel runs, and lets it run again at once. */
static int pause_once(struct hip *hip, hipStream_t stream, uint32_t queue, struct costs *worst)
{
	uint64_t before;
	int r = start_gap(hip, stream);

	if (r < 0)
		return r;
	before = our_clock();
	r = gpuarb_lease_pause_queue(hip->lease, hip->partition, queue, 1);
	worst->pause = fmax(worst->pause, usec_since(before));
	before = our_clock();
	if (r >= 0)
		r = gpuarb_lease_pause_queue(hip->lease, hip->partition, queue, 0);
	worst->resume = fmax(worst->resume, usec_since(before));
	if (r < 0)
		r = problem(hip->device, r == -EOPNOTSUPP ? r : -EIO, "%s",
			    gpuarb_last_error(hip->gpuarb));
	return r < 0 ? r : end_gap(hip, stream, &worst->paused);
}

static int change_often(struct hip *hip, hipStream_t runs, uint32_t queue,
			const uint32_t *const masks[static 2], size_t words, unsigned times,
			struct costs *ret)
{
	int r = hip->tick_ns > 0 ? 0 : calibrate(hip, runs);

	if (r >= 0 && hip->tick_ns <= 0)
		return -ENODATA;
	for (unsigned i = 0; i < times && r >= 0; i++)
		r = change_once(hip, runs, queue, masks[(i + 1) % 2], words, ret);
	return r;
}

/* Where libgpuarb does not see how HIP creates queues, it cannot pause them. */
static int pause_often(struct hip *hip, hipStream_t stream, uint32_t queue, unsigned times,
		       struct costs *ret)
{
	int r = 0;

	for (unsigned i = 0; i < times && r >= 0; i++)
		r = pause_once(hip, stream, queue, ret);
	if (r != -EOPNOTSUPP)
		return r;
	ret->pause = ret->resume = ret->paused = NAN;
	return finish(hip, stream);
}

static int change(void *data, const uint32_t *const masks[static 2], size_t words, unsigned times,
		  struct costs *ret)
{
	struct hip *hip = data;
	void *runs = NULL, *changed = NULL;
	uint32_t before[QUEUES_MAX], queue = 0;
	uint64_t since;
	int n, r;

	*ret = (struct costs){ 0 };
	r = create(hip, masks[0], words, &runs);
	if (r < 0)
		return r;
	n = gpuarb_lease_queue_ids(hip->lease, hip->partition, before, QUEUES_MAX);
	since = our_clock();
	r = n < 0 ? problem(hip->device, n, "%s", gpuarb_last_error(hip->gpuarb))
		  : create(hip, masks[0], words, &changed);
	ret->create = usec_since(since);
	if (r >= 0)
		r = new_queue(hip, before, n < QUEUES_MAX ? n : QUEUES_MAX, &queue);
	if (r >= 0)
		r = change_often(hip, runs, queue, masks, words, times, ret);
	if (r >= 0)
		r = pause_often(hip, changed, queue, times, ret);
	if (changed)
		destroy(hip, changed);
	destroy(hip, runs);
	return r;
}

/* ---- opening ---------------------------------------------------------------------- */

/* The rest goes with the process: to free memory HIP waits for its null stream, and makes it a
 * queue, without a mask, if there is none. */
static void close_hip(void *data)
{
	free(data);
}

static int find_functions(struct hip *hip)
{
	const struct {
		const char *name;
		hipFunction_t *where;
	} functions[] = {
		{ KERNEL_NAME, &hip->play },         { KERNEL_CLEAR, &hip->clear },
		{ KERNEL_CLOCK, &hip->clock },       { KERNEL_SPIN, &hip->spin },
		{ KERNEL_READ, &hip->read },         { KERNEL_GAP, &hip->gap },
		{ KERNEL_MULTIPLY, &hip->multiply },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(functions) && r >= 0; i++)
		r = check(hip, functions[i].name,
			  hipModuleGetFunction(functions[i].where, hip->module, functions[i].name));
	return r;
}

static int load(struct hip *hip, int ordinal)
{
	_cleanup_(freep) char *code = NULL;
	hipDeviceProp_t properties;
	size_t size;
	int r;

	r = check(hip, "hipGetDeviceProperties", hipGetDeviceProperties(&properties, ordinal));
	if (r >= 0)
		r = compiler_run(properties.gcnArchName, &code, &size, hip->device->problem,
				 sizeof(hip->device->problem));
	if (r >= 0)
		r = check(hip, "hipModuleLoadData", hipModuleLoadData(&hip->module, code));
	return r < 0 ? r : find_functions(hip);
}

static int allocate(struct hip *hip)
{
	void *flags = NULL, *shared = NULL;
	int r;

	r = check(hip, "hipMalloc", hipMalloc(&flags, FLAG_WORDS * sizeof(*hip->flags)));
	if (r >= 0)
		r = check(hip, "hipHostMalloc",
			  hipHostMalloc(&shared, sizeof(*hip->shared), hipHostMallocCoherent));
	hip->flags = flags;
	hip->shared = shared;
	return r;
}

static int open_gpu(struct hip *hip)
{
	int ordinal = -1, r;

	r = gpuarb_hip_device(hip->lease, hip->partition, &ordinal);
	if (r < 0)
		return problem(hip->device, r, "%s", gpuarb_last_error(hip->gpuarb));
	r = check(hip, "hipSetDevice", hipSetDevice(ordinal));
	if (r >= 0)
		r = load(hip, ordinal);
	return r < 0 ? r : allocate(hip);
}

int device_open(struct gpuarb *gpuarb, struct gpuarb_lease *lease, size_t partition,
		const struct stop *stop, struct device *ret)
{
	static const struct device_calls calls = { create, create_raw, destroy, play,
						   spin,   together,   change,  close_hip };
	struct hip *hip = calloc(1, sizeof(*hip));
	int r;

	if (!hip)
		return problem(ret, -ENOMEM, "out of memory");
	*hip = (struct hip){ .gpuarb = gpuarb,
			     .lease = lease,
			     .partition = partition,
			     .stop = stop,
			     .device = ret };
	r = open_gpu(hip);
	if (r < 0) {
		close_hip(hip);
		return r;
	}
	ret->calls = &calls;
	ret->data = hip;
	return 0;
}
