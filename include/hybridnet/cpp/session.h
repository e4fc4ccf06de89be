// A model with arrays bound to its inputs and outputs, for predictions that allocate nothing:
//
//   Session session(model, {Array::zeros({1, 3, 224, 224})});
//   session.input(0).copy_from(pixels);
//   session.run();
//   auto scores = session.output(0).values<float>();
//
// One session serves one thread; a model may have many.
#pragma once

#include "hybridnet/cpp/model.h"

namespace hybridnet::cpp {

// Binds the calling thread to cores[0] and the threads that help it to the others, until it ends; {}: it may run
// anywhere again. Runs of sessions use these cores. Throws ValueError for cores that the process does not have.
inline void pin_thread(const std::vector<int>& cores) { detail::check(hn_pin_thread(cores.size(), cores.data())); }

class Session {
 public:
  // outputs: the arrays that runs write; empty: new ones are made. All arrays lie on the model's device.
  Session(const Model& model, std::vector<Array> inputs, std::vector<Array> outputs = {})
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    const std::vector<HnArray> in = detail::handles(inputs_), out = detail::handles(outputs_);
    HnSession handle = nullptr;
    detail::check(
        hn_session_create(model.get(), in.size(), in.data(), out.size(), out.empty() ? nullptr : out.data(), &handle));
    handle_ = {handle, &hn_session_free};
    for (size_t i = outputs_.size(); i < model.output_names().size(); ++i) {
      HnArray array = nullptr;
      detail::check(hn_session_output(handle, i, &array));
      outputs_.emplace_back(array);
    }
  }
  const Array& input(size_t index) const { return inputs_.at(index); }
  const Array& output(size_t index) const { return outputs_.at(index); }
  void run() const { detail::check(hn_session_run(handle_.get())); }

 private:
  std::vector<Array> inputs_, outputs_;
  std::shared_ptr<HnSession_> handle_;
};

}  // namespace hybridnet::cpp
