/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfd-mqd-rig.h"

struct page page_new(void)
{
	return (struct page){ 0 };
}

void page_add(struct page *page, const char *format, ...)
{
	va_list ap;

	if (!page->out) {
		page->out = open_memstream(&page->text, &page->size);
		CHECK(page->out);
	}
	va_start(ap, format);
	CHECK(vfprintf(page->out, format, ap) >= 0);
	va_end(ap);
}

void dump(struct page *page, unsigned rows, uint32_t (*word)(unsigned i))
{
	for (unsigned row = 0; row < rows; row++) {
		page_add(page, "    %08x:", row * 32);
		for (unsigned i = 0; i < 8; i++)
			page_add(page, " %08x", word(row * 8 + i));
		page_add(page, "\n");
	}
}

uint32_t ones(unsigned)
{
	return UINT32_MAX;
}

uint32_t priority_of_15(unsigned i)
{
	return i == 0x218 / 4 ? 15 : i > 0x200 / 4 ? 0 : UINT32_MAX;
}

uint32_t number(unsigned i)
{
	return i;
}

int parse(struct page *page)
{
	if (page->out)
		CHECK(fclose(page->out) == 0);
	page->out = NULL;
	return kfd_mqds_parse(page->text ? page->text : "", page->size, gpus, ARRAY_SIZE(gpus),
			      &page->seen, &page->n, page->why, sizeof(page->why));
}

void page_done(struct page *page)
{
	free(page->text);
	free(page->seen);
}

bool page_refused(struct page *page, const char *words)
{
	bool so = parse(page) == -EBADMSG && strstr(page->why, words) && !page->seen &&
		  page->n == 0;

	if (!so)
		fprintf(stderr, "it says: %s\n", page->why);
	page_done(page);
	return so;
}
