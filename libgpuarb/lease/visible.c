/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/visible.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_LENGTH 20U /* "GPU-" and 16 digits */

/* The only GPU whose unique id begins with the item, or n. */
static size_t find_unique(const char *item, const struct topology *topology)
{
	size_t length = strlen(item), found = topology->n;

	if (length < 5 || length > UUID_LENGTH)
		return topology->n;

	for (size_t i = 0; i < topology->n; i++) {
		char uuid[UUID_LENGTH + 1];

		if (topology->gpus[i].unique_id == 0)
			continue;
		snprintf(uuid, sizeof(uuid), "GPU-%016" PRIX64, topology->gpus[i].unique_id);
		if (strncasecmp(item, uuid, length) != 0)
			continue;
		if (found < topology->n)
			return topology->n;
		found = i;
	}
	return found;
}

/* An index in any base that strtol() accepts, or n. */
static size_t find_index(const char *item, const struct topology *topology)
{
	char *end;
	long index = strtol(item, &end, 0);

	if (end == item || *end || index < 0 || (unsigned long)index > topology->n)
		return topology->n;
	return (size_t)index;
}

/* Copies the next item without surrounding space. NULL: too long to be valid. */
static char *next_item(const char **value, char buf[UUID_LENGTH + 2])
{
	size_t length = strcspn(*value, ",");
	const char *start = *value, *end = start + length;

	*value = *end ? end + 1 : end;
	while (start < end && isspace((unsigned char)*start))
		start++;
	while (start < end && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - start) > UUID_LENGTH)
		return NULL;

	memcpy(buf, start, (size_t)(end - start));
	buf[end - start] = '\0';
	return buf;
}

size_t visible_parse(const char *value, const struct topology *topology, size_t *order)
{
	size_t n = 0;

	while (*value) {
		char buf[UUID_LENGTH + 2];
		const char *item = next_item(&value, buf);
		size_t i = topology->n;

		if (item)
			i = toupper((unsigned char)*item) == 'G' ? find_unique(item, topology)
								 : find_index(item, topology);
		for (size_t k = 0; k < n; k++)
			if (order[k] == i)
				return n;
		if (i == topology->n)
			return n;
		order[n++] = i;
	}
	return n;
}

/* ---- the variables of a program ------------------------------------------------------------- */

/* The GPUs that are left, by their numbers in the topology. */
struct choice {
	const struct visible *visible;
	struct topology left;
	size_t *numbers, *order; /* each has room for all GPUs */
	const char *before;      /* the variable that chose them; NULL: none */
};

static int fail_empty(const struct choice *choice, const char *name, const char *value)
{
	struct gpuarb *gpuarb = choice->visible->gpuarb;

	if (!*value)
		return fail(gpuarb, -ENODEV, "%s is empty, which hides every GPU: unset it", name);
	return fail(
		gpuarb, -ENODEV,
		"%s=%.80s shows none of the %zu GPUs%s%s%s: begin it with a number from 0 to %zu or "
		"the UUID of one GPU, or unset it",
		name, value, choice->left.n, choice->before ? " that " : "",
		choice->before ? choice->before : "", choice->before ? " shows" : "",
		choice->left.n - 1);
}

/* Leaves those that the variable shows. */
static int narrow(struct choice *choice, const char *name, const char *value)
{
	size_t n = visible_parse(value, &choice->left, choice->order);
	struct topology_gpu *gpus;

	if (n == 0)
		return fail_empty(choice, name, value);
	gpus = calloc(n, sizeof(*gpus));
	if (!gpus)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		gpus[i] = choice->left.gpus[choice->order[i]];
		choice->order[i] = choice->numbers[choice->order[i]];
	}
	memcpy(choice->numbers, choice->order, n * sizeof(*choice->order));
	free(choice->left.gpus);
	choice->left = (struct topology){ gpus, n };
	choice->before = name;
	return 1;
}

/* HIP reads CUDA's variable if its own is empty, and OpenCL the third one. PyTorch finds no GPU with an empty value
 * of the first two. */
static const char *find_hip(const struct visible *visible, const char **ret_name)
{
	static const char *const names[] = { "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
					     "GPU_DEVICE_ORDINAL" };
	const char *empty = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = visible->get(visible->userdata, names[i]);

		if (!value || (!*value && (empty || i == 2)))
			continue;
		*ret_name = names[i];
		if (*value)
			return value;
		empty = value;
	}
	return empty;
}

static int narrow_both(struct choice *choice)
{
	const struct visible *visible = choice->visible;
	const char *rocr = visible->get(visible->userdata, ROCR_VISIBLE), *hip, *name;
	int r = 0;

	if (rocr)
		r = narrow(choice, ROCR_VISIBLE, rocr);
	if (r < 0)
		return r;
	hip = find_hip(visible, &name);
	return hip ? narrow(choice, name, hip) : r;
}

int visible_find(const struct visible *visible, bool *shown)
{
	size_t n = visible->topology->n;
	struct choice choice = { .visible = visible };
	int r = -ENOMEM;

	choice.left = (struct topology){ calloc(n + 1, sizeof(*choice.left.gpus)), n };
	choice.numbers = calloc(n + 1, sizeof(*choice.numbers));
	choice.order = calloc(n + 1, sizeof(*choice.order));
	if (choice.left.gpus && choice.numbers && choice.order) {
		for (size_t i = 0; i < n; i++) {
			choice.left.gpus[i] = visible->topology->gpus[i];
			choice.numbers[i] = i;
			shown[i] = false;
		}
		r = narrow_both(&choice);
		for (size_t i = 0; r >= 0 && i < choice.left.n; i++)
			shown[choice.numbers[i]] = true;
	}
	free(choice.left.gpus);
	free(choice.numbers);
	free(choice.order);
	return r;
}

/* ---- this process ---------------------------------------------------------------------------- */

const char *visible_variable(void *, const char *name)
{
	return getenv(name);
}

static bool any_is_set(void)
{
	const char *name;
	const struct visible visible = { .get = visible_variable };

	return getenv(ROCR_VISIBLE) || find_hip(&visible, &name);
}

/* KFD does not know simulated GPUs: they are the topology themselves. */
static int read_gpus(const struct gpuarb_gpu *gpus, size_t n, struct topology *ret)
{
	if (gpus[0].kfd_gpu_id != 0)
		return topology_read("/sys", "/dev", ret);
	*ret = (struct topology){ calloc(n, sizeof(*ret->gpus)), n };
	return ret->gpus ? 0 : -ENOMEM;
}

static int find_shown(struct gpuarb *gpuarb, const struct gpuarb_gpu *gpus, size_t n,
		      const struct topology *topology, bool *ret_shown)
{
	const struct visible visible = { gpuarb, topology, visible_variable, NULL };
	bool *shown = calloc(topology->n + 1, sizeof(*shown)), any = false;
	int r = shown ? visible_find(&visible, shown) : -ENOMEM;

	for (size_t i = 0; r > 0 && i < n; i++) {
		const struct topology_gpu *gpu = topology_find(topology, gpus[i].kfd_gpu_id);

		if (gpus[i].kfd_gpu_id == 0)
			gpu = &topology->gpus[i];
		ret_shown[i] = gpu && shown[gpu - topology->gpus];
		any |= ret_shown[i];
	}
	free(shown);
	if (r > 0 && !any)
		return fail(gpuarb, -ENODEV,
			    "gpuarbd has none of the GPUs that " ROCR_VISIBLE
			    " and the variables of HIP show: gpuarbctl status lists its GPUs");
	return r;
}

GPUARB_EXPORT int gpuarb_visible_gpus(struct gpuarb *gpuarb, const struct gpuarb_gpu *gpus,
				      size_t n, bool *ret)
{
	struct topology topology = { NULL, 0 };
	int r;

	HANDLE_BEGIN(gpuarb && (n == 0 || (gpus && ret)), gpuarb);
	if (n == 0 || !any_is_set())
		return handle_end(gpuarb, any_is_set());
	r = read_gpus(gpus, n, &topology);
	if (r == -ENODEV)
		r = fail(gpuarb, r, "this process sees no AMD GPU: KFD has no topology in /sys");
	if (r >= 0)
		r = find_shown(gpuarb, gpus, n, &topology, ret);
	free(topology.gpus);
	return handle_end(gpuarb, r);
}
