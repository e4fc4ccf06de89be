#include "imperative/compressed_sums.h"

#include <vector>

#include "hybridnet/error.h"
#include "hybridnet/imperative.h"
#include "imperative/group_arrays.h"
#include "imperative/tape.h"

namespace hybridnet {
namespace {

using group::Call;
using group::Codec;
using group::Group;
using Arrays = std::vector<NDArray>;

constexpr int64_t kCostOfValue = 2;  // ns

void check_codec(const Codec& codec) {
  if (codec.bits == 1 || (codec.bits == 2 && codec.threshold > 0)) return;
  throw ParamError({.expected = "1 bit, or 2 bits with a positive threshold",
                    .given = codec.str(),
                    .message = "compression of gradients"});
}

void check_array(const NDArray& array, const NDArray& like) {
  if (array.is_sparse() || array.is_on_gpu())
    throw UnsupportedError({.message = "compression of gradients",
                            .because = array.is_sparse() ? "the array is in sparse storage" : "the array is on a GPU"});
  if (array.dtype() != DType::kFloat32)
    throw DTypeError({.expected = "float32",
                      .given = dtype_name(array.dtype()),
                      .message = "compression of gradients",
                      .fix = "leave compression_params out for parameters of other dtypes"});
  if (array.spec() != like.spec())
    throw ShapeError(
        {.expected = like.spec().str(), .given = array.spec().str(), .message = "compression of gradients"});
}

void check_arrays(std::span<const NDArray> gradients, std::span<const NDArray> others) {
  if (others.size() != gradients.size())
    throw ShapeError({.expected = std::to_string(gradients.size()) + " arrays",
                      .given = std::to_string(others.size()),
                      .message = "compression of gradients"});
  for (size_t i = 0; i < others.size(); ++i) check_array(others[i], gradients[i]);
}

void note_writes(std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    check_recorded_write(array);
    note_overwrite(array);
  }
}

std::span<float> values_of(const NDArray& array) {
  return {static_cast<float*>(array.data()), static_cast<size_t>(array.size())};
}

Call call_of(const Codec& codec, std::span<const NDArray> gradients, const std::string& label) {
  Call call{.kind = Call::Kind::kGather, .dtype = DType::kUInt8};
  for (const NDArray& gradient : gradients) {
    call.count += codec.message_bytes(gradient.size());
    call.add_shape(gradient.shape());
  }
  call.label = codec.str() + ", of " + label;
  return call;
}

// Adds the messages of all processes, which follow each other in memory.
void add_all(const Codec& codec, const char* messages, int64_t bytes, int processes, std::span<const NDArray> out) {
  for (const NDArray& array : out) {
    std::vector<const char*> of_array;
    for (int rank = 0; rank < processes; ++rank) of_array.push_back(messages + rank * bytes);
    add_codes(codec, of_array, values_of(array));
    messages += codec.message_bytes(array.size());
  }
}

}  // namespace

void sum_compressed_over_group(const Codec& codec, std::span<const NDArray> gradients,
                               std::span<const NDArray> residuals, std::span<const NDArray> out,
                               const std::string& label, int priority) {
  check_codec(codec);
  check_arrays(gradients, gradients);
  check_arrays(gradients, residuals);
  check_arrays(gradients, out);
  note_writes(residuals);
  note_writes(out);
  const Call call = call_of(codec, gradients, label);
  Arrays written(residuals.begin(), residuals.end());
  written.insert(written.end(), out.begin(), out.end());
  push_group_call(
      "sum of compressed gradients", gradients, written, priority,
      [codec, call, from = Arrays(gradients.begin(), gradients.end()), written](Group& group, uint64_t number) {
        const std::span<const NDArray> left(written.data(), from.size());
        char* const own = group.staging(call.count * (group.size() + 1));
        char* message = own;
        for (size_t i = 0; i < from.size(); ++i) {
          encode(codec, values_of(from[i]), values_of(left[i]), message);
          message += codec.message_bytes(from[i].size());
        }
        group.gather(call, number, own, own + call.count);
        add_all(codec, own + call.count, call.count, group.size(), std::span(written).subspan(from.size()));
      });
}

void code_values(const Codec& codec, const NDArray& gradient, const NDArray& residual, const NDArray& out) {
  check_codec(codec);
  check_array(gradient, gradient);
  check_array(residual, gradient);
  check_array(out, gradient);
  const Arrays written{residual, out};
  note_writes(written);
  const NDArray reads[] = {gradient};
  run_task("compress a gradient", reads, written, gradient.size() * kCostOfValue,
           [codec, gradient, residual, out](TaskContext&) {
             std::vector<char> message(static_cast<size_t>(codec.message_bytes(gradient.size())));
             encode(codec, values_of(gradient), values_of(residual), message.data());
             const char* const messages = message.data();
             add_codes(codec, {&messages, 1}, values_of(out));
           });
}

}  // namespace hybridnet
