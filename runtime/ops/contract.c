/* ops/contract.c - the rows of ops.def as tables, and the checks that follow from them.
 *
 * Dtypes of operands and ranges of attributes are the same few checks for every op, so they are
 * made here, once, before an op's own infer, which looks at shapes. Each mistake has one
 * wording. */
#include "ops/contract.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/infer.h"

/* ---- tables: one list of each kind per op -------------------------------------------------- */

#define GP_IN(role, kind)       {#role, GP_KIND_##kind, GP_REQUIRED},
#define GP_OPTIONAL(role, kind) {#role, GP_KIND_##kind, GP_LEFT_OUT},
#define GP_MANY(role, kind)     {#role, GP_KIND_##kind, GP_REPEATED},
#define GP_OP(name, operands, ...)                                                                 \
  static const gp_operand name##_operands[] = {operands{NULL, GP_KIND_ANY, GP_REQUIRED}};
#include "ops/rows.def"
#undef GP_OP

#define GP_OUT(role, kind)  {#role, GP_KIND_##kind, false},
#define GP_KEPT(role, kind) {#role, GP_KIND_##kind, true},
#define GP_OP(name, operands, outputs, ...)                                                        \
  static const gp_output name##_outputs[] = {outputs{NULL, GP_KIND_ANY, false}};
#include "ops/rows.def"
#undef GP_OP

/* The macros of the attributes' column do not know their op: the function around each table
 * declares a type `owner` that tells it. */
#define GP_FIELD(kind, name, ...)                                                                  \
  {#name, GP_ATTR_##kind, offsetof(gp_attrs, add) + offsetof(owner, name), __VA_ARGS__},
#define GP_NO_ATTRS
#define GP_INT(name, otherwise) GP_FIELD(INT, name, otherwise, 0, 0, NULL)
#define GP_MAYBE(name)          GP_FIELD(MAYBE, name, 0, 0, 0, NULL)
#define GP_FLAG(name)           GP_FIELD(FLAG, name, 0, 0, 0, NULL)
#define GP_REAL(name, otherwise, least, most)                                                      \
  GP_FIELD(REAL, name, otherwise, (double)(least), (double)(most), NULL)
#define GP_DTYPE(name)               GP_FIELD(DTYPE, name, 0, 0, 0, NULL)
#define GP_CHOICE(name, type, names) GP_FIELD(CHOICE, name, 0, 0, 0, names)
#define GP_DIM(name)                 GP_FIELD(DIM, name, 0, 0, 0, NULL)
#define GP_DIMS(name)                GP_FIELD(DIMS, name, 0, 0, 0, NULL)
#define GP_SHAPE(name)               GP_FIELD(SHAPE, name, 0, 0, 0, NULL)
#define GP_LIST(name)                GP_FIELD(LIST, name, 0, 0, 0, NULL)
#define GP_OP(name, operands, outputs, attributes, ...)                                            \
  static const gp_attr *name##_attrs(void) {                                                       \
    typedef gp_attr_##name owner;                                                                  \
    static const gp_attr list[] = {attributes{NULL, GP_ATTR_INT, sizeof(owner), 0, 0, 0, NULL}};   \
    return list;                                                                                   \
  }
#include "ops/rows.def"
#undef GP_OP

static const gp_contract contracts[] = {
#define GP_OP(name, operands, outputs, attributes, flags, text)                                    \
  {#name, text, flags, name##_operands, name##_outputs},
#include "ops/rows.def"
#undef GP_OP
};

static const gp_attr *(*const attributes[])(void) = {
#define GP_OP(name, ...) name##_attrs,
#include "ops/rows.def"
#undef GP_OP
};

const gp_contract *gp_op_contract(gp_op op) {
  return (unsigned)op < GP_OP_COUNT ? &contracts[op] : NULL;
}

const gp_attr *gp_op_attrs(gp_op op) {
  GP_ASSERT((unsigned)op < GP_OP_COUNT);
  return attributes[op]();
}

int gp_op_slots(gp_op op) {
  const gp_contract *contract = &contracts[op];
  int count = 0;
  while (contract->flags & GP_OP_EFFECT && contract->outputs[count].role) count++;
  return count;
}

/* ---- attributes ---------------------------------------------------------------------------- */

void gp_attrs_default(gp_op op, gp_attrs *attrs) {
  memset(attrs, 0, sizeof *attrs);
  for (const gp_attr *a = gp_op_attrs(op); a->name; a++) {
    if (a->kind == GP_ATTR_INT) *(int64_t *)gp_attr_field(attrs, a) = (int64_t)a->otherwise;
    if (a->kind == GP_ATTR_REAL) *(double *)gp_attr_field(attrs, a) = a->otherwise;
  }
}

int gp_attr_choice(const gp_attr *attr, const char *name) {
  int number = 0;
  for (const char *at = attr->names; *at; number++) {
    size_t length = strcspn(at, " ");
    if (strlen(name) == length && strncmp(at, name, length) == 0) return number;
    at += length + (at[length] == ' ');
  }
  return -1;
}

int gp_attr_choices(const gp_attr *attr) {
  int count = 1;
  for (const char *at = attr->names; *at; at++) count += *at == ' ';
  return count;
}

/* NaN is outside of every range. */
static gp_status check_real(const gp_attr *a, double value) {
  if (value >= a->least && value <= a->most) return GP_OK;
  if (isinf(a->most))
    return gp_fail(GP_ERANGE, "%s is %g, expected %g or more", a->name, value, a->least);
  return gp_fail(GP_ERANGE, "%s is %g, expected %g to %g", a->name, value, a->least, a->most);
}

/* Check what holds for every op; whether a dimension exists is for the op to say. */
static gp_status check_attr(const gp_attr *a, const void *field) {
  switch (a->kind) {
  case GP_ATTR_REAL: return check_real(a, *(const double *)field);
  case GP_ATTR_DTYPE:
    if ((unsigned)*(const gp_dtype *)field < GP_DTYPE_COUNT) return GP_OK;
    return gp_fail(GP_EDTYPE, "%s is number %d, expected a dtype", a->name, *(const int *)field);
  case GP_ATTR_CHOICE:
    if (*(const unsigned *)field < (unsigned)gp_attr_choices(a)) return GP_OK;
    return gp_fail(GP_EINVAL, "%s is number %d, expected one of: %s", a->name, *(const int *)field,
                   a->names);
  default: return GP_OK;
  }
}

gp_status gp_contract_check_attrs(gp_op op, const gp_attrs *attrs) {
  for (const gp_attr *a = gp_op_attrs(op); a->name; a++)
    GP_TRY(check_attr(a, (const char *)attrs + a->offset));
  return GP_OK;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Return the contract of operand i; a repeated operand stands for all from its place on. */
static const gp_operand *operand_at(const gp_contract *contract, int i) {
  const gp_operand *o = contract->operands;
  for (int k = 0; k < i && o->presence != GP_REPEATED; k++) o++;
  return o;
}

static bool has_op_dtype(const gp_operand *o) { return o->kind <= GP_KIND_ALIKE; }

static bool is_secret(const gp_operand *o) { return o->role[1] == '\0'; }

int gp_contract_lead(const gp_contract *contract, int n_in) {
  for (int i = 0; i < n_in; i++)
    if (has_op_dtype(operand_at(contract, i))) return i;
  return -1;
}

/* Return in words which dtypes a kind allows by itself, or NULL if the dtype is one of them. */
static const char *wanted(gp_kind kind, gp_dtype dtype) {
  bool whole = dtype == GP_I64 || dtype == GP_I32;
  switch (kind) {
  /* infer says whether it is packed: gp_operand_plain. */
  case GP_KIND_PACKABLE: return dtype == GP_U8 ? NULL : wanted(GP_KIND_FLOAT, dtype);
  case GP_KIND_FLOAT: return gp_dtype_is_float(dtype) ? NULL : "f32 or f64";
  case GP_KIND_NUMBER: return gp_dtype_is_float(dtype) || whole ? NULL : "f32, f64, i64 or i32";
  /* bool is refused: a mask passed for ids is a mistake that no range check would find. */
  case GP_KIND_IDS: return whole || dtype == GP_U8 ? NULL : "i64, i32 or u8";
  case GP_KIND_BOOL: return dtype == GP_BOOL ? NULL : "bool";
  case GP_KIND_COUNT: return dtype == GP_I64 ? NULL : "i64";
  default: return NULL;
  }
}

/* Operands of light ops have no names that users know, so the advice names the wider dtype. */
static gp_status fail_differ(gp_dtype a, gp_dtype b) {
  gp_dtype to = a == gp_infer_wide(a) && gp_dtype_is_float(a)   ? a
                : b == gp_infer_wide(b) && gp_dtype_is_float(b) ? b
                                                                : GP_F32;
  return gp_fail(GP_EDTYPE, "%s and %s differ; convert one with :to(\"%s\")", gp_dtype_name(a),
                 gp_dtype_name(b), gp_dtype_name(to));
}

/* The advice about a dtype where no better one is known. */
#define CONVERTS " (to(dtype) converts)"

static gp_status check_kind(const gp_operand *o, gp_dtype dtype) {
  const char *expected = wanted(o->kind, dtype);
  if (!expected) return GP_OK;
  if (is_secret(o))
    return gp_fail(GP_EDTYPE, "input is %s, expected %s; convert it with :to(\"f32\")",
                   gp_dtype_name(dtype), expected);
  return gp_fail(GP_EDTYPE, "%s is %s, expected %s" CONVERTS, o->role, gp_dtype_name(dtype),
                 expected);
}

/* A mask may be bool, of the op's dtype, or f32 if that is a half. */
static gp_status check_mask(const gp_operand *o, gp_dtype mask, gp_dtype own) {
  const gp_dtype wide = gp_infer_wide(own);
  if (mask == GP_BOOL || mask == own || mask == wide) return GP_OK;
  return gp_fail(GP_EDTYPE, "%s is %s, expected bool or %s%s%s" CONVERTS, o->role,
                 gp_dtype_name(mask), gp_dtype_name(own), wide == own ? "" : " or ",
                 wide == own ? "" : gp_dtype_name(wide));
}

/* Check operand o against the operand that gives the op its dtype. */
static gp_status check_against(const gp_operand *o, gp_dtype dtype, const gp_operand *lead,
                               gp_dtype own) {
  if (o->kind == GP_KIND_MASK) return check_mask(o, dtype, own);
  if (o->kind == GP_KIND_PACKABLE && dtype == GP_U8) return GP_OK;
  if (!has_op_dtype(o) && o->kind != GP_KIND_WIDE) return GP_OK;
  gp_dtype want = o->kind == GP_KIND_WIDE ? gp_infer_wide(own) : own;
  if (dtype == want) return GP_OK;
  if (is_secret(o)) return fail_differ(own, dtype);
  return gp_fail(GP_EDTYPE, "%s is %s, expected %s (%s is %s)" CONVERTS, o->role,
                 gp_dtype_name(dtype), gp_dtype_name(want), lead->role, gp_dtype_name(own));
}

/* For a light op, report two dtypes that differ before one that is wrong: the advice settles
 * both. */
static gp_status check_light(const gp_contract *contract, const gp_sig *sig, int lead) {
  for (int i = lead + 1; i < sig->n_in; i++) {
    const gp_operand *o = operand_at(contract, i);
    if (is_secret(o)) GP_TRY(check_against(o, sig->in[i]->dtype, o, sig->in[lead]->dtype));
  }
  return GP_OK;
}

gp_status gp_contract_check_operands(gp_op op, const gp_sig *sig) {
  const gp_contract *contract = &contracts[op];
  int lead = gp_contract_lead(contract, sig->n_in);
  if (lead >= 0) GP_TRY(check_light(contract, sig, lead));
  for (int i = 0; i < sig->n_in; i++) {
    const gp_operand *o = operand_at(contract, i);
    GP_TRY(check_kind(o, sig->in[i]->dtype));
    if (lead >= 0)
      GP_TRY(check_against(o, sig->in[i]->dtype, operand_at(contract, lead), sig->in[lead]->dtype));
  }
  return GP_OK;
}

gp_status gp_operand_plain(const gp_sig *sig, gp_op op, int i) {
  gp_dtype is = sig->in[i]->dtype, own = sig->in[0]->dtype;
  if (is != GP_U8) return GP_OK;
  return gp_fail(GP_EDTYPE, "%s is %s, expected %s (%s is %s)" CONVERTS, gp_op_role(op, i),
                 gp_dtype_name(is), gp_dtype_name(own), gp_op_role(op, 0), gp_dtype_name(own));
}

gp_status gp_operand_packed(const gp_sig *sig, gp_op op, int i, size_t bytes) {
  const gp_meta *meta = sig->in[i];
  if (meta->dtype == GP_U8 && meta->shape.rank == 1 && (size_t)meta->shape.dim[0] == bytes)
    return GP_OK;
  char is[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "%s is %s %s, expected %zu packed bytes", gp_op_role(op, i),
                 gp_dtype_name(meta->dtype), gp_shape_print(&meta->shape, is, sizeof is), bytes);
}

bool gp_op_packs(gp_op op) { return contracts[op].outputs[0].kind == GP_KIND_PACKED; }

bool gp_op_takes_packed(gp_op op, int i) {
  return operand_at(&contracts[op], i)->kind == GP_KIND_PACKABLE;
}

bool gp_op_takes_wide(gp_op op, int i) {
  return operand_at(&contracts[op], i)->kind == GP_KIND_WIDE;
}

const char *gp_op_role(gp_op op, int i) { return operand_at(&contracts[op], i)->role; }
