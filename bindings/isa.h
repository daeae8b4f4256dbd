/* bindings/isa.h - does this processor have the instructions that the build uses? */
#ifndef GP_BINDINGS_ISA_H
#define GP_BINDINGS_ISA_H

/* The first missing feature ("avx512f"), or NULL if all are there. */
const char *gp_isa_missing(void);
/* What the build was made for: "native", "x86-64-v3", ... */
const char *gp_isa_march(void);
/* The features that the build may use, a space before each; "" for the plain processor. */
const char *gp_isa_built(void);

#endif
