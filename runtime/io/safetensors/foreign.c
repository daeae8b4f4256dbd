/* io/safetensors/foreign.c - recognises files that users give by mistake instead of weights, by
 * their first bytes.
 *
 * Downloads fail in the same few ways: an error page, a pointer to a file that was not fetched, the
 * same weights in another format. Read as a number, their first bytes would say that the header has
 * 2e18 bytes. */
#include "io/safetensors/foreign.h"

#include <string.h>

#define BYTES(text) text, sizeof text - 1

static const struct {
  const char *start;
  size_t bytes;
  const char *name;
} known[] = {
    {BYTES("version https://git-lfs"),
     "a pointer of Git LFS: the file itself was not fetched (git lfs pull does)"},
    {BYTES("<!DOCTYPE"), "an HTML page (a failed download?)"},
    {BYTES("<!doctype"), "an HTML page (a failed download?)"},
    {BYTES("<html"), "an HTML page (a failed download?)"},
    {BYTES("<HTML"), "an HTML page (a failed download?)"},
    {BYTES("PK\3\4"), "a zip archive, as torch.save and numpy.savez write them (save the weights "
                      "with safetensors in Python)"},
    {BYTES("\x80\2"), "a Python pickle (save the weights with safetensors in Python)"},
    {BYTES("\x80\3"), "a Python pickle (save the weights with safetensors in Python)"},
    {BYTES("\x80\4"), "a Python pickle (save the weights with safetensors in Python)"},
    {BYTES("\x80\5"), "a Python pickle (save the weights with safetensors in Python)"},
    {BYTES("GGUF"), "a GGUF file"},
    {BYTES("\x93NUMPY"), "an npy file of NumPy"},
    {BYTES("\x89HDF\r\n"), "an HDF5 file"},
    {BYTES("\x1f\x8b"), "gzip data (gunzip unpacks it)"},
    {BYTES("{\""), "JSON text"},
};

const char *gp_foreign_name(const void *first, size_t bytes) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (bytes >= known[i].bytes && memcmp(first, known[i].start, known[i].bytes) == 0)
      return known[i].name;
  return NULL;
}
