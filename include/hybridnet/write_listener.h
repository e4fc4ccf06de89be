// What is notified when data that the engine orders was written.
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
