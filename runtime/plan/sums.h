/* plan/sums.h - the tree by which the gradients of micro-batches are added.
 *
 * A sum of floats depends on the order of its terms. Where a plan has a tree, the order depends on
 * the numbers of the micro-batches in the whole mini-batch alone, not on who runs them: so R
 * replicas of m micro-batches give the bits of one pipeline with R * m.
 *
 *   leaf     sum_group neighbouring micro-batches, added one after the other: the first one writes
 *            the sum, so that a leaf does not depend on what was there before
 *   parent   of two blocks of 2^k leaves each: left + right, element by element. The last block of
 *            a mini-batch may be shorter
 *
 * A copy of a stage walks through its leaves like a binary counter: partial sum 0, the gradients
 * themselves, holds the largest block so far, partial sums 1, 2, ... hold what has come since. A
 * task that completes a leaf merges blocks of one size (gp_task.merges), and the last task of all
 * merges what is left. Copies hold neighbouring blocks of one size, so their sums are joined by the
 * same tree (engine/update/sums.c). Without a tree, each copy adds its micro-batches in ascending
 * order. Source: pairwise summation (Higham, "The Accuracy of Floating Point Summation", 1993). */
#ifndef GP_PLAN_SUMS_H
#define GP_PLAN_SUMS_H

#include "plan/plan.h"

/* Say for each task that adds to gradients which partial sum it adds to, whether it opens it, and
 * what it merges. Errors: GP_ESCHEDULE where copies do not run neighbouring blocks of one size. */
gp_status gp_plan_add_sums(gp_plan *plan);

#endif
