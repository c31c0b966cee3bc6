/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "book.h"

#include "check-cond.h"

/* One value of a dictionary whose keys are known: where to, by its type. */
struct book_field {
	const char *name;
	char type;
	void *to;
	size_t size; /* of a text */
};

static void book_take_value(sd_bus_message *m, const struct book_field *field)
{
	const char types[] = { field->type, '\0' };
	const char *text;
	int flag;

	if (field->type == 's') {
		CHECK(sd_bus_message_read(m, "v", "s", &text) >= 0);
		snprintf(field->to, field->size, "%s", text);
	} else if (field->type == 'b') {
		CHECK(sd_bus_message_read(m, "v", "b", &flag) >= 0);
		*(unsigned *)field->to = (unsigned)flag;
	} else {
		CHECK(sd_bus_message_read(m, "v", types, field->to) >= 0);
	}
}

static void book_take_mask(sd_bus_message *m, uint32_t *mask)
{
	const void *words;
	size_t size;

	CHECK(sd_bus_message_enter_container(m, 'v', "au") >= 0);
	CHECK(sd_bus_message_read_array(m, 'u', &words, &size) >= 0);
	CHECK(size <= BOOK_WORDS * sizeof(*mask));
	memcpy(mask, words, size);
	CHECK(sd_bus_message_exit_container(m) >= 0);
}

void book_take_parts(sd_bus_message *m, struct book_part *parts, unsigned *n);

/* a{sv}; the types 'm' and 'p' are a mask, and partitions. */
static inline void book_take(sd_bus_message *m, const struct book_field *fields, size_t n)
{
	const char *name;
	size_t i;

	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		CHECK(sd_bus_message_read(m, "s", &name) >= 0);
		for (i = 0; i < n && strcmp(fields[i].name, name) != 0;)
			i++;
		if (i == n) {
			CHECK(sd_bus_message_skip(m, "v") >= 0);
		} else if (fields[i].type == 'm') {
			book_take_mask(m, fields[i].to);
		} else if (fields[i].type == 'p') {
			CHECK(sd_bus_message_enter_container(m, 'v', "aa{sv}") >= 0);
			book_take_parts(m, fields[i].to, (unsigned *)fields[i + 1].to);
			CHECK(sd_bus_message_exit_container(m) >= 0);
		} else {
			book_take_value(m, &fields[i]);
		}
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	CHECK(sd_bus_message_exit_container(m) >= 0);
}

void book_take_parts(sd_bus_message *m, struct book_part *parts, unsigned *n)
{
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") >= 0);
	for (*n = 0; sd_bus_message_at_end(m, false) == 0; (*n)++) {
		struct book_part *part = &parts[*n];
		const struct book_field fields[] = {
			{ "gpu", 's', part->gpu, sizeof(part->gpu) },
			{ "cu-mask", 'm', part->mask, 0 },
			{ "cus", 'u', &part->cus, 0 },
			{ "queues", 'u', &part->queues, 0 },
		};

		CHECK(*n < BOOK_GPUS);
		memset(part, 0, sizeof(*part));
		book_take(m, fields, ARRAY_SIZE(fields));
	}
	CHECK(sd_bus_message_exit_container(m) >= 0);
}

static void book_take_lease(sd_bus_message *m, struct book_lease *lease)
{
	const struct book_field fields[] = {
		{ "Id", 't', &lease->id, 0 },
		{ "State", 's', lease->state, sizeof(lease->state) },
		{ "Reason", 's', lease->reason, sizeof(lease->reason) },
		{ "Generation", 't', &lease->generation, 0 },
		{ "Deadline", 't', &lease->deadline, 0 },
		{ "Position", 'u', &lease->position, 0 },
		{ "Partitions", 'p', lease->parts, 0 },
		{ "", 0, &lease->n_parts, 0 },
	};

	book_take(m, fields, ARRAY_SIZE(fields));
}

static void book_take_gpu(sd_bus_message *m, struct book_gpu *gpu)
{
	const struct book_field fields[] = {
		{ "Name", 's', gpu->name, sizeof(gpu->name) },
		{ "Cus", 'u', &gpu->cus, 0 },
		{ "CusFree", 'u', &gpu->cus_free, 0 },
		{ "QueueSlots", 'u', &gpu->slots, 0 },
		{ "QueueSlotsFree", 'u', &gpu->slots_free, 0 },
		{ "Draining", 'b', &gpu->draining, 0 },
	};

	book_take(m, fields, ARRAY_SIZE(fields));
}

static void book_take_object(sd_bus_message *m, const char *path, struct book *book)
{
	const char *interface;

	CHECK(sd_bus_message_enter_container(m, 'a', "{sa{sv}}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
		CHECK(sd_bus_message_read(m, "s", &interface) >= 0);
		if (strcmp(interface, GPUARB_INTERFACE_LEASE) == 0) {
			CHECK(book->n_leases < BOOK_LEASES);
			book_take_lease(m, &book->leases[book->n_leases++]);
		} else if (strcmp(interface, GPUARB_INTERFACE_GPU) == 0) {
			CHECK(book->n_gpus < BOOK_GPUS);
			snprintf(book->gpus[book->n_gpus].path, sizeof(book->gpus[0].path), "%s",
				 path);
			book_take_gpu(m, &book->gpus[book->n_gpus++]);
		} else {
			CHECK(sd_bus_message_skip(m, "a{sv}") >= 0);
		}
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	CHECK(sd_bus_message_exit_container(m) >= 0);
}

void book_read(sd_bus *bus, struct book *ret)
{
	sd_bus_message *m = call(call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
					  "GetManagedObjects"));
	const char *path;

	memset(ret, 0, sizeof(*ret));
	CHECK(!sd_bus_message_is_method_error(m, NULL));
	CHECK(sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}") > 0) {
		CHECK(sd_bus_message_read(m, "o", &path) >= 0);
		book_take_object(m, path, ret);
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	sd_bus_message_unref(m);
}

struct book_lease *book_find(struct book *book, uint64_t id)
{
	for (unsigned i = 0; i < book->n_leases; i++)
		if (book->leases[i].id == id)
			return &book->leases[i];
	return NULL;
}

bool book_same_parts(const struct book_lease *lease, const struct book_part *parts, unsigned n)
{
	if (lease->n_parts != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(lease->parts[i].gpu, parts[i].gpu) != 0 ||
		    memcmp(lease->parts[i].mask, parts[i].mask, sizeof(parts[i].mask)) != 0 ||
		    lease->parts[i].cus != parts[i].cus ||
		    lease->parts[i].queues != parts[i].queues)
			return false;
	return true;
}

void book_check(const struct book *book, bool settled)
{
	for (unsigned g = 0; g < book->n_gpus; g++) {
		const struct book_gpu *gpu = &book->gpus[g];
		unsigned cus = gpu->cus_free, slots = gpu->slots_free;
		uint32_t taken[BOOK_WORDS] = { 0 };

		for (unsigned l = 0; l < book->n_leases; l++)
			for (unsigned i = 0; i < book->leases[l].n_parts; i++) {
				const struct book_part *part = &book->leases[l].parts[i];

				if (strcmp(part->gpu, gpu->name) != 0)
					continue;
				for (unsigned w = 0; w < BOOK_WORDS; w++) {
					CHECK(!(taken[w] & part->mask[w]));
					taken[w] |= part->mask[w];
				}
				cus += part->cus;
				slots += part->queues;
			}
		CHECK(settled ? cus == gpu->cus && slots == gpu->slots
			      : cus <= gpu->cus && slots <= gpu->slots);
	}
}

bool book_is_empty(const struct book *book)
{
	for (unsigned g = 0; g < book->n_gpus; g++)
		if (book->gpus[g].cus_free != book->gpus[g].cus ||
		    book->gpus[g].slots_free != book->gpus[g].slots)
			return false;
	return book->n_leases == 0 && book->n_gpus > 0;
}
