// Checks and prints of a program that run with its graph.
//
// Each effect takes the previous one as its input `after` and passes it on, so that they run in the order of the
// program. The last one becomes an input of _after_effects, whose output is an output of the graph.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"

namespace hybridnet::ops {
namespace {

// Printed arrays are cut behind this number of elements.
constexpr int64_t kMaxPrinted = 1000;

struct CheckParams {
  std::string message;
  static void describe(ParamSchema<CheckParams>& schema) {
    schema.field("message", &CheckParams::message).default_value("").doc("Text of the error.");
  }
};

struct PrintParams {
  std::string text;
  int32_t num_args;
  static void describe(ParamSchema<PrintParams>& schema) {
    schema.field("text", &PrintParams::text)
        .default_value("{}")
        .doc("Line to print, with {} in place of each array and {0} of each number.");
    schema.field("num_args", &PrintParams::num_args).at_least(1).doc("Number of inputs, `after` among them.");
  }
};

std::vector<double> as_doubles(const TensorRef& array, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  if (count > 0) kernels::convert_parallel(array.dtype, array.data, DType::kFloat64, values.data(), count);
  return values;
}

void pass_on(const KernelArgs& a) {
  if (a.out[0].data == a.in[0].data) return;
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

template <typename P>
void infer_first(const P&, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
}

void run_check(const CheckParams& p, const KernelArgs& a) {
  const char* data = static_cast<const char*>(a.in[1].data);
  const int64_t bytes = dtype_size(a.in[1].dtype);
  for (int64_t i = 0; i < a.in[1].size(); ++i) {
    double value = 0;
    kernels::convert_parallel(a.in[1].dtype, data + i * bytes, DType::kFloat64, &value, 1);
    if (value == 0)
      throw ValueError(
          {.op = "_check", .message = p.message.empty() ? std::string("a check of the program failed") : p.message});
  }
  pass_on(a);
}

std::string number_text(double value, bool integer) {
  char text[40];
  if (std::isnan(value)) return "nan";
  std::snprintf(text, sizeof(text), integer ? "%.0f" : "%.8g", value);
  return text;
}

// Appends the elements from `position` on, in nested brackets, one pair per axis.
void append_array(std::string& text, const Shape& shape, int axis, const std::vector<double>& values, bool integer,
                  size_t& position) {
  if (axis == shape.ndim()) {
    text += position < values.size() ? number_text(values[position], integer) : "...";
    ++position;
    return;
  }
  text += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) text += ' ';
    if (position >= values.size()) {
      text += "...";
      break;
    }
    append_array(text, shape, axis + 1, values, integer, position);
  }
  text += ']';
}

std::string array_text(const TensorRef& array) {
  const int64_t size = array.size();
  const std::vector<double> values = as_doubles(array, std::min(size, kMaxPrinted));
  std::string text;
  size_t position = 0;
  append_array(text, *array.shape, 0, values, !is_floating(array.dtype), position);
  return text;
}

void run_print(const PrintParams& p, const KernelArgs& a) {
  std::string line;
  size_t next = 1;
  for (size_t i = 0; i < p.text.size(); ++i) {
    if (p.text.compare(i, 2, "{}") == 0 && next < a.in.size()) {
      line += array_text(a.in[next++]);
      ++i;
    } else if (p.text.compare(i, 3, "{0}") == 0 && next < a.in.size()) {
      line += number_text(as_doubles(a.in[next], 1)[0], !is_floating(a.in[next].dtype));
      ++next;
      i += 2;
    } else {
      line += p.text[i];
    }
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  pass_on(a);
}

template <typename P>
Values only_first(const P&, const GradientContext& g) {
  Values gradients(static_cast<size_t>(g.num_inputs()));
  gradients[0] = g.output_grad(0);
  return gradients;
}

}  // namespace

void register_effects(OpRegistry& ops) {
  ops.declare<CheckParams>("_check")
      .doc("`after` unchanged; raises ValueError with the message if an element of test is zero.")
      .input("after", "the effect before this one; array of any shape")
      .input("test", "array of any shape")
      .output("out", "shape and dtype of after")
      .infer(infer_first<CheckParams>)
      .cpu(run_check)
      .inplace(0, 0)
      .may_raise()
      .gradient(only_first<CheckParams>, Saves::nothing())
      .internal()
      .allowed_in_files()
      .sample({Shape{3}, Shape{1}});
  ops.declare<PrintParams>("_print")
      .doc("`after` unchanged; prints a line to the standard output.")
      .variadic_input("data", "num_args", "the effect before this one, then the arrays to print")
      .output("out", "shape and dtype of the first input")
      .infer(infer_first<PrintParams>)
      .cpu(run_print)
      .random()
      .gradient(only_first<PrintParams>, Saves::nothing())
      .internal()
      .allowed_in_files()
      .sample({Shape{3}}, {{"num_args", "1"}, {"text", "sample"}});
  ops.declare("_after_effects")
      .doc("data unchanged; runs after the effects.")
      .input("data", "array of any shape")
      .input("after", "the last effect; array of any shape")
      .output("out", "shape and dtype of data")
      .infer(infer_first<NoParams>)
      .cpu([](const NoParams&, const KernelArgs& a) { pass_on(a); })
      .inplace(0, 0)
      .gradient(only_first<NoParams>, Saves::nothing())
      .internal()
      .allowed_in_files()
      .sample({{3, 4}, Shape{1}});
}

}  // namespace hybridnet::ops
