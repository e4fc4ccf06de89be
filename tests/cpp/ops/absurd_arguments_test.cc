// Operators called with absurd parameters, sizes and values: each call must end in a result or an error of ours, with
// memory and time that follow from sizes that the caller can see. Meant to be run under the address and
// undefined-behavior sanitizers, too.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"
#include "ops/op_samples.h"
#include "ops/result_bytes.h"

namespace hybridnet {
namespace {

using testing::SampleRun;
using testing::TextAttrs;

constexpr int64_t kHuge = int64_t{1} << 62;
constexpr int64_t kManyBytes = int64_t{1} << 26;  // results up to this size are computed
constexpr int kMaxSweptAxes = 4, kMaxTestedOutputs = 1000;
constexpr int64_t kExtraBytes = int64_t{512} << 20;  // limit for all calls of one operator, beyond their arrays

std::vector<std::string> absurd_values(const FieldInfo& field) {
  std::vector<std::string> values;
  switch (field.kind) {
    case FieldKind::kInt32:
    case FieldKind::kOptInt32:
      values = {"-2147483648", "-7", "-1", "0", "1", "60", "5000", "1000000000", "2147483647"};
      break;
    case FieldKind::kInt64:
    case FieldKind::kOptInt64:
      values = {"-9223372036854775808", "-4611686018427387904", "-1", "0", "3", "1000000000",
                "4611686018427387904",  "9223372036854775807"};
      break;
    case FieldKind::kFloat:
    case FieldKind::kDouble:
    case FieldKind::kOptFloat:
    case FieldKind::kOptDouble:
      values = {"-1e300", "-1e30", "-1", "0", "1e-300", "0.3", "1e9", "1e30", "1e300", "nan", "inf", "-inf"};
      break;
    case FieldKind::kTuple:
    case FieldKind::kOptTuple:
      values = {"()",
                "(0,)",
                "(0, 0)",
                "(-1, -1)",
                "(-9223372036854775808, 9223372036854775807)",
                "(9223372036854775807, 9223372036854775807)",
                "(4611686018427387904,)",
                "(4611686018427387904, 4)",
                "(0, 4611686018427387904)",
                "(1099511627776, 1099511627776)",
                "(2147483647, 2147483647, 2147483647)",
                "(4294967296, 0, 4294967296)",
                "(16777216, 5)",
                "(1, 1, 1, 1, 1, 1, 1, 1, 1)"};
      break;
    case FieldKind::kOptionalInts:
      values = {"()", "(None,)", "(-9223372036854775808, None)", "(9223372036854775807, 9223372036854775807)",
                "(0, 0, 0, 0, 0, 0)"};
      break;
    case FieldKind::kDoubles:
      values = {"()", "(nan,)", "(1e300, -1e300)", "(0, 0)", "(inf, inf, inf, inf)"};
      break;
    case FieldKind::kBool:
    case FieldKind::kOptBool:
      values = {"True", "False"};
      break;
    case FieldKind::kDType:
    case FieldKind::kOptDType:
      values = {"float16", "float64", "bool", "uint8", "int64"};
      break;
    case FieldKind::kEnum:
    case FieldKind::kOptEnum:
    case FieldKind::kString:
    case FieldKind::kOptString:
      for (const auto& [name, code] : field.choices) values.push_back(name);
      break;
  }
  return values;
}

// Values that are valid by themselves; only their products and sums overflow.
std::vector<std::string> large_values(const FieldInfo& field) {
  switch (field.kind) {
    case FieldKind::kInt32:
    case FieldKind::kOptInt32:
      return {"7", "2147483647", "-2147483648"};
    case FieldKind::kInt64:
    case FieldKind::kOptInt64:
      return {"7", "2147483647", "72057594037927936"};
    case FieldKind::kTuple:
    case FieldKind::kOptTuple:
      return {"(7,)",
              "(2147483647,)",
              "(72057594037927936,)",
              "(2147483647, 2147483647)",
              "(72057594037927936, 1)",
              "(2147483647, 2147483647, 2147483647)"};
    default:
      return {};
  }
}

// True for operators that graph files and users can name: the others are internal to gradients and passes.
bool is_public(const Op& op) {
  return op.subgraph_names.empty() && (!op.hidden || op.name.starts_with("_advanced_index")) && op.name != "Custom";
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

class AbsurdArguments : public ::testing::Test {
 protected:
  void SetUp() override { before_ = set_np_shape(true); }
  void TearDown() override { set_np_shape(before_); }

  // Calls f for up to three samples of every public operator: more show nothing new.
  template <typename F>
  void for_each_sample(F f) {
    for (const Op* op : Runtime::get().ops().all()) {
      if (!is_public(*op)) continue;
      op_ = op;
      const int64_t resident = peak_resident_bytes();
      for (size_t i = 0; i < std::min<size_t>(op->samples.size(), 3); ++i) f(SampleRun(*op, op->samples[i], true));
      EXPECT_LT(peak_resident_bytes() - resident, kExtraBytes) << op->name;
    }
  }

  // Runs the operator, and backward if it has a gradient. Skips results that would fit into this machine but are too
  // large for a test.
  void call(const TextAttrs& attrs, std::vector<NDArray> inputs, const std::string& what) {
    SCOPED_TRACE(op_->name + " " + what);
    const auto begin = std::chrono::steady_clock::now();
    try {
      const ParamsPtr params = op_->schema->parse(attrs, op_->name, false);
      if (op_->num_inputs(params->data()) != static_cast<int>(inputs.size())) return;
      if (!op_->data_dependent_shape && !is_size_testable(*params, inputs)) return;
      run(params, inputs);
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
    try {
      Runtime::get().engine().wait_all();
    } catch (const Error&) {
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }

  const Op* op_ = nullptr;

 private:
  bool is_size_testable(const Params& params, const std::vector<NDArray>& inputs) const {
    if (op_->num_outputs(params.data()) > kMaxTestedOutputs) return true;  // refused before anything is allocated
    std::vector<TensorSpec> in;
    for (const NDArray& array : inputs) in.push_back(array.spec());
    const int64_t bytes = testing::largest_result_bytes(*op_, params, std::move(in));
    return bytes <= kManyBytes || bytes >= testing::kImpossibleBytes;
  }
  void run(const ParamsPtr& params, std::vector<NDArray>& inputs) {
    if (!op_->differentiable() || op_->has_writebacks() || op_->variadic) {
      for (const NDArray& out : invoke(*op_, params, inputs))
        if (out) out.wait_to_read();  // null: hidden outputs without readers are not computed
      return;
    }
    testing::Recording on;
    for (const NDArray& input : inputs)
      if (is_floating(input.dtype())) mark_variable(input, NDArray::empty(input.spec()), GradReq::kWrite);
    std::vector<NDArray> outputs = invoke(*op_, params, inputs), heads;
    outputs.resize(static_cast<size_t>(op_->num_visible_outputs(params->data())));
    for (const NDArray& out : outputs) {
      out.wait_to_read();
      if (is_floating(out.dtype()) && needs_gradient(out)) heads.push_back(out);
    }
    if (heads.empty()) return;
    backward(heads, {}, false, true);
    for (const NDArray& input : inputs)
      if (const NDArray gradient = grad_of(input)) gradient.wait_to_read();
  }

  bool before_ = false;
};

TextAttrs with(TextAttrs attrs, const std::string& name, const std::string& value) {
  for (auto& [key, text] : attrs) {
    if (key != name) continue;
    text = value;
    return attrs;
  }
  attrs.emplace_back(name, value);
  return attrs;
}

// Returns the dtypes that the operator accepts, one of each kind.
std::vector<DType> swept_dtypes(const Op& op) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8})
    if (op.dtypes.has(dtype)) dtypes.push_back(dtype);
  if (dtypes.empty()) dtypes.push_back(DType::kInt32);
  return dtypes;
}
DType swept_dtype(const Op& op) { return swept_dtypes(op).front(); }

TEST_F(AbsurdArguments, ParametersGiveAResultOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    for (const FieldInfo& field : op_->schema->fields())
      for (const std::string& value : absurd_values(field))
        for (const DType dtype : swept_dtypes(*op_))
          call(with(sample.sample->attrs, field.name, value), sample.arrays(dtype),
               field.name + "=" + value + ", " + dtype_name(dtype));
  });
}

TEST_F(AbsurdArguments, NumbersThatTheDtypeDoesNotHoldGiveAResultOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    const std::vector<FieldInfo>& fields = op_->schema->fields();
    for (const FieldInfo& dtype : fields) {
      if (dtype.kind != FieldKind::kDType && dtype.kind != FieldKind::kOptDType) continue;
      for (const FieldInfo& number : fields) {
        if (number.kind != FieldKind::kFloat && number.kind != FieldKind::kDouble &&
            number.kind != FieldKind::kOptFloat && number.kind != FieldKind::kOptDouble)
          continue;
        for (const std::string& value : absurd_values(number))
          for (const char* name : {"int32", "uint8", "int64", "bool"})
            call(with(with(sample.sample->attrs, dtype.name, name), number.name, value),
                 sample.arrays(swept_dtype(*op_)), number.name + "=" + value + ", " + dtype.name + "=" + name);
      }
    }
  });
}

// Fills the array; values outside the range of its dtype become the bound of the dtype.
void fill(const NDArray& array, double value) {
  dispatch_dtype(array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T converted{};
    if constexpr (std::is_integral_v<T>)
      converted = value > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    else
      converted = static_cast<T>(static_cast<float>(value));
    std::fill_n(static_cast<T*>(array.data()), array.size(), converted);
  });
}

TEST_F(AbsurdArguments, ValuesGiveAResultOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    for (const DType dtype : swept_dtypes(*op_)) {
      for (size_t i = 0; i < sample.inputs.size(); ++i) {
        for (double value :
             {std::nan(""), -std::numeric_limits<double>::infinity(), 1e300, -1e30, 2147483648.0, -7.0}) {
          const std::vector<NDArray> inputs = sample.arrays(dtype);
          fill(inputs[i], value);
          call(sample.sample->attrs, inputs,
               "input " + std::to_string(i) + " filled with " + std::to_string(value) + ", " + dtype_name(dtype));
        }
      }
    }
  });
}

TEST_F(AbsurdArguments, EmptyInputsGiveAResultOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const Shape shape = sample.sample->inputs[i];
      for (int axis = 0; axis < shape.ndim(); ++axis) {
        for (int64_t other : {int64_t{0}, int64_t{1} << 31, int64_t{1} << 50}) {
          Shape empty = shape;
          for (int k = 0; k < empty.ndim(); ++k) empty[k] = std::min<int64_t>(empty[k], 1);
          if (other > 0) empty[(axis + 1) % shape.ndim()] = other;
          empty[axis] = 0;
          std::vector<NDArray> inputs = sample.arrays(swept_dtype(*op_));
          inputs[i] = NDArray::empty(empty, inputs[i].dtype());
          call(sample.sample->attrs, inputs, "input " + std::to_string(i) + " of shape " + empty.str());
          for (NDArray& input : inputs)
            if (input.shape() == shape) input = NDArray::empty(empty, input.dtype());
          call(sample.sample->attrs, inputs, "inputs of shape " + empty.str());
        }
      }
    }
  });
}

std::vector<TensorSpec> specs_of(const SampleRun& sample) {
  std::vector<TensorSpec> specs;
  for (const NDArray& array : sample.arrays(swept_dtype(*sample.op))) specs.push_back(array.spec());
  return specs;
}

// Infers specs, and computes the cost if every size is known.
void infer(const Op& op, const Params& params, std::vector<TensorSpec> in) {
  try {
    std::vector<TensorSpec> out(static_cast<size_t>(op.num_outputs(params.data())));
    InferContext context(op, in, out);
    op.infer(params.data(), context);
    const bool known = std::all_of(in.begin(), in.end(), [](const auto& s) { return s.shape.known(); });
    if (known && !op.data_dependent_shape) {
      EXPECT_GE(op.cost_ns(params.data(), in, out), 0);
    }
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
  }
}

TEST_F(AbsurdArguments, InferenceOfAnySizesGivesSpecsOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    const ParamsPtr params = op_->schema->parse(sample.sample->attrs, op_->name, false);
    const std::vector<TensorSpec> specs = specs_of(sample);
    for (size_t i = 0; i < specs.size(); ++i) {
      const int ndim = specs[i].shape.ndim();
      for (int axis = 0; axis <= ndim; ++axis) {  // ndim: all of them
        for (int64_t size : {kHuge, int64_t{1} << 56, int64_t{1} << 31, int64_t{1} << 28, int64_t{0}, kUnknownDim}) {
          SCOPED_TRACE(op_->name + " input " + std::to_string(i) + " axis " + std::to_string(axis) + " of size " +
                       std::to_string(size));
          std::vector<TensorSpec> in = specs;
          for (int k = 0; k < ndim; ++k)
            if (k == axis || axis == ndim) in[i].shape[k] = size;
          infer(*op_, *params, std::move(in));
        }
      }
    }
  });
}

// Products of a size and a parameter, each valid by itself.
TEST_F(AbsurdArguments, InferenceOfLargeSizesAndParametersTogetherGivesSpecsOrAnError) {
  for_each_sample([&](const SampleRun& sample) {
    const std::vector<TensorSpec> specs = specs_of(sample);
    for (const FieldInfo& field : op_->schema->fields()) {
      for (const std::string& value : large_values(field)) {
        ParamsPtr params;
        try {
          params = op_->schema->parse(with(sample.sample->attrs, field.name, value), op_->name, false);
          if (op_->num_inputs(params->data()) != static_cast<int>(specs.size())) continue;
          if (op_->num_outputs(params->data()) > kMaxTestedOutputs) continue;
        } catch (const Error&) {
          continue;
        }
        for (int axis = 0; axis < kMaxSweptAxes; ++axis) {
          for (int64_t size : {int64_t{1} << 31, int64_t{1} << 50, int64_t{1} << 56}) {
            SCOPED_TRACE(op_->name + " " + field.name + "=" + value + " axis " + std::to_string(axis) + " of size " +
                         std::to_string(size));
            std::vector<TensorSpec> in = specs;
            for (TensorSpec& spec : in)
              if (axis < spec.shape.ndim()) spec.shape[axis] = size;
            infer(*op_, *params, std::move(in));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace hybridnet
