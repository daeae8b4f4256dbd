/* ops/attention/mask.h - what a mask means, for all who compute attention.
 *
 * A mask is [B, H, Tq, Tk], and may be 1 in the first three: booleans, true where a query may attend to a
 * key, or numbers that are added to the scaled scores. With a causal one, both must allow. A query that is
 * left without keys gives zeros, has 0 in place of the log of its sum, and takes and gives no gradient. */
#ifndef GP_OPS_ATTENTION_MASK_H
#define GP_OPS_ATTENTION_MASK_H

/* What is added hides its key from here on downwards, minus infinity as well as the lowest f32: one
 * number, so that arithmetic which does without infinities agrees on the keys that are left. */
#define GP_MASK_HIDDEN (-1e30)

#endif
