/* Two operators and a rule in C, for mx.library.load() and hn_library_load(). Built with
 *
 *   cc -O2 -shared -fPIC -I "$(python -m hybridnet.libinfo --include)" operators.c -o liboperators.so
 */
#include <hybridnet/c_api.h>
#include <string.h>

static int64_t count(const HnTensor* tensor) {
  int64_t size = 1;
  for (int i = 0; i < tensor->ndim; ++i) size *= tensor->shape[i];
  return size;
}

static const char* all_float(const HnTensor* tensors, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (tensors[i].dtype != HN_FLOAT32) return "every input must be float32";
  return NULL;
}

/* ---- scaled_square: scale x^2, elementwise ---- */

static const char* scaled_square_infer(const HnParameterValue* parameters, size_t num_inputs, const HnTensor* inputs,
                                       size_t num_outputs, HnTensorSpec* outputs) {
  (void)parameters, (void)num_outputs, (void)outputs; /* the output is like the input: outputs says so already */
  return all_float(inputs, num_inputs);
}

static const char* scaled_square_forward(const HnOperatorCall* call) {
  const float scale = (float)call->parameters[0].real, *x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  for (int64_t i = 0, n = count(&call->inputs[0]); i < n; ++i) y[i] = scale * x[i] * x[i];
  return NULL;
}

/* inputs: gradient of the output, x, the output; outputs: gradient of x. */
static const char* scaled_square_backward(const HnOperatorCall* call) {
  const float scale = (float)call->parameters[0].real, *dy = call->inputs[0].data, *x = call->inputs[1].data;
  float* dx = call->outputs[0].data;
  for (int64_t i = 0, n = count(&call->inputs[1]); i < n; ++i) dx[i] = dy[i] * 2 * scale * x[i];
  return NULL;
}

/* ---- row_extremes: (rows, columns) to the smallest and the largest value of each row ---- */

static const char* row_extremes_infer(const HnParameterValue* parameters, size_t num_inputs, const HnTensor* inputs,
                                      size_t num_outputs, HnTensorSpec* outputs) {
  (void)parameters;
  if (inputs[0].ndim != 2) return "data must have two axes";
  if (inputs[0].shape[1] < 1) return "a row needs at least one value";
  for (size_t i = 0; i < num_outputs; ++i) {
    outputs[i].ndim = 1;
    outputs[i].shape[0] = inputs[0].shape[0];
  }
  return all_float(inputs, num_inputs);
}

static const char* row_extremes_forward(const HnOperatorCall* call) {
  const int64_t rows = call->inputs[0].shape[0], columns = call->inputs[0].shape[1];
  const float* x = call->inputs[0].data;
  float *low = call->outputs[0].data, *high = call->outputs[1].data;
  const int absolute = call->parameters[0].integer != 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float v = x[r * columns + c];
      if (absolute && v < 0) v = -v;
      if (c == 0 || v < low[r]) low[r] = v;
      if (c == 0 || v > high[r]) high[r] = v;
    }
  }
  return NULL;
}

int hn_library_init(HnRegisterOperator register_operator) {
  static const HnParameter square_parameters[] = {{"scale", "Factor.", HN_REAL, "1"}};
  static const HnParameter extremes_parameters[] = {{"absolute", "Of absolute values.", HN_BOOLEAN, "False"}};
  static const char* const extremes[] = {"low", "high"};
  HnOperator square = {sizeof(HnOperator)};
  square.name = "scaled_square";
  square.doc = "scale * data * data, elementwise.";
  square.num_inputs = square.num_outputs = 1;
  square.num_parameters = 1;
  square.parameters = square_parameters;
  square.infer = scaled_square_infer;
  square.forward = scaled_square_forward;
  square.backward = scaled_square_backward;

  HnOperator rows = {sizeof(HnOperator)};
  rows.name = "row_extremes";
  rows.doc = "The smallest and the largest value of each row of data.";
  rows.num_inputs = 1;
  rows.num_outputs = 2;
  rows.output_names = extremes;
  rows.num_parameters = 1;
  rows.parameters = extremes_parameters;
  rows.infer = row_extremes_infer;
  rows.forward = row_extremes_forward;

  const int status = register_operator(&square);
  return status ? status : register_operator(&rows);
}

/* ---- use_scaled_square: square(x) * 3 becomes scaled_square(x, scale=3) ---- */

static const char* use_scaled_square(const HnGraphFunctions* g, HnGraph graph, HnValue product) {
  const HnValue square = g->input(graph, product, 0);
  const char* op = g->op(graph, square);
  if (!op || strcmp(op, "square") != 0 || g->num_readers(graph, square) != 1) return NULL;
  if (g->dtype(graph, product) != HN_FLOAT32) return NULL;
  const HnValue x = g->input(graph, square, 0);
  const char *name = "scale", *scale = g->attribute(graph, product, "scalar");
  g->replace(graph, product, g->add(graph, "scaled_square", 1, &x, 1, &name, &scale));
  return NULL;
}

int hn_library_init_rules(HnRegisterRule register_rule) {
  static const char* const ops[] = {"_mul_scalar"};
  HnRule rule = {sizeof(HnRule)};
  rule.name = "use_scaled_square";
  rule.doc = "square(x) * 3 is scaled_square(x, scale=3)";
  rule.num_ops = 1;
  rule.ops = ops;
  rule.stage = "fuse_with_gradient";
  rule.exactness = HN_ROUNDING;
  rule.rewrite = use_scaled_square;
  return register_rule(&rule);
}
