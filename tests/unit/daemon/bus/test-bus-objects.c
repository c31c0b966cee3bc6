/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-objects.h"

#include <errno.h>

#include "check.h"
#include "lack.h"
#include "util/base.h"

static uint64_t odd_number(const struct bus *, size_t i)
{
	return i % 2 ? i : BUS_NO_NODE;
}

static int list_without_memory(long allocations)
{
	char **nodes = NULL;
	int r;

	lack_left = allocations;
	r = bus_list_nodes(NULL, "/gpu", 4, odd_number, &nodes);
	CHECK((r == 0) == (nodes != NULL));
	if (r < 0)
		return r;
	CHECK(strcmp(nodes[0], "/gpu/1") == 0 && strcmp(nodes[1], "/gpu/3") == 0 && !nodes[2]);
	for (size_t i = 0; i < 3; i++)
		free(nodes[i]);
	free(nodes);
	return 0;
}

TEST(paths_of_objects_are_listed_whole_or_not)
{
	CHECK(lack_each("bus_list_nodes", list_without_memory) >= 3);
}
