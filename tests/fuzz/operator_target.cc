// Every operator with random attributes, shapes, dtypes and values: it returns a result or an error, forward and
// backward.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../cpp/ops/result_bytes.h"
#include "fuzz.h"
#include "hybridnet/op.h"
#include "hybridnet/runtime.h"

namespace {

using namespace hybridnet;

int64_t draw_size(FuzzedDataProvider& in) {
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 33};
  return in.PickValueInArray(kSizes);
}

int64_t draw_integer(FuzzedDataProvider& in) {
  static constexpr int64_t kExtremes[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1 << 20, -1, 0};
  return in.ConsumeIntegralInRange(0, 15) == 0 ? in.PickValueInArray(kExtremes) : in.ConsumeIntegralInRange(-4, 9);
}

std::string draw_real(FuzzedDataProvider& in) {
  static constexpr const char* kReals[] = {"0", "1", "-1", "0.5", "2", "1e-30", "1e30", "inf", "-inf", "nan", "-0.0"};
  return in.PickValueInArray(kReals);
}

std::string draw_tuple(FuzzedDataProvider& in) {
  std::string text = "(";
  for (int i = in.ConsumeIntegralInRange(0, 4); i > 0; --i) text += std::to_string(draw_integer(in)) + ", ";
  return text + ")";
}

std::string draw_attribute(const FieldInfo& field, FuzzedDataProvider& in) {
  if (in.ConsumeIntegralInRange(0, 31) == 0) return in.ConsumeRandomLengthString(12);
  if (!field.choices.empty()) {
    const size_t choice = in.ConsumeIntegralInRange<size_t>(0, field.choices.size() - 1);
    return field.choices[choice].first;
  }
  switch (field.kind) {
    case FieldKind::kBool:
      return in.ConsumeBool() ? "True" : "False";
    case FieldKind::kInt32:
    case FieldKind::kInt64:
      return std::to_string(draw_integer(in));
    case FieldKind::kFloat:
    case FieldKind::kDouble:
      return draw_real(in);
    case FieldKind::kTuple:
      return draw_tuple(in);
    default: {
      const int kind = in.ConsumeIntegralInRange(0, 3);
      return kind == 0   ? std::to_string(draw_integer(in))
             : kind == 1 ? draw_tuple(in)
             : kind == 2 ? "None"
                         : draw_real(in);
    }
  }
}

fuzz::Array draw_array(FuzzedDataProvider& in, const HnTensorSpec* like, fuzz::Draws& draws) {
  HnTensorSpec spec{};
  static constexpr int kDTypes[] = {HN_FLOAT32, HN_FLOAT32, HN_FLOAT32, HN_FLOAT64, HN_FLOAT16,
                                    HN_INT32,   HN_INT64,   HN_INT8,    HN_UINT8,   HN_BFLOAT16};
  if (like && in.ConsumeIntegralInRange(0, 3) != 0) {
    spec = *like;
    if (spec.ndim > 0 && in.ConsumeIntegralInRange(0, 3) == 0)
      spec.shape[in.ConsumeIntegralInRange(0, spec.ndim - 1)] = draw_size(in);
  } else {
    spec.dtype = in.PickValueInArray(kDTypes);
    spec.ndim = in.ConsumeIntegralInRange(0, 5);
    for (int i = 0; i < spec.ndim; ++i) spec.shape[i] = draw_size(in);
  }
  return fuzz::make_array(spec, draws);
}

HnTensorSpec spec_of(HnArray array) {
  HnTensorSpec spec{};
  const int64_t* shape = nullptr;
  hn_array_ndim(array, &spec.ndim);
  hn_array_dtype(array, &spec.dtype);
  if (hn_array_shape(array, &shape) == 0) std::copy(shape, shape + spec.ndim, spec.shape);
  return spec;
}

// An output array for a result like this one: a new array, a part of an input, or an array from `before`.
fuzz::Array draw_out(FuzzedDataProvider& in, HnArray result, const std::vector<HnArray>& inputs,
                     const std::vector<fuzz::Array>& before, fuzz::Draws& draws) {
  const HnTensorSpec spec = spec_of(result);
  fuzz::Array out;
  const int kind = in.ConsumeIntegralInRange(0, 5);
  if (kind == 0 && !inputs.empty()) {
    fuzz::Array flat, part;
    const int64_t all[] = {-1};
    int64_t size = 0, room = 0, begin = 0;
    const HnArray chosen = inputs[in.ConsumeIntegralInRange<size_t>(0, inputs.size() - 1)];
    hn_array_size(result, &size);
    hn_array_size(chosen, &room);
    if (room > size) begin = in.ConsumeIntegralInRange<int64_t>(0, room - size);
    if (hn_array_reshape(chosen, all, 1, flat.out()) == 0 &&
        hn_array_slice(flat.get(), begin, begin + size, part.out()) == 0)
      hn_array_reshape(part.get(), spec.shape, spec.ndim, out.out());
    return out;
  }
  if (kind == 1 && !before.empty()) {
    hn_array_share(before[in.ConsumeIntegralInRange<size_t>(0, before.size() - 1)].get(), out.out());
    return out;
  }
  if (kind == 2) {
    hn_array_share(result, out.out());
    return out;
  }
  return draw_array(in, &spec, draws);
}

// Makes the same call with the caller's arrays as outputs.
void call_into(FuzzedDataProvider& in, const char* name, const std::vector<const char*>& keys,
               const std::vector<const char*>& values, const std::vector<HnArray>& inputs,
               std::span<const HnArray> results, fuzz::Draws& draws) {
  std::vector<fuzz::Array> outs;
  std::vector<HnArray> handles;
  for (const HnArray result : results) {
    outs.push_back(draw_out(in, result, inputs, outs, draws));
    handles.push_back(outs.back().get());
  }
  hn_invoke_into(name, keys.size(), keys.data(), values.data(), inputs.size(), inputs.data(), handles.size(),
                 handles.data());
  for (const HnArray handle : handles)
    if (handle) hn_array_wait(handle);
}

// Head gradients of any dtype, mostly of the required shape.
void differentiate(FuzzedDataProvider& in, std::span<const HnArray> results, int train, fuzz::Draws& draws) {
  std::vector<fuzz::Array> owned;
  std::vector<HnArray> heads;
  const bool given = in.ConsumeBool();
  for (const HnArray result : results) {
    if (!given) break;
    HnTensorSpec spec = spec_of(result);
    spec.dtype = in.ConsumeIntegralInRange(0, 12);
    owned.push_back(in.ConsumeIntegralInRange(0, 7) == 0 ? draw_array(in, &spec, draws)
                                                         : fuzz::make_array(spec, draws));
    heads.push_back(owned.back().get());
  }
  hn_autograd_backward(results.size(), results.data(), given ? heads.data() : nullptr, 0, train);
}

const std::vector<const Op*>& operators() {
  static const std::vector<const Op*> chosen = [] {
    std::vector<const Op*> ops;
    for (const Op* op : Runtime::get().ops().all())
      if (!op->opaque && !op->hidden) ops.push_back(op);  // they call user code, or C cannot call them
    return ops;
  }();
  return chosen;
}

// False for results that would fit into a machine but are too large for a test.
bool is_size_testable(const Op& op, const std::vector<std::string>& keys, const std::vector<std::string>& texts,
                      const std::vector<HnTensorSpec>& inputs) {
  constexpr int64_t kManyBytes = int64_t{1} << 28;
  try {
    std::vector<std::pair<std::string, std::string>> attrs;
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] != op.count_param) attrs.emplace_back(keys[i], texts[i]);
    if (!op.count_param.empty()) attrs.emplace_back(op.count_param, std::to_string(inputs.size()));
    const ParamsPtr params = op.schema->parse(attrs, op.name, false);
    std::vector<TensorSpec> in;
    for (const HnTensorSpec& spec : inputs)
      in.push_back({Shape(std::span<const int64_t>(spec.shape, static_cast<size_t>(spec.ndim))),
                    static_cast<DType>(spec.dtype)});
    const int64_t bytes = testing::largest_result_bytes(op, *params, std::move(in));
    return bytes <= kManyBytes || bytes >= testing::kImpossibleBytes;
  } catch (const Error&) {
    return true;  // the call will report it, too
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const auto& ops = operators();
  const Op& op = *ops[(data[0] | (static_cast<size_t>(data[1]) << 8)) % ops.size()];
  FuzzedDataProvider in(data + 2, size - 2);
  fuzz::Draws draws(data, size);
  std::vector<std::string> keys, texts;
  for (const FieldInfo& field : op.schema->fields()) {
    if (!field.required && in.ConsumeBool()) continue;
    keys.push_back(field.name);
    texts.push_back(draw_attribute(field, in));
  }
  const int wanted = op.variadic ? in.ConsumeIntegralInRange(0, 4) : static_cast<int>(op.inputs.size());
  std::vector<fuzz::Array> owned;
  std::vector<HnArray> inputs;
  std::vector<HnTensorSpec> specs;
  HnTensorSpec first{};
  for (int i = 0; i < wanted; ++i) {
    owned.push_back(draw_array(in, i > 0 ? &first : nullptr, draws));
    if (!owned.back().get()) return 0;
    specs.push_back(spec_of(owned.back().get()));
    if (i == 0) first = specs.back();
    inputs.push_back(owned.back().get());
    hn_array_attach_grad(inputs.back(), "write");
  }
  if (!op.data_dependent_shape && !is_size_testable(op, keys, texts, specs)) return 0;
  std::vector<const char*> key_texts, value_texts;
  for (size_t i = 0; i < keys.size(); ++i) {
    key_texts.push_back(keys[i].c_str());
    value_texts.push_back(texts[i].c_str());
  }
  const int record = in.ConsumeBool(), train = in.ConsumeBool();
  hn_set_np_shape(in.ConsumeBool(), nullptr);
  hn_autograd_set_recording(record, nullptr);
  hn_autograd_set_training(train, nullptr);
  HnArray results[64] = {};
  size_t room = 64;
  const int status = hn_invoke(op.name.c_str(), keys.size(), key_texts.data(), value_texts.data(), inputs.size(),
                               inputs.data(), &room, results);
  hn_autograd_set_recording(0, nullptr);
  hn_autograd_set_training(0, nullptr);
  if (status == 0) {
    const std::span<const HnArray> made(results, room);
    if (record) differentiate(in, made, train, draws);
    if (in.ConsumeBool()) {
      hn_autograd_set_recording(in.ConsumeBool(), nullptr);
      call_into(in, op.name.c_str(), key_texts, value_texts, inputs, made, draws);
      hn_autograd_set_recording(0, nullptr);
    }
    for (size_t i = 0; i < room; ++i) {
      hn_array_wait(results[i]);
      hn_array_free(results[i]);
    }
  }
  hn_wait_all();
  hn_set_np_shape(0, nullptr);
  return 0;
}
