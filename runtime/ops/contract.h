/* ops/contract.h - the checks that follow from a row of ops.def; see gpipe/contract.h for the row
 * itself. */
#ifndef GP_OPS_CONTRACT_H
#define GP_OPS_CONTRACT_H

#include "gpipe/contract.h"
#include "ops/op.h"

/* Every operand has a dtype of its kind. Errors: GP_EDTYPE. */
gp_status gp_contract_check_operands(gp_op op, const gp_sig *sig);
/* Every attribute is in its range. Errors: GP_ERANGE, GP_EDTYPE, GP_EINVAL. */
gp_status gp_contract_check_attrs(gp_op op, const gp_attrs *attrs);
/* The operand that the op has its dtype from; -1: none of the first n_in. */
int gp_contract_lead(const gp_contract *contract, int n_in);

#endif
