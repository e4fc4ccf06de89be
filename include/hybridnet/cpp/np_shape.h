// NumPy's shapes: scalars of shape (), sizes of 0.
//
//   const NumpyShapes shapes;  // until the end of the block, on this thread
//   nd::sum(x).shape();        // {}
#pragma once

#include "hybridnet/cpp/error.h"

namespace hybridnet::cpp {

// While it lives, this thread uses NumPy's shapes, or MXNet's if `on` is false (hn_set_np_shape in c_api.h).
class NumpyShapes {
 public:
  explicit NumpyShapes(bool on = true) { detail::check(hn_set_np_shape(on, &before_)); }
  ~NumpyShapes() { hn_set_np_shape(before_, nullptr); }
  NumpyShapes(const NumpyShapes&) = delete;
  NumpyShapes& operator=(const NumpyShapes&) = delete;

 private:
  int before_ = 0;
};

inline bool has_numpy_shapes() {
  int on = 0;
  detail::check(hn_is_np_shape(&on));
  return on != 0;
}

}  // namespace hybridnet::cpp
