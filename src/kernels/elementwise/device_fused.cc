#include "kernels/elementwise/device_fused.h"

#include <algorithm>
#include <cstring>

#include "kernels/device/program_table.h"

namespace hybridnet::kernels {

thread_local FusedRecording* FusedRecording::current_ = nullptr;

int FusedRecording::value_of(const void* pointer) const {
  for (auto entry = written_.rbegin(); entry != written_.rend(); ++entry)
    if (entry->first == pointer) return entry->second;
  return static_cast<int>(reinterpret_cast<intptr_t>(pointer) >> 12) - 1;
}

// The function with its element and computing types, as template arguments.
std::string FusedRecording::begin_step(const DeviceFunction& function) {
  if (function.is_predicate) failed_ = true;
  headers_.insert(function.loops.functors);
  return functor_type(function) + ", T, " + device::element_name(computed_in(function));
}

void FusedRecording::end_step(std::string call, void* out) {
  lines_ += "    const T v" + std::to_string(num_values_) + " = " + call + ";\n";
  written_.emplace_back(out, num_values_++);
}

void FusedRecording::map(const DeviceFunction& function, const void* const* in, void* out, const double* scalars,
                         Repeat repeat) {
  if (repeat != Repeat::kNone) failed_ = true;
  std::string call = "computed<" + begin_step(function) + ">(a.numbers + " + std::to_string(numbers_.size());
  for (int k = 0; k < function.loops.arity; ++k) call += ", v" + std::to_string(value_of(in[k]));
  numbers_.insert(numbers_.end(), scalars, scalars + function.loops.scalars);
  end_step(call + ")", out);
}

void FusedRecording::number(const DeviceFunction& function, double number, Repeat side, const void* data, void* out) {
  double bytes = 0;
  store_scalar(computed_in(function), number, &bytes);
  end_step("computed_with_number<" + begin_step(function) + ", " + (side == Repeat::kFirst ? "true" : "false") +
               ">(a.numbers + " + std::to_string(numbers_.size()) + ", v" + std::to_string(value_of(data)) + ")",
           out);
  numbers_.push_back(bytes);
}

std::string FusedChain::input_line(size_t input, int repeated) const {
  const std::string number = std::to_string(input);
  const FusedInput& from = inputs_[input];
  const std::string at = from.full           ? "i"
                         : from.dims.empty() ? "0"
                                             : "position(a.repeated[" + std::to_string(repeated) + "], i)";
  return "    const T v" + number + " = static_cast<const T*>(a.in[" + number + "])[" + at + "];\n";
}

FusedChain::FusedChain(const FusedRecording& recording, DType dtype, std::vector<FusedInput> inputs,
                       std::vector<int> outputs)
    : inputs_(std::move(inputs)), numbers_(recording.numbers_), num_outputs_(static_cast<int>(outputs.size())) {
  std::string body;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    body += input_line(i, repeated_);
    if (!inputs_[i].dims.empty()) ++repeated_;
    dims_ = std::max(dims_, static_cast<int>(inputs_[i].dims.size()));
  }
  body += recording.lines_;
  for (size_t o = 0; o < outputs.size(); ++o)
    body += "    static_cast<T*>(a.out[" + std::to_string(o) + "])[i] = v" + std::to_string(outputs[o]) + ";\n";
  text_ = device::include_line("fused.cuh");
  for (const std::string& header : recording.headers_) text_ += "#include \"" + header + "\"\n";
  std::string sizes;
  for (const int size : {static_cast<int>(inputs_.size()), num_outputs_, std::max(repeated_, 1), dims_,
                         std::max(static_cast<int>(numbers_.size()), 1)})
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  text_ += "namespace hybridnet::device {\nusing namespace kernels::HWY_NAMESPACE;\nusing T = " +
           device::element_name(dtype) + ";\nusing Arguments = FusedArguments<" + sizes +
           ">;\nHN_KERNEL(fused, Arguments) {\n  for (int64_t i = first(); i < a.n; i += step()) {\n" + body +
           "  }\n}\n}\n";
  program_ = &device::Program::of(text_);
}

// The size of FusedArguments, whose members are all 8 bytes.
int64_t FusedChain::bytes() const {
  const auto numbers = std::max<int64_t>(static_cast<int64_t>(numbers_.size()), 1);
  return 8 * (1 + static_cast<int64_t>(inputs_.size()) + num_outputs_ +
              static_cast<int64_t>(std::max(repeated_, 1)) * 2 * dims_ + numbers);
}

void FusedChain::run(const void* const* in, void* const* out, int64_t n) const {
  if (n <= 0) return;
  int64_t arguments[kMostBytes / 8] = {};
  int64_t* next = arguments;
  const auto put = [&](const void* from, size_t words) {
    std::memcpy(next, from, words * 8);
    next += words;
  };
  put(&n, 1);
  put(in, inputs_.size());
  put(out, static_cast<size_t>(num_outputs_));
  for (const FusedInput& input : inputs_) {
    if (input.dims.empty()) continue;
    const auto dims = static_cast<size_t>(dims_), own = input.dims.size();
    std::fill_n(next, dims - own, 1);  // outer axes of one element
    std::copy(input.dims.begin(), input.dims.end(), next + (dims - own));
    std::copy(input.strides.begin(), input.strides.end(), next + dims + (dims - own));
    next += 2 * dims;
  }
  if (repeated_ == 0) next += 2 * dims_;
  put(numbers_.data(), numbers_.size());
  program_->launch("fused", device::geometry_for(n), arguments, static_cast<size_t>(bytes()));
}

}  // namespace hybridnet::kernels
