/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/check.h"

#include <errno.h>

#include "util/text.h"

/* Does the mask codec reproduce the set? It would not if the set had half a WGP. */
static bool is_whole(const struct codec *codec, const struct cuset *set)
{
	uint32_t mask[CODEC_WORDS];
	struct cuset back;

	codec_encode(codec, set, mask);
	codec_decode(codec, mask, codec_words(codec), &back);
	return cuset_equal(&back, set);
}

static int check_mask(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	uint32_t mask[CODEC_WORDS];
	char why[128];

	if (!cuset_within(&p->occupied, &gpu->all) || !cuset_within(&p->cus, &p->occupied))
		return refuse(buf, size, -EINVAL,
			      "a mask has CUs that the GPU has not, or that are not charged");
	if (cuset_count(&p->cus) != p->count || p->count == 0)
		return refuse(buf, size, -EINVAL, "count %u of %u CUs", p->count,
			      cuset_count(&p->cus));
	if (!geometry_on_every_xcc(&gpu->info.geometry, &p->cus))
		return refuse(buf, size, -EINVAL, "an XCC without a CU");
	if (geometry_effective(&gpu->info.geometry, &p->cus) != p->effective)
		return refuse(buf, size, -EINVAL, "E is not %u", p->effective);

	codec_encode(&gpu->codec, &p->cus, mask);
	if (codec_check(&gpu->codec, &gpu->info.geometry, mask, codec_words(&gpu->codec), why,
			sizeof(why)) < 0)
		return refuse(buf, size, -EINVAL, "the kernel's mask: %s", why);
	if (!is_whole(&gpu->codec, &p->cus) || !is_whole(&gpu->codec, &p->occupied))
		return refuse(buf, size, -EINVAL, "the mask splits a WGP");
	return 0;
}

int check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	int r;

	r = check_mask(gpu, p, buf, size);
	if (r < 0)
		return r;
	if (p->adaptable &&
	    (!cuset_within(&p->base, &p->cus) || cuset_empty(&p->base) ||
	     !geometry_on_every_xcc(&gpu->info.geometry, &p->base) ||
	     (geometry_effective(&gpu->info.geometry, &p->base) != cuset_count(&p->base) &&
	      !cuset_equal(&p->base, &gpu->all))))
		return refuse(buf, size, -EINVAL, "the base is no rectangle within the mask");
	/* Rectangular, but for the whole GPU and shape=any. */
	if (p->effective == p->count || p->any_shape || cuset_equal(&p->cus, &gpu->all))
		return 0;
	return refuse(buf, size, -EINVAL, "%u CUs of which %u effective", p->count, p->effective);
}

static bool exclusive_engines(enum lease_class a, const struct partition *p, enum lease_class b,
			      const struct partition *q)
{
	if (p->alone || q->alone)
		return true;
	return a == CLASS_REALTIME && b == CLASS_REALTIME &&
	       (p->isolation == ISOLATION_SHADER_ENGINE || q->isolation == ISOLATION_SHADER_ENGINE);
}

const char *check_apart(enum lease_class a, const struct partition *p, enum lease_class b,
			const struct partition *q)
{
	bool may_share = p->isolation == ISOLATION_SHARED && q->isolation == ISOLATION_SHARED;

	if (cuset_overlap(partition_claim(p), partition_claim(q)) && !may_share)
		return "CUs";
	if ((cuset_engines(partition_claim(p)) & cuset_engines(partition_claim(q))) &&
	    exclusive_engines(a, p, b, q))
		return "a shader engine";
	return NULL;
}

bool check_active(const struct lease *lease)
{
	return lease->state == STATE_GRANTED ||
	       (lease->state == STATE_REVOKING && !lease->lend.idle) ||
	       (lease->state == STATE_ENDING && lease->adaptable && !lease->lend.idle);
}
