/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The fluid division, judged by what defines weighted max-min: everything is given away, and nobody who
 * could have more has less for its weight than somebody who could have less.
 */

#include "core/layout/fluid.h"

#include "check.h"
#include "random-geometry.h"
#include "seed.h"

#define TERMS 24U
#define ONE ((double)(1 << FLUID_BITS))

static double share(const struct fluid_term *term)
{
	return (double)term->share / ONE;
}

/* What is rounded down, in units. */
static double rounding(size_t n)
{
	return (double)n * (1 + (double)FLUID_WEIGHT_MAX / ONE) / ONE;
}

/* A lease or an account: what it has of what it may have. */
struct part {
	double least, most, weight, has;
};

static struct part part_of(const struct fluid_term *term)
{
	return (struct part){ term->least, term->most < term->least ? term->least : term->most,
			      term->weight, share(term) };
}

static struct part account_of(const struct fluid_term *terms, size_t n, size_t account)
{
	struct part ret = { 0 };

	for (size_t i = account; i < n; i++) {
		struct part part = part_of(&terms[i]);

		if (terms[i].account != account)
			continue;
		ret.least += part.least;
		ret.most += part.most;
		ret.weight = part.weight > ret.weight ? part.weight : ret.weight;
		ret.has += part.has;
	}
	return ret;
}

/* b could give to a, which has less for its weight. */
static bool is_unfair(const struct part *a, const struct part *b, double error)
{
	return a->has + error < a->most && b->has > b->least + error &&
	       (a->has + error) / a->weight < (b->has - error) / b->weight;
}

static void check_division(const struct fluid_term *terms, size_t n, unsigned units)
{
	double sum = 0, least = 0, most = 0, all, error = 2 * rounding(n);

	for (size_t i = 0; i < n; i++) {
		struct part part = part_of(&terms[i]);

		CHECK(part.has >= part.least && part.has <= part.most);
		sum += part.has;
		least += part.least;
		most += part.most;
	}
	all = units < least ? least : units < most ? units : most;
	CHECK(sum <= all && sum >= all - error);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			struct part a = part_of(&terms[i]), b = part_of(&terms[j]);

			if (terms[i].account != terms[j].account) {
				a = account_of(terms, n, terms[i].account);
				b = account_of(terms, n, terms[j].account);
			}
			CHECK(!is_unfair(&a, &b, error));
		}
}

static unsigned random_weight(void)
{
	return below(3) == 0 ? 1 + below(FLUID_WEIGHT_MAX) : below(2) ? 1 + below(4) : 100;
}

static size_t random_terms(struct fluid_term *ret, unsigned units)
{
	size_t n = 1 + below(TERMS), accounts = 1 + below(TERMS);

	for (size_t i = 0; i < n; i++) {
		size_t account = below((unsigned)accounts);

		ret[i] = (struct fluid_term){ .least = below(2) ? 1 : below(units / 2 + 2),
					      .most = below(2) ? units : below(units + 1),
					      .weight = random_weight(),
					      .account = account < i ? ret[account].account : i };
	}
	return n;
}

TEST(random_leases_of_random_accounts_have_weighted_max_min_shares)
{
	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned run = 0; run < check_rounds(3000, 200000); run++) {
		struct fluid_term terms[TERMS];
		unsigned units = 1 + below(below(8) == 0 ? FLUID_UNITS_MAX : 304);
		size_t n = random_terms(terms, units);

		fluid(terms, n, units);
		check_division(terms, n, units);
	}
}

TEST(a_user_with_seven_leases_has_half_beside_a_user_with_one)
{
	struct fluid_term terms[8];

	for (size_t i = 0; i < 8; i++)
		terms[i] = (struct fluid_term){
			.least = 1, .most = 60, .weight = 100, .account = i < 7 ? 0 : 7
		};
	fluid(terms, 8, 60);
	CHECK(share(&terms[7]) > 29.99 && share(&terms[7]) <= 30);
	for (size_t i = 0; i < 7; i++)
		CHECK(share(&terms[i]) > 4.28 && share(&terms[i]) < 4.29);
}

TEST(leasts_are_kept_where_their_sum_exceeds_the_units)
{
	struct fluid_term terms[] = {
		{ .least = 30, .most = 60, .weight = 1, .account = 0 },
		{ .least = 20, .most = 10, .weight = 10000, .account = 1 },
	};

	fluid(terms, 2, 40);
	CHECK(terms[0].share == 30 << FLUID_BITS && terms[1].share == 20 << FLUID_BITS);
}

TEST(no_lease_is_divided_among)
{
	fluid(NULL, 0, 60);
}
