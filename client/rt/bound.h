/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The longest response of a partition's tasks. Pure; times are microseconds.
 *
 * A partition is one server: it runs one job at a time, without preemption, in the order in which
 * jobs become ready (FIFO; ties in any order). A job of task i is released at some a, the next
 * not before a + T_i; it is ready, that is asked for by its program, at some point of
 * [a, a + J_i], and has to be done, and the program to know it, by a + D_i, D_i <= T_i. Then
 *
 *	R = g(C_1 + ... + C_n) + S(R) + h
 *
 * bounds the time from ready to done for every task, where C_i is the longest one job of task
 * i runs, g adds the margin, S(R) is the time that the server stands still within R, and h
 * what the host adds. R + J_i <= D_i for all i is enough for no deadline to be missed.
 *
 * Proof. Take the first job, in the order of the queue, that is done later than R after it is
 * ready at time t; say of task i. Of any task j two jobs before it in the queue were ready at
 * r' < r'' <= t. They were released at a' and a'' >= a' + T_j, and the first was done by
 * r' + R <= a' + J_j + R <= a' + D_j <= a' + T_j <= a'' <= r''. So at t at most one job of
 * each task is not done, and of task i none but the job itself. What runs at t and what waits
 * before it is therefore at most one job of each other task, and since the server never
 * idles while something waits, the job is done when C_1 + ... + C_n of running and the
 * standstill within that time are over: not later than R. A contradiction. That a task has at
 * most one job outstanding is so a result for sets that pass, not something to be believed;
 * for a set that does not, the bound holds for programs that ask again only when their last
 * job is done, even if jobs miss their deadlines. h may lie before the queue, after it, or partly
 * on each side: in the steps above r' is then late and "done" early by the two parts of h.
 *
 * Standstill. Before gfx11 a change of any queue's mask takes every queue of the GPU off and
 * puts it back (update_queue(), kfd_device_queue_manager.c, Linux 6.12), and so does a queue
 * that is created or destroyed. The daemon lets masks of a GPU grow once in `interval`, and a
 * borrower gets a mask only after it has acknowledged the previous one, however late
 * (is_settled() in core/change/lend.c). Let it get a mask at s_k and change its queues within
 * [b_k, e_k]: s_k <= b_k, e_k <= s_{k+1} and s_k + interval <= s_{k+1}. If e_0 is the first to
 * lie in a window of length R that begins at t, then t <= e_0 <= s_1, and the k-th is within it
 * only if s_1 + (k - 1) interval < t + R. So there are at most
 *
 *	ceil(R / interval) + 1
 *
 * for each borrower, the one under way at t among them, and together they cost that times
 * `change`, which is all their queues x one preemption. The daemon does not pace two other changes:
 * borrowers whose masks shrink for a lease that is granted or activated, and queues that programs
 * create and destroy. The file states their number: `once`. R is the least fixed point.
 * With MES (gfx11 and later) only the queue that is changed stops, so both are 0.
 */

#include <stdint.h>

#define BOUND_NONE UINT64_MAX /* no bound: the iteration does not converge within a day */

struct bound {
	unsigned margin_percent;
	uint64_t host;     /* h */
	uint64_t latency;  /* of the activation, before the first job can run */
	uint64_t change;   /* cost of one change of masks; 0: there are none */
	uint64_t interval; /* between two changes; not 0 */
	uint64_t once;     /* standstill for everything else */
};

/* R for the sum of execution times `work`, latency included. */
uint64_t bound_response(const struct bound *bound, uint64_t work);

/* Parts of a response that bound_response() has returned. */
uint64_t bound_margin(const struct bound *bound, uint64_t work);      /* g(work) - work */
uint64_t bound_changes(const struct bound *bound, uint64_t response); /* how many */
uint64_t bound_standstill(const struct bound *bound, uint64_t response);

/* The most work whose response is not longer than this, exactly; -1: even no work at all takes
 * longer. */
int64_t bound_work_within(const struct bound *bound, uint64_t response);
