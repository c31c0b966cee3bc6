/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libgpuarb/hip/stream-plan.h"

enum level level_of(uint32_t kfd_priority)
{
	if (kfd_priority <= 6)
		return LEVEL_LOW;
	return kfd_priority <= 10 ? LEVEL_NORMAL : LEVEL_HIGH;
}

bool mask_and(const uint32_t *a, size_t a_words, const uint32_t *b, size_t b_words,
	      struct mask *ret)
{
	size_t words = a_words < b_words ? a_words : b_words;
	bool any = false;

	*ret = (struct mask){ .words = words < MASK_WORDS ? words : MASK_WORDS };
	for (size_t i = 0; i < ret->words; i++) {
		ret->word[i] = a[i] & b[i];
		any |= ret->word[i] != 0;
	}
	return any;
}

bool mask_equal(const struct mask *a, const struct mask *b)
{
	return a->words == b->words && memcmp(a->word, b->word, a->words * sizeof(a->word[0])) == 0;
}

bool mask_to_wgps(const struct mask *mask, struct mask *ret)
{
	struct mask wgps = { .words = (mask->words + 1) / 2 };

	for (size_t bit = 0; bit < mask->words * 32; bit += 2) {
		uint32_t pair = mask->word[bit / 32] >> bit % 32 & 3;

		if (pair == 1 || pair == 2)
			return false;
		wgps.word[bit / 64] |= (pair & 1) << bit / 2 % 32;
	}
	*ret = wgps;
	return true;
}

unsigned streams_left(const struct budget *budget)
{
	uint32_t each = budget->queues / (budget->processes ? budget->processes : 1);
	size_t used = budget->used ? budget->used : 1;
	size_t left = used < each ? each - used : 0;
	size_t streams = budget->masked < budget->streams ? budget->streams - budget->masked : 0;

	return (unsigned)(budget->streams > 0 && streams < left ? streams : left);
}

/* Seen with HIP 5.2.3, 5.7.1 and 6.4.3. */
bool hip_keeps_queue(int version, enum level level)
{
	return version >= 50300000 && (level != LEVEL_NORMAL || version < 60400000);
}

void queues_new(const struct queue_ids *before, const struct queue_ids *after,
		struct queue_ids *ret)
{
	size_t k = 0;

	ret->n = 0;
	for (size_t i = 0; i < after->n; i++) {
		while (k < before->n && before->ids[k] < after->ids[i])
			k++;
		if (k == before->n || before->ids[k] != after->ids[i])
			ret->ids[ret->n++] = after->ids[i];
	}
}

bool queue_of_stream(const struct queue_ids *before, const struct queue_ids *new_queues,
		     uint32_t *ret)
{
	if (new_queues->n != 1 && (new_queues->n != 2 || before->n != 0))
		return false;
	*ret = new_queues->ids[new_queues->n - 1];
	return true;
}

bool pci_parse(const char *name, struct pci_address *ret)
{
	struct pci_address pci = { 0 };
	unsigned function;
	int end = 0, tail = 0;

	if (sscanf(name, "%8" SCNx32 ":%2" SCNx32 ":%2" SCNx32 ".%1x%n", &pci.domain, &pci.bus,
		   &pci.device, &function, &end) != 4 ||
	    end == 0 || function > 7)
		return false;
	name += end;
	if (*name && (sscanf(name, "/%4" SCNu32 "%n", &pci.partition, &tail) != 1 || name[tail]))
		return false;
	*ret = pci;
	return true;
}

int device_choose(const struct pci_address *wanted, const struct pci_address *devices, size_t n,
		  bool reordered)
{
	size_t first = 0, same = 0, place = n;

	for (size_t i = 0; i < n; i++) {
		if (devices[i].domain != wanted->domain || devices[i].bus != wanted->bus ||
		    devices[i].device != wanted->device)
			continue;
		if (same == 0)
			first = i;
		if (same++ == wanted->partition)
			place = i;
	}
	if (same == 0)
		return -ENODEV;
	if (same == 1)
		return (int)first;
	return reordered || place == n ? -EOPNOTSUPP : (int)place;
}
