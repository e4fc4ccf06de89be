// Parameters that deformable convolutions share with the operators of their gradients.
#pragma once

#include "base/checked_size.h"
#include "hybridnet/op.h"
#include "kernels/conv/deformable.h"

namespace hybridnet::ops {

// The positions of kernel points before offsets displace them.
struct TapGeometry {
  Tuple kernel, stride, dilate, pad;  // two numbers each, or empty for the default
  int32_t num_deformable_group = 1;

  static int64_t at(const Tuple& t, int axis, int64_t otherwise) { return t.ndim() == 2 ? t[axis] : otherwise; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t out_size(int axis, int64_t size) const {
    if (size == kUnknownDim) return kUnknownDim;
    const int64_t span = checked_plus(checked_times(at(dilate, axis, 1), kernel[axis] - 1), 1, "dilate");
    return (checked_plus(size, checked_times(2, at(pad, axis, 0)), "pad") - span) / at(stride, axis, 1) + 1;
  }
  kernels::DeformableSampling sampling(const Shape& image, int64_t out_height, int64_t out_width) const {
    kernels::DeformableSampling s;
    s.batch = image[0];
    s.channels = image[1];
    s.height = image[2];
    s.width = image[3];
    s.out_height = out_height;
    s.out_width = out_width;
    s.kernel_h = kernel[0];
    s.kernel_w = kernel[1];
    s.stride_h = at(stride, 0, 1);
    s.stride_w = at(stride, 1, 1);
    s.dilate_h = at(dilate, 0, 1);
    s.dilate_w = at(dilate, 1, 1);
    s.pad_h = at(pad, 0, 0);
    s.pad_w = at(pad, 1, 0);
    s.groups = num_deformable_group;
    return s;
  }
};

// A field of P that is a member of a base class of P.
template <typename P, typename M, typename B>
auto base_field(ParamSchema<P>& schema, const char* name, M B::*member) {
  return schema.field(name, static_cast<M P::*>(member));
}

template <typename P>
void describe_taps(ParamSchema<P>& schema) {
  base_field(schema, "kernel", &P::kernel).doc("Size of the kernel, (height, width).");
  base_field(schema, "stride", &P::stride)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Stride between outputs; () is (1, 1).");
  base_field(schema, "dilate", &P::dilate)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Distance between kernel points; () is (1, 1).");
  base_field(schema, "pad", &P::pad)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Width of the padding around data; () is (0, 0).");
  base_field(schema, "num_deformable_group", &P::num_deformable_group)
      .default_value(1)
      .at_least(1)
      .doc("Groups of channels that have offsets of their own.");
}

inline void check_taps(const TapGeometry& p) {
  const auto require = [](const char* field, const Tuple& t, int64_t least, bool may_be_empty) {
    bool good = t.ndim() == 2 || (may_be_empty && t.ndim() == 0);
    for (int64_t v : t) good = good && v >= least;
    if (!good)
      throw ParamError({.input = field,
                        .expected = "two numbers of at least " + std::to_string(least) + ": height and width",
                        .given = t.str()});
  };
  require("kernel", p.kernel, 1, false);
  require("stride", p.stride, 1, true);
  require("dilate", p.dilate, 1, true);
  require("pad", p.pad, 0, true);
}

// Parameters of _deformable_columns and _deformable_spread.
struct ColumnsParams : TapGeometry {
  bool zero_border = false, along_y = false, along_x = false;
  Tuple image_shape;  // shape of the image that _deformable_spread computes
  static void describe(ParamSchema<ColumnsParams>& schema) {
    describe_taps(schema);
    schema.field("zero_border", &ColumnsParams::zero_border)
        .default_value(false)
        .doc("Whether the image is surrounded by zeros; else its last row and column extend to the edge.");
    schema.field("along_y", &ColumnsParams::along_y)
        .default_value(false)
        .doc("Whether the values are differentiated by the points' y.");
    schema.field("along_x", &ColumnsParams::along_x)
        .default_value(false)
        .doc("Whether the values are differentiated by the points' x.");
    schema.field("image_shape", &ColumnsParams::image_shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Shape of the image.");
    schema.check([](const ColumnsParams& p) { check_taps(p); });
  }
};

}  // namespace hybridnet::ops
