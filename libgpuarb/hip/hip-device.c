/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/hip/hip-device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/hip/stream-plan.h"

#define PCI_NAME_SIZE 64

/* Variables that change the order of HIP's devices. */
static const char *const order_variables[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
					       "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" };
#define N_ORDERS (sizeof(order_variables) / sizeof(order_variables[0]))

int hip_fail(struct gpuarb_lease *lease, int error, const char *format, ...)
{
	char *sentence = NULL;
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&sentence, format, args);
	va_end(args);
	if (r < 0)
		return gpuarb_lease_fail(lease, -ENOMEM, "out of memory");
	error = gpuarb_lease_fail(lease, error, sentence);
	free(sentence);
	return error;
}

int hip_fail_call(struct gpuarb_lease *lease, const char *call, hipError_t error)
{
	int r = error == hipErrorNoDevice || error == hipErrorInvalidDevice ? -ENODEV
		: error == hipErrorOutOfMemory                              ? -EBUSY
									    : -EIO;

	(void)hipGetLastError();
	return hip_fail(lease, r, "%s: %s (%s)", call, hipGetErrorString(error),
			hipGetErrorName(error));
}

const char *hip_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int hip_partition_get(struct gpuarb_lease *lease, size_t i, const struct gpuarb_partition **ret)
{
	const struct gpuarb_partition *partition;
	int r;

	r = gpuarb_lease_dispatch(lease, NULL, NULL);
	if (r < 0)
		return r;

	partition = gpuarb_lease_partition(lease, i);
	if (!partition)
		return hip_fail(lease, gpuarb_lease_partitions(lease) == 0 ? -EBADFD : -EINVAL,
				"lease %" PRIu64
				" is %s and has %zu partitions: there is no partition "
				"%zu",
				gpuarb_lease_id(lease), gpuarb_lease_state(lease),
				gpuarb_lease_partitions(lease), i);
	if (partition->kfd_gpu_id == 0)
		return hip_fail(lease, -EOPNOTSUPP,
				"GPU %s is simulated, so HIP has no device for it", partition->gpu);
	*ret = partition;
	return 0;
}

/* Writes the variables that are set, for a sentence; "" if none is. */
static void describe_orders(char *buf, size_t size)
{
	size_t length = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < N_ORDERS && length < size; i++) {
		const char *value = hip_variable(order_variables[i]);

		if (value)
			length += (size_t)snprintf(buf + length, size - length, "%s%s=%s",
						   length ? " " : "", order_variables[i], value);
	}
}

static int read_addresses(struct gpuarb_lease *lease, int count, struct pci_address *addresses)
{
	for (int i = 0; i < count; i++) {
		char name[PCI_NAME_SIZE] = "";
		hipError_t error = hipDeviceGetPCIBusId(name, sizeof(name), i);

		if (error != hipSuccess)
			return hip_fail_call(lease, "hipDeviceGetPCIBusId", error);
		if (!pci_parse(name, &addresses[i]))
			return hip_fail(lease, -EOPNOTSUPP,
					"HIP device %d has the unknown PCI address '%s'", i, name);
	}
	return 0;
}

static int choose(struct gpuarb_lease *lease, const struct gpuarb_partition *partition,
		  const struct pci_address *addresses, int count, int *ret)
{
	struct pci_address wanted;
	char set[256];
	int r;

	if (!pci_parse(partition->gpu, &wanted))
		return hip_fail(lease, -EOPNOTSUPP,
				"GPU %s has no PCI address to compare with HIP's devices",
				partition->gpu);

	describe_orders(set, sizeof(set));
	r = device_choose(&wanted, addresses, (size_t)count, set[0] != '\0');
	if (r == -ENODEV)
		return hip_fail(lease, r,
				"none of the %d HIP devices is GPU %s%s%s%s: give this process "
				"access to its /dev/dri/renderD*%s",
				count, partition->gpu, set[0] ? " (" : "", set, set[0] ? ")" : "",
				set[0] ? ", and make it visible in these variables" : "");
	if (r < 0)
		return hip_fail(lease, r,
				"several HIP devices have the address of GPU %s, in an unknown "
				"order%s%s",
				partition->gpu, set[0] ? ": unset " : "", set);
	*ret = r;
	return 0;
}

int hip_device_find(struct gpuarb_lease *lease, const struct gpuarb_partition *partition, int *ret)
{
	struct pci_address *addresses;
	hipError_t error;
	int r, count = 0;

	error = hipGetDeviceCount(&count);
	if (error != hipSuccess)
		return hip_fail_call(lease, "hipGetDeviceCount", error);

	addresses = calloc((size_t)count + 1, sizeof(*addresses));
	if (!addresses)
		return hip_fail(lease, -ENOMEM, "out of memory");
	r = read_addresses(lease, count, addresses);
	if (r >= 0)
		r = choose(lease, partition, addresses, count, ret);
	free(addresses);
	return r;
}

GPUARB_EXPORT int gpuarb_hip_device(struct gpuarb_lease *lease, size_t i, int *ret)
{
	const struct gpuarb_partition *partition = NULL;
	int r;

	if (!lease || !ret)
		return -EINVAL;

	r = hip_partition_get(lease, i, &partition);
	return r < 0 ? r : hip_device_find(lease, partition, ret);
}
