/* bindings/data/archive.h - what bindings of files share. */
#ifndef GP_BINDINGS_DATA_ARCHIVE_H
#define GP_BINDINGS_DATA_ARCHIVE_H

#include "binding.h"

/* An archive of the tensors in one list under the names in another (stack indices); parameters are
 * added with the values that they have now. The caller frees it; raises where it cannot be made. */
gp_archive *gp_lua_new_archive(lua_State *L, int names, int tensors);

/* Push a list of strings and free them (gp_file_list_free), also where that raises. */
void gp_lua_push_names(lua_State *L, char **names, size_t count);

#endif
