/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* rt measure, one of the actions of rt. */

#include "client/options/options.h"

int rt_measure_command(struct command *command);
