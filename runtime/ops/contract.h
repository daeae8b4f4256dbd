/* ops/contract.h - the checks that follow from a row of ops.def; see gpipe/contract.h for the row
 * itself. */
#ifndef GP_OPS_CONTRACT_H
#define GP_OPS_CONTRACT_H

#include "gpipe/contract.h"
#include "ops/op.h"

/* Check that every operand has a dtype of its kind. Errors: GP_EDTYPE. */
gp_status gp_contract_check_operands(gp_op op, const gp_sig *sig);
/* Check that every attribute is in its range. Errors: GP_ERANGE, GP_EDTYPE, GP_EINVAL. */
gp_status gp_contract_check_attrs(gp_op op, const gp_attrs *attrs);
/* Return the operand that gives the op its dtype; -1 if none of the first n_in does. */
int gp_contract_lead(const gp_contract *contract, int n_in);

#endif
