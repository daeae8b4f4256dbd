/* ops/activation/piecewise.c - activations made of lines: leaky_relu relu6 hardsigmoid hardswish
 * and elu, whose lower piece is an exponential.
 *
 * NaN stays NaN. The gradients read the input, and at the ends of a piece they are PyTorch's. */
#include "ops/elementwise/unary.h"

/* ---- leaky_relu ----------------------------------------------------------------------------- */

#define SLOPE(T) const T slope = (T)run->call->attr->leaky_relu.slope

GP_SLOPE(leaky_relu, SLOPE, in, b > 0 ? a : a * slope, b > 0 ? a : a * slope, light)
GP_UNARY(leaky_relu, SLOPE, a > 0 ? a : a * slope, a > 0 ? a : a * slope, light,
         .vjp = leaky_relu_vjp)

/* ---- elu ------------------------------------------------------------------------------------ */

/* Source: Clevert et al., "Fast and accurate deep network learning by exponential linear units"
 * (2015), equation 14. */
#define ALPHA(T) const T alpha = (T)run->call->attr->elu.alpha

GP_SLOPE(elu, ALPHA, in, b <= 0 ? a * alpha * gp_expf(b) : a, b <= 0 ? a * alpha * exp(b) : a,
         heavy)
GP_UNARY(elu, ALPHA, a <= 0 ? alpha * gp_expm1f(a) : a, a <= 0 ? alpha * expm1(a) : a, heavy,
         .vjp = elu_vjp)

/* ---- relu6, hardsigmoid ---------------------------------------------------------------------- */

#define RELU6(x)       ((x) <= 0 ? 0 : (x) >= 6 ? 6 : (x))
#define RELU6_SLOPE(x) ((x) <= 0 || (x) >= 6)

GP_SLOPE(relu6, GP_NO_SET, in, RELU6_SLOPE(b) ? 0 : a, RELU6_SLOPE(b) ? 0 : a, light)
GP_UNARY(relu6, GP_NO_SET, RELU6(a), RELU6(a), light, .vjp = relu6_vjp)

/* relu6(x + 3) / 6. */
GP_SLOPE(hardsigmoid, GP_NO_SET, in, b > -3 && b < 3 ? a * (1.0f / 6) : 0,
         b > -3 && b < 3 ? a * (1.0 / 6) : 0, light)
GP_UNARY(hardsigmoid, GP_NO_SET, RELU6(a + 3) / 6.0f, RELU6(a + 3) / 6.0, light,
         .vjp = hardsigmoid_vjp)

/* ---- hardswish ------------------------------------------------------------------------------ */

/* A SiLU without an exponential. The products come first: -infinity and the numbers below -3 give
 * 0, those above 3 themselves. Source: Howard et al., "Searching for MobileNetV3" (2019), section
 * 5.2. */
#define VALUE(x, T) ((x) <= (T)-3 ? (T)0 : (x) >= (T)3 ? (x) : (x) * ((x) + (T)3) * ((T)1 / (T)6))

/* x / 3 + 1 / 2 between -3 and 3; 0 and 1 at the ends, as beyond them. */
#define RISE(x, T) ((x) <= (T)-3 ? (T)0 : (x) >= (T)3 ? (T)1 : (x) * ((T)1 / (T)3) + (T)0.5)

GP_SLOPE(hardswish, GP_NO_SET, in, (a * RISE(b, float)), (a * RISE(b, double)), light)
GP_UNARY(hardswish, GP_NO_SET, VALUE(a, float), VALUE(a, double), light, .vjp = hardswish_vjp)
