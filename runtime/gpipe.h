/* gpipe.h - the public interface of the runtime: what bindings (and C programs) may call.
 *
 * Everything behind it is internal. What holds for every function here:
 *   - a function that can fail returns a gp_status and leaves its text in gp_error_text() of the
 *     calling thread; GP_ENOMEM is possible wherever something is made, and not repeated below;
 *   - results go through the last pointer parameters, which are untouched on failure;
 *   - what `new`, `build` or `load` return belongs to the caller, who gives it back with `free`
 *     (NULL is fine); every `retain` needs one more `free`;
 *   - parameters are borrowed for the call unless a comment says taken or retained;
 *   - an object is used by one thread at a time; any thread may touch reference counts.
 *
 * The headers, one per subject, follow the data: values, where they come from, what is computed
 * from them, the model, its pipeline, the update, the files that remain. Bindings include this one;
 * a file of the runtime includes only the subjects that it needs.
 *
 * Dimension letters used in comments: B batch, T time, C channels, V vocabulary, N rows, M
 * micro-batches, S stages. */
#ifndef GPIPE_H
#define GPIPE_H

/* clang-format off: the order of the data */
#include "gpipe/status.h"
#include "gpipe/tensor.h"
#include "gpipe/random.h"
#include "gpipe/data.h"
#include "gpipe/tokenizer.h"
#include "gpipe/corpus.h"
#include "gpipe/records.h"
#include "gpipe/serve.h"
#include "gpipe/gather.h"
#include "gpipe/linalg.h"
#include "gpipe/items.h"
#include "gpipe/op.h"
#include "gpipe/contract.h"
#include "gpipe/param.h"
#include "gpipe/trace.h"
#include "gpipe/history.h"
#include "gpipe/schedule.h"
#include "gpipe/simulation.h"
#include "gpipe/pipeline.h"
#include "gpipe/plan.h"
#include "gpipe/run.h"
#include "gpipe/profile.h"
#include "gpipe/update.h"
#include "gpipe/optimizer.h"
#include "gpipe/archive.h"
#include "gpipe/checkpoint.h"
#include "gpipe/folder.h"
#include "gpipe/device.h"
#include "gpipe/host.h"
#include "gpipe/process.h"
#include "gpipe/ranks.h"
#include "gpipe/version.h"
/* clang-format on */

#endif
