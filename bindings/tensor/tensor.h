/* bindings/tensor/tensor.h - how the files of the class gpipe.Tensor fit together. */
#ifndef GP_BINDING_TENSOR_H
#define GP_BINDING_TENSOR_H

#include "binding.h"

/* Each adds its methods to the table on top of the stack. */
void gp_methods_values(lua_State *L);
void gp_methods_ops(lua_State *L);
void gp_methods_in_place(lua_State *L);
void gp_methods_shape(lua_State *L);
void gp_methods_reduce(lua_State *L);
void gp_methods_param(lua_State *L);
void gp_methods_gradient(lua_State *L);

/* Push the value at `index` without dimension dim (0-based), at position `at` of it: for a real
 * tensor, a view. */
void gp_lua_select(lua_State *L, int index, int dim, int64_t at);
/* The same for a real tensor or parameter, to be written: always a view of its memory, without a
 * history. */
void gp_lua_select_view(lua_State *L, int index, int dim, int64_t at);
/* Read a list of dims (number, table or nothing) into a mask; returns how many (0: all). */
int gp_lua_check_dims(lua_State *L, int index, const char *who, int rank, int64_t *mask);

/* Push t.requires_grad or t.grad of the box at position 1; returns 0 if the key is neither. */
int gp_lua_push_gradient_field(lua_State *L, const gp_box *box, const char *key);
/* Handle t.requires_grad = v and t.grad = nil, with t at 1 and v at 3; false if the key is
 * neither. */
bool gp_lua_set_gradient_field(lua_State *L, const char *key);
/* Apply an op to the arguments of its Lua function; pushes its outputs, returns how many. */
int gp_lua_call_op(lua_State *L, gp_op op);
/* Raise if the tensor at index 1 cannot be written now: while a layer is traced, only an nn.Buffer
 * can be. */
void gp_lua_check_assignable(lua_State *L, const char *who);
/* With the stack t, value: write the value into t, converted and broadcast, and push t. */
int gp_lua_write(lua_State *L, const char *who);

/* The Lua functions core.concat and core.every. */
int gp_lua_concat(lua_State *L);
int gp_lua_every(lua_State *L);

#endif
