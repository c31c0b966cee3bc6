/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The offline optimum as an integer program, solved by glpk. For each job and each rectangle
 * m x k that it may get, a column x: it gets this one; and for each engine a column y: the
 * rectangle is on this engine.
 */

#include <errno.h>
#include <glpk.h>
#include <stdlib.h>

#include "bench/placement.h"

#define LIMIT_MSEC 1500
#define ENTRIES 512 /* in a row */

struct choice {
	size_t job;
	unsigned m, k;
	int column; /* x; those of y follow */
};

struct program {
	glp_prob *lp;
	const struct job *jobs;
	size_t n;
	unsigned engines, cus;
	struct choice choices[256];
	size_t n_choices;

	/* The row that is being made. */
	int index[ENTRIES];
	double value[ENTRIES];
	int length;
};

static void free_program(glp_prob **lp)
{
	glp_delete_prob(*lp);
}

static void entry(struct program *p, int column, double value)
{
	if (p->length == ENTRIES - 1)
		abort();
	p->index[++p->length] = column; /* from 1 */
	p->value[p->length] = value;
}

static void end_row(struct program *p, int kind, double bound)
{
	int row = glp_add_rows(p->lp, 1);

	glp_set_mat_row(p->lp, row, p->length, p->index, p->value);
	glp_set_row_bnds(p->lp, row, kind, bound, bound);
	p->length = 0;
}

static void add_choice(struct program *p, size_t job, unsigned m, unsigned k)
{
	struct choice *choice = &p->choices[p->n_choices++];
	unsigned useful = min_u(m * k, p->jobs[job].cus);

	if (p->n_choices == ARRAY_SIZE(p->choices))
		abort();
	*choice = (struct choice){ job, m, k, glp_add_cols(p->lp, 1 + (int)p->engines) };
	for (int i = 0; i <= (int)p->engines; i++)
		glp_set_col_kind(p->lp, choice->column + i, GLP_BV);
	glp_set_obj_coef(p->lp, choice->column, useful * (p->jobs[job].until - p->jobs[job].at));

	for (int e = 1; e <= (int)p->engines; e++)
		entry(p, choice->column + e, 1);
	entry(p, choice->column, -(double)m);
	end_row(p, GLP_FX, 0);
}

/* Nine tenths of what was asked to all of it, or for each m the least above it. */
static void add_job(struct program *p, size_t job)
{
	unsigned aim = p->jobs[job].cus, least = aim - aim / 10;
	size_t first = p->n_choices;

	for (unsigned m = 1; m <= p->engines; m++)
		for (unsigned k = 1; k <= p->cus; k++)
			if (m * k >= least && (m * k <= aim || m * (k - 1) < aim))
				add_choice(p, job, m, k);
	for (size_t i = first; i < p->n_choices; i++)
		entry(p, p->choices[i].column, 1);
	end_row(p, GLP_UP, 1);
}

/* No engine has more than it has, when a job comes, nor two realtime leases. */
static void add_moment(struct program *p, double now, unsigned engine)
{
	for (int realtime = 0; realtime < 2; realtime++) {
		for (size_t i = 0; i < p->n_choices; i++) {
			const struct job *job = &p->jobs[p->choices[i].job];

			if (job->at <= now && now < job->until && (job->realtime || !realtime))
				entry(p, p->choices[i].column + 1 + (int)engine,
				      realtime ? 1 : p->choices[i].k);
		}
		end_row(p, GLP_UP, realtime ? 1 : p->cus);
	}
}

/* Engines are alike: the first job's rectangle may be on the first ones. */
static void break_symmetry(struct program *p)
{
	for (size_t i = 0; i < p->n_choices && p->choices[i].job == 0; i++)
		for (int e = 1; e < (int)p->engines; e++) {
			entry(p, p->choices[i].column + e + 1, 1);
			entry(p, p->choices[i].column + e, -1);
			end_row(p, GLP_UP, 0);
		}
}

int optimum(const struct job *jobs, size_t n, unsigned engines, unsigned cus, double *ret)
{
	_cleanup_(free_program) glp_prob *lp = glp_create_prob();
	struct program p = { .lp = lp, .jobs = jobs, .n = n, .engines = engines, .cus = cus };
	glp_iocp options;

	glp_term_out(GLP_OFF);
	glp_set_obj_dir(lp, GLP_MAX);
	for (size_t i = 0; i < n; i++)
		add_job(&p, i);
	for (size_t i = 0; i < n; i++)
		for (unsigned e = 0; e < engines; e++)
			add_moment(&p, jobs[i].at, e);
	break_symmetry(&p);

	glp_init_iocp(&options);
	options.presolve = GLP_ON;
	options.gmi_cuts = options.mir_cuts = options.cov_cuts = GLP_ON;
	options.tm_lim = LIMIT_MSEC;
	if (glp_intopt(lp, &options) != 0 || glp_mip_status(lp) != GLP_OPT)
		return -ETIME;
	*ret = glp_mip_obj_val(lp);
	return 0;
}
