#include "library_objects.h"

namespace standin {

bool is_device_memory(World& w, const Bytes& bytes, const Context& context, const char* function,
                      const std::string& name) {
  const Allocation* allocation = allocation_of(w, bytes.begin, bytes.end - bytes.begin, function);
  if (allocation && allocation->device != context.device)
    report(std::string("wrong device: ") + function + " of device " + std::to_string(context.device) + " gets " + name +
           " of device " + std::to_string(allocation->device));
  return allocation && allocation->device == context.device;
}

}  // namespace standin
