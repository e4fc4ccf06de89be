#include "imperative/one_device.h"

#include "hybridnet/error.h"

namespace hybridnet {

void throw_devices_apart(const Op& op, std::span<const NDArray> inputs, std::span<const NDArray> out) {
  const Device home = inputs.empty() ? out[0].device() : inputs[0].device();
  const auto elsewhere = [&](const NDArray& a) { return !(a.device() == home); };
  const auto found = std::find_if(inputs.begin(), inputs.end(), elsewhere);
  const bool is_input = found != inputs.end();
  const auto other = is_input ? found : std::find_if(out.begin(), out.end(), elsewhere);
  throw ValueError({.op = op.name,
                    .input = is_input ? op.input_name(nullptr, static_cast<int>(found - inputs.begin())) : "out",
                    .expected = "arrays on one device, " + home.str(),
                    .given = "one on " + other->device().str(),
                    .fix = "copy it there: x.as_in_context(mx." + home.str() + ")"});
}

}  // namespace hybridnet
