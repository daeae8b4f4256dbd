/* io/bpe/alphabet.h - the printable characters that stand for bytes in vocabularies. */
#ifndef GP_IO_BPE_ALPHABET_H
#define GP_IO_BPE_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>

/* Write the bytes that a well-formed UTF-8 string stands for (never more than its own; `bytes` may
 * be `string`). False where a character stands for none. */
bool gp_alphabet_bytes(const char *string, size_t size, char *bytes, size_t *count);

#endif
