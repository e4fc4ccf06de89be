/* Runs operators and a model with indices and lengths out of range; prints results, failures, with "callback" warnings.
 *
 * out_of_range callback|stderr SYMBOL PARAMS
 */
#include <stdio.h>
#include <string.h>

#include "hybridnet/c_api.h"

static void print_warning(const char* text, void* context) { printf("%s: %s\n", (const char*)context, text); }

static void print_result(const char* what, int status, HnArray result) {
  float values[16];
  int64_t size = 0;
  if (status != 0 || hn_array_size(result, &size) != 0 ||
      hn_array_copy_to(result, values, (size_t)size * sizeof(float)) != 0) {
    printf("%s failed: %s: %s\n", what, hn_last_error_kind(), hn_last_error());
  } else {
    printf("%s:", what);
    for (int64_t i = 0; i < size; ++i) printf(" %g", values[i]);
    printf("\n");
  }
  if (result) hn_array_free(result);
}

static void invoke(const char* op, size_t num_attributes, const char** keys, const char** values, HnArray* inputs) {
  size_t count = 1;
  HnArray result = NULL;
  const int status = hn_invoke(op, num_attributes, keys, values, 2, inputs, &count, &result);
  print_result(op, status, result);
}

int main(int argc, char** argv) {
  const int64_t shape[] = {4, 3}, rows[] = {4}, columns[] = {3};
  const float data[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, index[] = {0, 1, 7, 2}, lengths[] = {4, 1, 9};
  const char *key = "use_sequence_length", *value = "True";
  HnArray inputs[3];
  HnModel model = NULL;
  if (argc != 4) return 2;
  if (strcmp(argv[1], "callback") == 0 && hn_set_log_callback(print_warning, "warning") != 0) return 1;
  if (hn_array_create(shape, 2, HN_FLOAT32, data, &inputs[0]) != 0 ||
      hn_array_create(rows, 1, HN_FLOAT32, index, &inputs[1]) != 0 ||
      hn_array_create(columns, 1, HN_FLOAT32, lengths, &inputs[2]) != 0 ||
      hn_model_load(argv[2], argv[3], &model) != 0) {
    printf("%s\n", hn_last_error());
    return 1;
  }
  for (int i = 0; i < 2; ++i) {
    HnArray last[] = {inputs[0], inputs[2]}, result = NULL;
    invoke("pick", 0, NULL, NULL, inputs);
    invoke("SequenceLast", 1, &key, &value, last);
    const int status = hn_model_run(model, 2, last, 1, &result);
    print_result("model", status, result);
  }
  for (int i = 0; i < 3; ++i) hn_array_free(inputs[i]);
  hn_model_free(model);
  return 0;
}
