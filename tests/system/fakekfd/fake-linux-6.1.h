/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Linux 6.1 knows neither XCCs nor partitions, and knows a process's address space by a file. */
#pragma once

#define OF_XCC
#define XCC		0
#define CAUSE
#define FIRST_NODE(kfd) (kfd)
#define OF_PARTITION
#define ADDRESS_SPACE struct file
#define FURTHER_CALLS
