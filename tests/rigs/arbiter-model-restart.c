/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A restart in the model: leases are saved, and another arbiter adopts them. */

#include "arbiter-model.h"
#include "sys/state/state-json.h"

static void fail_with(const char *what, uint64_t id, const char *why, const char *text)
{
	fprintf(stderr, "lease %llu: %s\n%s\n", (unsigned long long)id, why, text);
	model_fail(what);
}

static void check_same(const struct lease *a, const struct lease *b)
{
	if (a->id != b->id || a->state != b->state || a->class != b->class ||
	    a->owner != b->owner || a->generation != b->generation ||
	    a->acknowledged != b->acknowledged || a->adaptable != b->adaptable ||
	    a->deadline_usec != b->deadline_usec || a->n_partitions != b->n_partitions ||
	    a->revoked != b->revoked || !a->request != !b->request)
		model_fail("a restart changed a lease");
	for (size_t i = 0; i < a->n_partitions; i++) {
		const struct partition *p = &a->partitions[i], *q = &b->partitions[i];

		if (p->gpu != q->gpu || !cuset_equal(&p->cus, &q->cus) ||
		    !cuset_equal(&p->occupied, &q->occupied) ||
		    memcmp(&p->granted, &q->granted, sizeof(p->granted)) != 0 ||
		    memcmp(&p->charged, &q->charged, sizeof(p->charged)) != 0)
			model_fail("a restart changed a partition");
	}
}

/* Saves the lease, and adopts what was saved. */
static void hand_over(const struct arbiter *old, struct arbiter *new, const struct lease *lease)
{
	static struct state_lease saved;
	char why[256] = "", *text;

	if (state_json_write(old, lease, &text) < 0)
		model_fail("state_json_write");
	if (state_json_read(new, text, strlen(text), &saved, why, sizeof(why)) < 0)
		fail_with("a saved lease cannot be read", lease->id, why, text);
	check_same(lease, saved.lease);
	if (arbiter_adopt(new, saved.lease, saved.lost, why, sizeof(why)) < 0)
		fail_with("a saved lease is not adopted", lease->id, why, text);
	for (size_t i = 0; i < saved.n_processes; i++)
		if (known_add(new, lease->id, &saved.processes[i]) < 0)
			model_fail("known_add");
	free(text);
}

/* What the service manager kept. */
static void hand_over_holders(struct arbiter *new, const struct lease *lease)
{
	for (unsigned i = 0; i < lease->n_holders; i++)
		arbiter_add_holder(new, lease->id);
	for (size_t i = 0; i < lease->n_bound; i++)
		if (arbiter_bind(new, lease->id, lease->bound[i], false) < 0)
			model_fail("arbiter_bind");
}

static struct arbiter *arbiter_after(struct arbiter *old)
{
	struct gpu_info infos[4];
	struct settings *settings = old->settings;
	struct arbiter *new;

	for (size_t i = 0; i < old->n_gpus; i++)
		infos[i] = old->gpus[i].info;
	if (settings_new(&old->settings) < 0 ||
	    arbiter_new(settings, infos, old->n_gpus, old->next_id, &new) < 0)
		model_fail("arbiter_new");
	new->verifies = old->verifies;
	return new;
}

static void end_orphans(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;

	for (size_t i = arbiter->n_leases; i-- > 0;) {
		if (arbiter->leases[i]->state == STATE_ENDING || lease_alive(arbiter->leases[i]))
			continue;
		arbiter->leases[i]->revoked = true;
		arbiter_end(arbiter, arbiter->leases[i], RESULT_OK, "restart");
	}
}

void model_restart(struct model *model)
{
	struct arbiter *old = model->arbiter, *new;

	model_carry_out(model);
	new = arbiter_after(old);
	for (size_t i = 0; i < old->n_leases; i++)
		hand_over(old, new, old->leases[i]);
	for (size_t i = 0; i < old->n_gpus; i++)
		if (old->gpus[i].draining)
			arbiter_drain(new, old->gpus[i].info.name, true);
	arbiter_await_claims(new, model->now + 20);
	for (size_t i = 0; i < old->n_leases; i++)
		hand_over_holders(new, old->leases[i]);
	arbiter_adopted(new, model->now);
	model->arbiter = new;
	model->n_queues = 0;
	model->restarts++;
	arbiter_free(old);
	model_check(model);
	arbiter_expire(new, model->now);
	end_orphans(model);
}
