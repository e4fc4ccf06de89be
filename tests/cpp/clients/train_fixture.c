/* train_fixture.cc in C: the same arguments and results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hybridnet/c_api.h"

#define MAX 1024
#define MAX_RESULTS 16384

static void check(int status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", hn_last_error_kind(), hn_last_error());
  exit(1);
}

static size_t num_case;
static HnArray* case_arrays;
static const char** case_names;

static HnArray find(const char* prefix, const char* name) {
  const size_t length = strlen(prefix);
  for (size_t i = 0; i < num_case; ++i)
    if (strncmp(case_names[i], prefix, length) == 0 && strcmp(case_names[i] + length, name) == 0) return case_arrays[i];
  return NULL;
}

static size_t num_results;
static HnArray results[MAX_RESULTS];
static const char* result_names[MAX_RESULTS];

static void keep_parameters(HnModel model, const char* optimizer, int step) {
  size_t count;
  check(hn_model_num_parameters(model, &count));
  for (size_t i = 0; i < count && num_results < MAX_RESULTS; ++i) {
    const char* name;
    HnArray parameter;
    check(hn_model_parameter_name(model, i, &name));
    check(hn_model_parameter(model, i, &parameter));
    char* text = malloc(strlen(optimizer) + strlen(name) + 32);
    if (text == NULL) exit(4);
    sprintf(text, "%s:%d:%s", optimizer, step, name);
    result_names[num_results] = text;
    check(hn_array_copy(parameter, &results[num_results++]));
    check(hn_array_free(parameter));
  }
}

/* Makes a trainer of all parameters; for GroupAdaGrad, which needs matrices, only of the matrices. */
static HnTrainer make_trainer(HnModel model, const char* optimizer) {
  const char *key = "learning_rate", *value = "0.01";
  HnTrainer trainer;
  if (strcmp(optimizer, "GroupAdaGrad") != 0) {
    check(hn_trainer_create_for_model(model, optimizer, 1, &key, &value, &trainer));
    return trainer;
  }
  size_t count, chosen = 0;
  const char* names[MAX];
  HnArray matrices[MAX];
  check(hn_model_num_parameters(model, &count));
  for (size_t i = 0; i < count && chosen < MAX; ++i) {
    HnTensorSpec spec;
    check(hn_model_parameter_spec(model, i, &spec));
    if (spec.ndim != 2) continue;
    check(hn_model_parameter_name(model, i, &names[chosen]));
    check(hn_model_parameter(model, i, &matrices[chosen++]));
  }
  check(hn_trainer_create(chosen, names, matrices, optimizer, 1, &key, &value, &trainer));
  for (size_t i = 0; i < chosen; ++i) check(hn_array_free(matrices[i]));
  return trainer;
}

static void forward_backward(HnModel model, size_t num_outputs) {
  HnArray inputs[MAX], outputs[MAX], heads[MAX], head_grads[MAX];
  size_t num_inputs, num_heads = 0;
  check(hn_model_num_inputs(model, &num_inputs));
  if (num_inputs > MAX || num_outputs > MAX) exit(4);
  for (size_t i = 0; i < num_inputs; ++i) {
    const char* name;
    check(hn_model_input_name(model, i, &name));
    inputs[i] = find("input:", name);
  }
  check(hn_autograd_set_recording(1, NULL));
  check(hn_autograd_set_training(1, NULL));
  check(hn_model_run(model, num_inputs, inputs, num_outputs, outputs));
  check(hn_autograd_set_recording(0, NULL));
  check(hn_autograd_set_training(0, NULL));
  for (size_t i = 0; i < num_outputs; ++i) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    HnArray head = find("head:", number);
    if (head == NULL) continue;
    heads[num_heads] = outputs[i];
    head_grads[num_heads++] = head;
  }
  check(hn_autograd_backward(num_heads, heads, head_grads, 0, 1));
  for (size_t i = 0; i < num_outputs; ++i) check(hn_array_free(outputs[i]));
}

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  check(hn_arrays_load(argv[3], &num_case, &case_arrays, &case_names));
  const int steps = atoi(argv[4]);
  for (int i = 6; i < argc; ++i) {
    HnModel model;
    size_t num_outputs;
    check(hn_model_load(argv[1], argv[2], &model));
    check(hn_model_num_outputs(model, &num_outputs));
    HnTrainer trainer = make_trainer(model, argv[i]);
    check(hn_seed(7));
    for (int step = 1; step <= steps; ++step) {
      forward_backward(model, num_outputs);
      check(hn_trainer_step(trainer, 2, 1));
      if (step == 1 || step == steps) keep_parameters(model, argv[i], step);
    }
    check(hn_trainer_free(trainer));
    check(hn_model_free(model));
  }
  if (num_results == MAX_RESULTS) return 4;
  check(hn_arrays_save(argv[5], num_results, results, result_names));
  for (size_t i = 0; i < num_results; ++i) {
    check(hn_array_free(results[i]));
    free((void*)result_names[i]);
  }
  check(hn_arrays_free(num_case, case_arrays, case_names));
  return 0;
}
