/* ops/constants.h - numbers that the CPU's and the GPU's kernels of an op share, each with its
 * reason.
 *
 * Two kernels that agree to the last digits start from the same constants. */
#ifndef GP_OPS_CONSTANTS_H
#define GP_OPS_CONSTANTS_H

/* ---- gelu ---------------------------------------------------------------------------------- */

#define GP_ROOT_HALF   0.70710678118654752440
#define GP_ROOT_2_PI   0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define GP_LOG2_E      1.44269504088896340736 /* log2(e) */
#define GP_TWICE_SLOPE 1.59576912160573071176 /* 2 sqrt(2 / pi) */
/* For the tanh form. Source: Hendrycks and Gimpel, "Gaussian error linear units"
 * (2016), section 2. */
#define GP_GELU_CUBIC 0.044715

/* Beyond these the result is x or 0 exactly; a factor bounded there keeps 0 * infinity away. */
#define GP_GELU_BOUND_F32 20.0f
#define GP_GELU_BOUND_F64 60.0

/* ---- erf ----------------------------------------------------------------------------------- */

#define GP_2_ROOT_PI 1.12837916709551257390 /* 2 / sqrt(pi), the slope at 0 */

/* ---- silu ---------------------------------------------------------------------------------- */

/* Beyond these the sigmoid is 0 or 1 in the type. */
#define GP_SIGMOID_BOUND_F32 110.0f
#define GP_SIGMOID_BOUND_F64 800.0

/* ---- dropout and attention ----------------------------------------------------------------- */

/* Random words are below this; an element is dropped if its word is below p times this. */
#define GP_WORD_RANGE 4294967296.0

/* A mask value hides its key if it is this low or lower, minus infinity as well as the lowest f32.
 * It is one finite number, so that kernels which do without infinities hide the same keys. */
#define GP_MASK_HIDDEN (-1e30)

#endif
