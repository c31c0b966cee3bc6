/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Takes names out of what a user sends with a report of a problem. Out of memory ends the program with
 * a failure: no name must be left in.
 */

struct json_object;

/* In all objects and lists below the value: users, tenants, units, commands and the names of leases become
 * "name1", "name2" …, user ids 1, 2 …, the same ones the same. Texts have these instead of the names, too, and
 * of the machine, the user who runs the program, and the home directory. */
void anonymise(struct json_object *value);
