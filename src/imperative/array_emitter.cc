#include "imperative/array_emitter.h"

namespace hybridnet {

Values ArrayEmitter::emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) {
  NDArray arrays[kMaxStackArrays];
  std::vector<NDArray> more;
  std::span<const NDArray> in;
  if (inputs.size() <= kMaxStackArrays) {
    for (size_t i = 0; i < inputs.size(); ++i) arrays[i] = to_array(inputs[i]);
    in = {arrays, inputs.size()};
  } else {
    for (const Value& v : inputs) more.push_back(to_array(v));
    in = more;
  }
  std::vector<NDArray> results;
  invoke_into(op, params, in, {.out = {}, .share_views = share_views_}, &results);
  Values values(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    values[i] = to_value(results[i]);
    made(in, results[i]);
  }
  return values;
}

TensorSpec ArrayEmitter::spec(const Value& v) const { return to_array(v).spec(); }

}  // namespace hybridnet
