/* io/bpe/alphabet.h - the printable characters that stand for bytes in vocabularies. */
#ifndef GP_IO_BPE_ALPHABET_H
#define GP_IO_BPE_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>

/* Write the bytes that a well-formed UTF-8 string stands for, which are never more than its own;
 * `bytes` may be `string`. False if a character stands for no byte. */
bool gp_alphabet_bytes(const char *string, size_t size, char *bytes, size_t *count);

#endif
