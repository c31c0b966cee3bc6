/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses texts of debugfs that are in memory, each in two pieces. */

#include "hw/kfd-queues.h"

/* As queue_parser_end(): the queues; the slots. */
int kfd_mqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct observed_mask **ret, size_t *ret_n, char *why, size_t why_size);
int kfd_hqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct queue_slot **ret, size_t *ret_n, char *why, size_t why_size);
