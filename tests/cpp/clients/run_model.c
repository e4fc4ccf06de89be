/* Runs a model in a C program without Python, and writes the results.
 *
 *   run_model SYMBOL PARAMS CASE RESULT
 *
 * CASE is a .params file: "input:NAME" are the inputs. If it has arrays "head:NUMBER", the run is recorded in training
 * mode, the heads are the gradients of the outputs with these numbers, and RESULT gets "grad:NAME" for each "want:NAME"
 * of CASE, an input or a parameter. RESULT gets "output:NUMBER" in any case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hybridnet/c_api.h"

#define MAX 1024

static void check(int status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", hn_last_error_kind(), hn_last_error());
  exit(1);
}

static size_t num_case;
static HnArray* case_arrays;
static const char** case_names;

static HnArray find(const char* prefix, const char* name) {
  for (size_t i = 0; i < num_case; ++i) {
    const size_t length = strlen(prefix);
    if (strncmp(case_names[i], prefix, length) == 0 && strcmp(case_names[i] + length, name) == 0) return case_arrays[i];
  }
  return NULL;
}

static size_t num_results;
static HnArray results[MAX];
static char result_names[MAX][256];

static void give(const char* prefix, const char* name, HnArray array) {
  if (num_results == MAX) exit(4);
  snprintf(result_names[num_results], sizeof result_names[0], "%s%s", prefix, name);
  results[num_results++] = array;
}

int main(int argc, char** argv) {
  if (argc != 5 || hn_abi_version() < HN_ABI_VERSION) return 2;
  HnModel model;
  check(hn_model_load(argv[1], argv[2], &model));
  check(hn_arrays_load(argv[3], &num_case, &case_arrays, &case_names));

  size_t num_inputs, num_outputs, num_parameters;
  check(hn_model_num_inputs(model, &num_inputs));
  check(hn_model_num_outputs(model, &num_outputs));
  check(hn_model_num_parameters(model, &num_parameters));
  if (num_inputs > MAX || num_outputs > MAX || num_parameters > MAX) return 4;
  HnArray inputs[MAX], outputs[MAX], parameters[MAX], heads[MAX], head_grads[MAX];
  const char *input_names[MAX], *parameter_names[MAX];
  for (size_t i = 0; i < num_inputs; ++i) {
    check(hn_model_input_name(model, i, &input_names[i]));
    inputs[i] = find("input:", input_names[i]);
    if (inputs[i] == NULL) return 3;
    if (find("want:", input_names[i])) check(hn_array_attach_grad(inputs[i], "write"));
  }
  for (size_t i = 0; i < num_parameters; ++i) {
    check(hn_model_parameter_name(model, i, &parameter_names[i]));
    check(hn_model_parameter(model, i, &parameters[i]));
    if (find("want:", parameter_names[i])) check(hn_array_attach_grad(parameters[i], "write"));
  }

  size_t num_heads = 0;
  char number[24];
  for (size_t i = 0; i < num_outputs; ++i) {
    snprintf(number, sizeof number, "%zu", i);
    num_heads += find("head:", number) != NULL;
  }
  if (num_heads > 0) {
    check(hn_autograd_set_recording(1, NULL));
    check(hn_autograd_set_training(1, NULL));
  }
  check(hn_model_run(model, num_inputs, inputs, num_outputs, outputs));
  check(hn_autograd_set_recording(0, NULL));
  check(hn_autograd_set_training(0, NULL));
  num_heads = 0;
  for (size_t i = 0; i < num_outputs; ++i) {
    snprintf(number, sizeof number, "%zu", i);
    give("output:", number, outputs[i]);
    HnArray head = find("head:", number);
    if (head == NULL) continue;
    heads[num_heads] = outputs[i];
    head_grads[num_heads++] = head;
  }
  if (num_heads > 0) {
    check(hn_autograd_backward(num_heads, heads, head_grads, 0, 1));
    for (size_t i = 0; i < num_inputs; ++i) {
      HnArray gradient;
      if (find("want:", input_names[i]) == NULL) continue;
      check(hn_array_grad(inputs[i], &gradient));
      give("grad:", input_names[i], gradient);
    }
    for (size_t i = 0; i < num_parameters; ++i) {
      HnArray gradient;
      if (find("want:", parameter_names[i]) == NULL) continue;
      check(hn_array_grad(parameters[i], &gradient));
      give("grad:", parameter_names[i], gradient);
    }
  }
  const char* names[MAX];
  for (size_t i = 0; i < num_results; ++i) names[i] = result_names[i];
  check(hn_arrays_save(argv[4], num_results, results, names));
  for (size_t i = 0; i < num_results; ++i) check(hn_array_free(results[i]));
  for (size_t i = 0; i < num_parameters; ++i) check(hn_array_free(parameters[i]));
  check(hn_arrays_free(num_case, case_arrays, case_names));
  check(hn_model_free(model));
  return 0;
}
