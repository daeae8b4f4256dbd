/* schedule/access/list.c - a list of accesses under construction. */
#include "base/memory.h"
#include "schedule/access/access.h"

gp_status gp_access_list_new(int32_t tasks, int32_t instances, gp_buffer *buffers,
                             int32_t buffer_count, gp_access_list *list) {
  size_t count = (size_t)tasks;
  *list = (gp_access_list){
      .buffers = buffers, .buffer_count = buffer_count, .instance_count = instances};
  gp_status status = gp_alloc_array(2 * count + 2, sizeof(int32_t), (void **)&list->first);
  if (status) return gp_access_list_free(list), status;
  list->time = list->first + count + 1;
  return GP_OK;
}

void gp_access_list_free(gp_access_list *list) {
  gp_free(list->buffers);
  gp_free(list->accesses);
  gp_free(list->first);
  *list = (gp_access_list){0};
}

void gp_access_list_begin(gp_access_list *list, bool joined) {
  int32_t task = list->task_count++;
  int32_t before = task ? list->time[task - 1] : -1;
  list->time[task] = joined ? before : before + 1;
  list->first[task + 1] = list->first[task];
}

/* The room doubles: a list has two or three accesses a task. */
gp_status gp_access_list_add(gp_access_list *list, int32_t buffer, int32_t instance,
                             gp_access_mode mode) {
  size_t count = (size_t)list->first[list->task_count];
  if (count == list->access_room) {
    size_t room = count ? 2 * count : 64;
    GP_TRY(gp_resize_array(count, room, sizeof(gp_access), (void **)&list->accesses));
    list->access_room = room;
  }
  list->accesses[count] = (gp_access){buffer, instance, mode};
  list->first[list->task_count]++;
  return GP_OK;
}
