/* bindings/data/archive.h - what the bindings of files share. */
#ifndef GP_BINDINGS_DATA_ARCHIVE_H
#define GP_BINDINGS_DATA_ARCHIVE_H

#include "binding.h"

/* Make an archive of the tensors in one list under the names in another (stack indices); parameters
 * are added with their current values. The caller frees it. Errors: raises. */
gp_archive *gp_lua_new_archive(lua_State *L, int names, int tensors);

/* Push a list of strings and free them (gp_file_list_free), even if that raises. */
void gp_lua_push_names(lua_State *L, char **names, size_t count);

#endif
