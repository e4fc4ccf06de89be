#include "kernels/elementwise/device_map.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_map>

#include "device/program.h"
#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/map_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/elementwise/device_fused.h"
#include "kernels/elementwise/half_power.h"

namespace hybridnet::kernels {
namespace {

using device::BroadcastArguments;
using device::MapArguments;
using device::NumberArguments;
using device::Program;
using device::SelectArguments;
using device::SumArguments;

static_assert(device::kMaxMapDims == kMaxDims && device::kMaxMapInputs == BroadcastLayout::kMaxOperands);

constexpr const char* kMap = "map";
constexpr const char* kBroadcast = "broadcast";
constexpr const char* kNumber = "number";
constexpr const char* kSum = "SumArguments";
constexpr const char* kLongSum = "LongSumArguments";

// A text with one kernel, `entry`, whose body calls `call`.
std::string text_of(const std::string& functors, const std::string& definitions, const std::string& entry,
                    const std::string& arguments, const std::string& call) {
  return "#include \"kernels/device/map.cuh\"\n" + (functors.empty() ? "" : "#include \"" + functors + "\"\n") +
         "namespace hybridnet::device {\n" + definitions + "HN_KERNEL(" + entry + ", " + arguments + ") { " + call +
         "(a); }\n}\n";
}

std::string map_text(const std::string& header, const std::string& functor, const std::string& types, int arity,
                     const std::string& entry) {
  const std::string definitions = "using namespace kernels::HWY_NAMESPACE;\nusing Kernel = Map<" + functor + ", " +
                                  types + ", " + std::to_string(arity) + ">;\n";
  const char* const arguments = entry == kMap      ? "MapArguments"
                                : entry == kNumber ? "NumberArguments"
                                                   : "BroadcastArguments";
  return text_of(header, definitions, entry, arguments, "Kernel::" + entry);
}

std::string function_text(const DeviceFunction& f, const char* entry) {
  const std::string element = on_device::element_name(f.dtype), computed = on_device::element_name(computed_in(f));
  const std::string types = element + ", " + computed + ", " + (f.is_predicate ? "bool" : element);
  return map_text(f.loops.functors, functor_type(f), types, f.loops.arity, entry);
}

// Finds the program of a function without writing its text: programs live as long as the process.
Program& program_of(const DeviceFunction& f, const char* entry) {
  struct Key {
    const SpanLoops* loops;
    int64_t form;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.loops) ^ std::hash<int64_t>()(key.form * 0x9E3779B97F4A7C15);
    }
  };
  // Behind a pointer: memory of threads that is there from the start is scarce (static TLS).
  static thread_local const auto table = std::make_unique<std::unordered_map<Key, Program*, Hash>>();
  auto& known = *table;
  const int64_t types = static_cast<int64_t>(f.dtype) * kDTypeCodes + static_cast<int64_t>(computed_in(f));
  const int64_t form = entry == kMap ? 0 : entry == kBroadcast ? 1 : 2;
  Program*& program = known[{&f.loops, (types * 3 + form) * 2 + (f.is_predicate ? 1 : 0)}];
  if (!program) program = &Program::of(function_text(f, entry));
  return *program;
}

BroadcastArguments broadcast_arguments(const BroadcastLayout& layout, const void* const* in, void* out) {
  BroadcastArguments a{};
  std::copy_n(in, layout.operands, a.in);
  a.out = out;
  a.n = layout.rows() * layout.inner();
  a.ndim = layout.ndim;
  std::copy_n(layout.dims, layout.ndim, a.dims);
  for (int k = 0; k < layout.operands; ++k) std::copy_n(layout.strides[k], layout.ndim, a.strides[k]);
  return a;
}

// The name of an unsigned integer of 1, 2, 4 or 8 bytes.
std::string integer_name(int64_t item_size) { return "uint" + std::to_string(8 * item_size) + "_t"; }

std::string copy_text(int64_t item_size) {
  const std::string item = integer_name(item_size);
  return map_text("kernels/functors/simple.h", "Copy", item + ", " + item + ", " + item, 1, kBroadcast);
}

std::string sum_text(DType dtype, const std::string& arguments) {
  const std::string types =
      on_device::element_name(dtype) + ", " + on_device::element_name(is_half(dtype) ? DType::kFloat32 : dtype);
  return text_of("kernels/functors/arithmetic.h", "", "sum", arguments,
                 "sum<kernels::HWY_NAMESPACE::Add, " + types + ", " + arguments + ">");
}

template <class Arguments>
void launch_sum(DType dtype, const char* name, Arguments a, size_t inputs, void* out, int64_t n) {
  a.out = out;
  a.n = n;
  a.inputs = static_cast<int64_t>(inputs);
  Program::of(sum_text(dtype, name)).launch("sum", device::geometry_for(n), a);
}

std::string select_text(DType condition, int64_t item_size) {
  return text_of("", "", "choose", "SelectArguments",
                 "select<" + on_device::element_name(condition) + ", " + integer_name(item_size) + ">");
}

}  // namespace

DType computed_in(const DeviceFunction& f) {
  if (f.through != DType::kUnknown) return f.through;
  return f.loops.functor[static_cast<int>(f.dtype)] ? f.dtype : dtype_through(f.dtype);
}

std::string functor_type(const DeviceFunction& f) {
  std::string functor(f.loops.functor[static_cast<int>(computed_in(f))]);
  if (f.loops.scalars > 0) functor += "<" + on_device::element_name(computed_in(f)) + ">";  // these are templates
  return functor;
}

void map_on_device(const DeviceFunction& function, const void* const* in, void* out, int64_t n, const double* scalars,
                   Repeat repeat) {
  if (n <= 0) return;
  if (FusedRecording* const recording = FusedRecording::current())
    return recording->map(function, in, out, scalars, repeat);
  MapArguments a{};
  const SpanLoops& loops = function.loops;
  std::copy_n(in, loops.arity, a.in);
  for (int k = 0; k < loops.arity; ++k) a.step[k] = static_cast<int>(repeat) == k + 1 ? 0 : 1;
  std::copy_n(scalars, loops.scalars, a.scalars);
  a.out = out;
  a.n = n;
  program_of(function, kMap).launch(kMap, device::geometry_for(n), a);
}

void number_on_device(const DeviceFunction& function, double number, Repeat side, const void* data, void* out,
                      int64_t n) {
  if (n <= 0) return;
  if (FusedRecording* const recording = FusedRecording::current())
    return recording->number(function, number, side, data, out);
  NumberArguments a{};
  a.in = data;
  a.out = out;
  a.n = n;
  a.number_first = side == Repeat::kFirst ? 1 : 0;
  store_scalar(computed_in(function), number, &a.number);
  program_of(function, kNumber).launch(kNumber, device::geometry_for(n), a);
}

void broadcast_on_device(const DeviceFunction& function, const BroadcastLayout& layout, const void* const* in,
                         void* out) {
  const BroadcastArguments a = broadcast_arguments(layout, in, out);
  if (a.n > 0) program_of(function, kBroadcast).launch(kBroadcast, device::geometry_for(a.n), a);
}

void broadcast_copy_on_device(const BroadcastLayout& layout, const void* in, int64_t item_size, void* out) {
  const BroadcastArguments a = broadcast_arguments(layout, &in, out);
  if (a.n > 0) Program::of(copy_text(item_size)).launch(kBroadcast, device::geometry_for(a.n), a);
}

void add_n_on_device(DType dtype, std::span<const void* const> in, void* out, int64_t n) {
  if (n <= 0) return;
  if (in.size() <= device::kMaxSumInputs) {
    SumArguments a{};
    std::copy(in.begin(), in.end(), a.in);
    return launch_sum(dtype, kSum, a, in.size(), out, n);
  }
  device::Stream& stream = *device::current();
  const OwnedBlock table(static_cast<int64_t>(in.size_bytes()), stream.device());
  stream.copy_in(table.data(), in.data(), static_cast<int64_t>(in.size_bytes()));
  launch_sum(dtype, kLongSum, device::LongSumArguments{.in = static_cast<const void* const*>(table.data())}, in.size(),
             out, n);
}

void select_on_device(DType condition_dtype, const void* condition, int64_t item_size, const void* x, const void* y,
                      void* out, int64_t n) {
  if (n <= 0) return;
  const SelectArguments a{condition, x, y, out, n};
  Program::of(select_text(condition_dtype, item_size)).launch("choose", device::geometry_for(n), a);
}

}  // namespace hybridnet::kernels

namespace hybridnet::device {

std::vector<std::string> elementwise_texts() {
  using namespace kernels;
  constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                               DType::kUInt8,   DType::kInt32,   DType::kInt64,   DType::kBool};
  std::vector<std::string> texts;
  const auto add = [&](const SpanLoops& function, DType dtype) {
    const DeviceFunction value{function, dtype}, predicate{function, dtype, DType::kUnknown, true};
    if (!function.functor[static_cast<int>(computed_in(value))]) return;
    texts.push_back(function_text(value, kMap));
    if (function.arity != 2) return;
    texts.push_back(function_text(value, kBroadcast));
    texts.push_back(function_text(value, kNumber));
    texts.push_back(function_text(predicate, kBroadcast));
  };
  for (const DType dtype : kDTypes) {
    for (int id = 0; id < static_cast<int>(Pointwise::kCount); ++id) add(loops(static_cast<Pointwise>(id)), dtype);
    if (is_floating(dtype)) add(half_power_loops(), dtype);
    texts.push_back(sum_text(dtype, kSum));
    texts.push_back(sum_text(dtype, kLongSum));
    for (const int64_t size : {1, 2, 4, 8}) texts.push_back(select_text(dtype, size));
  }
  for (const int64_t size : {1, 2, 4, 8}) texts.push_back(copy_text(size));
  std::ranges::sort(texts);
  texts.erase(std::ranges::unique(texts).begin(), texts.end());
  return texts;
}

}  // namespace hybridnet::device
