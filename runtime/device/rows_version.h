/* device/rows_version.h - a hash of the meaning of ops.def's rows and of the structs that core and
 * plugin exchange, which both sides compare.
 *
 * It hashes the rows as the compiler sees them: comments, blanks and texts for users do not count,
 * so editing those invalidates no plugin. A struct that gains or loses a field changes the hash by
 * its size; if you change only the meaning of a field, raise GP_PLUGIN_VERSION. Include this header
 * only where the hash is compared. */
#ifndef GP_DEVICE_ROWS_VERSION_H
#define GP_DEVICE_ROWS_VERSION_H

#include <stdint.h>

#include "base/hash.h"
#include "device/plugin.h"

static inline uint64_t gp_rows_version(void) {
  static const char *const rows[] = {
#define GP_OP(name, operands, outputs, attributes, flags, text)                                    \
#name ":" #operands ":" #outputs ":" #attributes ":" #flags ";",
#include "ops/rows.def"
#undef GP_OP
  };
  static const size_t sizes[] = {
      sizeof(gp_gpu_api),     sizeof(gp_plugin_host), sizeof(gp_gpu_spec),    sizeof(gp_gpu_info),
      sizeof(gp_gpu_fault),   sizeof(gp_gpu_call),    sizeof(gp_gpu_run),     sizeof(gp_call),
      sizeof(gp_arg),         sizeof(gp_meta),        sizeof(gp_attrs),       sizeof(gp_step_block),
      sizeof(gp_optim_hyper), sizeof(gp_optim_slice), sizeof(gp_gpu_library), sizeof(gp_work_path),
  };
  uint64_t hash = GP_HASH_START;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) hash = gp_hash_text(hash, rows[i]);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) hash = gp_hash_word(hash, sizes[i]);
  return hash;
}

#endif
