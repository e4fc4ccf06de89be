// The interface of objects that are notified of writes to data that the engine orders.
#pragma once

namespace hybridnet {

class WriteListener {
 public:
  // Called at the end of a write, on the thread that wrote, before any other access may begin.
  virtual void on_write() noexcept = 0;

 protected:
  ~WriteListener() = default;
};

}  // namespace hybridnet
