/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/options/options.h"

/* rt measure, one of the actions of rt. */
int rt_measure_command(struct command *command);
