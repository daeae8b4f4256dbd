/* io/image/resize.c - a part of a picture at another size, with a triangle filter.
 *
 * Each row of the result is first mixed from rows of the picture, then its columns from that row's:
 * so only one row is needed in between, however tall the picture is. */
#include <math.h>

#include "base/memory.h"
#include "io/image/picture.h"

/* Element i of the result uses count[i] pixels from first[i] on, with weights at weight + at[i]. */
typedef struct filter {
  int *first, *count, *at; /* [size] each, one block */
  float *weight;
} filter;

static void free_filter(filter *f) {
  gp_free(f->first);
  gp_free(f->weight);
}

/* Compute the weights of one element, which sum to 1; returns how many. */
static int fill_weights(double centre, double reach, int low, int high, int *first, float *weight) {
  int from = (int)floor(centre - reach), to = (int)ceil(centre + reach), n = 0;
  if (from < low) from = low;
  if (to > high) to = high;
  double sum = 0;
  for (int x = from; x < to; x++) sum += fmax(0, 1 - fabs((x + 0.5 - centre) / reach));
  for (int x = from; x < to; x++)
    weight[n++] = (float)(fmax(0, 1 - fabs((x + 0.5 - centre) / reach)) / sum);
  *first = from;
  return n;
}

/* Make the filter along one side: `length` pixels from `start` on become `size`. */
static gp_status make_filter(double start, double length, int side, int size, filter *f) {
  double scale = length / size, reach = fmax(scale, 1);
  int low = (int)fmax(0, floor(start)), high = (int)fmin(side, ceil(start + length));
  size_t most = (size_t)ceil(2 * reach) + 2;
  void *places = NULL, *weights = NULL;
  GP_TRY(gp_alloc_array(3 * (size_t)size, sizeof(int), &places));
  f->first = places, f->count = f->first + size, f->at = f->count + size;
  GP_TRY(gp_alloc_array((size_t)size * most, sizeof(float), &weights));
  f->weight = weights;
  for (int i = 0, at = 0; i < size; at += f->count[i], i++) {
    f->at[i] = at;
    f->count[i] =
        fill_weights(start + (i + 0.5) * scale, reach, low, high, &f->first[i], f->weight + at);
  }
  return GP_OK;
}

/* row[width, 3] receives row i of the result before its columns are mixed. */
static void mix_rows(const gp_picture *p, const filter *rows, int i, float *row) {
  int64_t n = (int64_t)p->width * 3;
  for (int64_t j = 0; j < n; j++) row[j] = 0;
  for (int k = 0; k < rows->count[i]; k++) {
    const unsigned char *from = p->rgb + (rows->first[i] + k) * n;
    float weight = rows->weight[rows->at[i] + k];
    for (int64_t j = 0; j < n; j++) row[j] += weight * (float)from[j];
  }
}

static void mix_columns(const float *row, const filter *columns, const gp_image_rule *rule,
                        bool mirrored, float *to) {
  int64_t area = (int64_t)rule->size * rule->size;
  for (int i = 0; i < rule->size; i++) {
    const float *weight = columns->weight + columns->at[i];
    const float *from = row + (int64_t)columns->first[i] * 3;
    int at = mirrored ? rule->size - 1 - i : i;
    for (int c = 0; c < 3; c++) {
      float sum = 0;
      for (int k = 0; k < columns->count[i]; k++) sum += weight[k] * from[3 * k + c];
      to[c * area + at] = (sum / 255.0f - rule->mean[c]) / rule->deviation[c];
    }
  }
}

gp_status gp_picture_resize(const gp_picture *p, const gp_picture_box *box,
                            const gp_image_rule *rule, bool mirrored, float *to) {
  filter rows = {0}, columns = {0};
  void *row = NULL;
  gp_status status = make_filter(box->top, box->height, p->height, rule->size, &rows);
  if (!status) status = make_filter(box->left, box->width, p->width, rule->size, &columns);
  if (!status) status = gp_alloc_array((size_t)p->width * 3, sizeof(float), &row);
  for (int i = 0; i < rule->size && !status; i++) {
    mix_rows(p, &rows, i, row);
    mix_columns(row, &columns, rule, mirrored, to + (int64_t)i * rule->size);
  }
  gp_free(row);
  free_filter(&rows);
  free_filter(&columns);
  return status;
}
