#include "imperative/device_copies.h"

#include "imperative/invoke.h"
#include "imperative/tape.h"
#include "ndarray/device_work.h"

namespace hybridnet {
namespace {

class DeviceCopyFunction final : public RecordedFunction {
 public:
  explicit DeviceCopyFunction(Device source) : source_(source) {}
  std::string name() const override { return "copy between devices"; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    if (!out_grads[0]) return {NDArray()};
    return {create_graph ? copied_to_device(out_grads[0], source_) : copy_on(out_grads[0], source_)};
  }
  bool returns_fresh_arrays() const override { return true; }

 private:
  const Device source_;
};

void record_copy(const NDArray& from, const NDArray& to) {
  if (autograd_state().recording)
    record(Ref<RecordedFunction>(new DeviceCopyFunction(from.device())), {&from, 1}, {&to, 1});
}

}  // namespace

NDArray copied_to_device(const NDArray& array, Device device) {
  const NDArray copy = copy_on(array, device);
  record_copy(array, copy);
  return copy;
}

void copy_into_device(const NDArray& from, const NDArray& to) {
  note_overwrite(to);
  copy_between_devices(from, to);
  record_copy(from, to);
}

}  // namespace hybridnet
