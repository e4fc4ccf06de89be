// Image operations for data loaders, on NumPy arrays of shape (height, width, channels). Callers check arguments.
#include <pybind11/numpy.h>

#include "casters.h"
#include "kernels/image/host_images.h"

namespace hybridnet::python {
namespace {

template <typename T>
using Dense = py::array_t<T, py::array::c_style | py::array::forcecast>;
using Bytes = Dense<uint8_t>;
using Floats = Dense<float>;

// Releasing the GIL makes threads wait for each other; below this many elements that takes longer than the work.
constexpr int64_t kLeastElementsWithoutGil = 1 << 14;

template <typename F>
void computing(int64_t elements, F&& work) {
  if (elements < kLeastElementsWithoutGil) return work();
  const ReleaseGil release(false);
  work();
}

ImageShape image_shape(const py::array& image) {
  if (image.ndim() != 3)
    raise(ErrorKind::kShape, {.input = "image", .expected = "3 axes", .given = std::to_string(image.ndim())});
  return {image.shape(0), image.shape(1), image.shape(2)};
}

py::array resize(const py::array& given, int64_t width, int64_t height, int method) {
  const auto image = py::array::ensure(given, py::array::c_style);
  const ImageShape shape = image_shape(image);
  const DType dtype = dtype_from(image.dtype().ptr());
  py::array result(image.dtype(), std::vector<py::ssize_t>{height, width, shape.channels});
  void* to = result.mutable_data();
  computing(std::max(shape.elements(), height * width * shape.channels),
            [&] { resize_image(image.data(), dtype, shape, height, width, static_cast<Interpolation>(method), to); });
  return result;
}

py::array warp(const Bytes& image, const std::array<double, 6>& source, int64_t width, int64_t height, int method,
               int fill) {
  const ImageShape shape = image_shape(image);
  Bytes result({height, width, shape.channels});
  uint8_t* to = result.mutable_data();
  double map[6];
  std::copy(source.begin(), source.end(), map);
  computing(height * width * shape.channels, [&] {
    warp_image(image.data(), shape, map, height, width, static_cast<Interpolation>(method), static_cast<uint8_t>(fill),
               to);
  });
  return result;
}

py::array hls(const Bytes& image, int hue, int lightness, int saturation) {
  const ImageShape shape = image_shape(image);
  Bytes result({shape.height, shape.width, shape.channels});
  uint8_t* to = result.mutable_data();
  computing(shape.elements(),
            [&] { shift_hls(image.data(), shape.height * shape.width, hue, lightness, saturation, to); });
  return result;
}

template <typename T>
Dense<T> like(const Dense<T>& image) {
  return Dense<T>(std::vector<py::ssize_t>(image.shape(), image.shape() + image.ndim()));
}

template <typename T>
py::array colors(const Dense<T>& image, const std::array<float, 9>& rows, const std::array<float, 3>& add) {
  Dense<T> result = like(image);
  T* to = result.mutable_data();
  float matrix[9], offset[3];
  std::copy(rows.begin(), rows.end(), matrix);
  std::copy(add.begin(), add.end(), offset);
  computing(image.size(), [&] { map_colors(image.data(), image.size() / 3, matrix, offset, to); });
  return result;
}

template <typename T>
py::array scaled(const Dense<T>& image, float factor, float offset) {
  Dense<T> result = like(image);
  T* to = result.mutable_data();
  computing(image.size(), [&] { scale_values(image.data(), image.size(), factor, offset, to); });
  return result;
}

void planes(const Bytes& image, const Floats& mean, float factor, float offset, const Floats& scale,
            py::array_t<float>& out) {
  const ImageShape shape = image_shape(image);
  if (out.ndim() != 3 || out.shape(0) != shape.channels || out.shape(1) != shape.height || out.shape(2) != shape.width)
    raise(ErrorKind::kShape, {.input = "image", .expected = "the size of the batch", .given = "another size"});
  float* to = out.mutable_data();
  computing(shape.elements(), [&] {
    image_to_planes(image.data(), shape, mean.data(), mean.ndim() == 3, factor, offset, scale.data(), to);
  });
}

}  // namespace

void bind_host_images(py::module_& m) {
  m.def("image_resize", &resize, "Any numeric image at another size.");
  m.def("image_warp", &warp, "A uint8 image under an affine map, which is given from the result to the image.");
  m.def("image_shift_hls", &hls, "Numbers added to hue, lightness and saturation of a uint8 image.");
  m.def("image_map_colors", &colors<uint8_t>, "A matrix and an offset for red, green and blue; uint8.");
  m.def("image_map_float_colors", &colors<float>, "The same for float32.");
  m.def("image_scale", &scaled<uint8_t>, "factor * v + offset, rounded and clipped; uint8.");
  m.def("image_scale_floats", &scaled<float>, "factor * v + offset; float32.");
  m.def("image_to_planes", &planes, "((v - mean) * factor + offset) * scale of a uint8 image into float32 (C, H, W).");
}

}  // namespace hybridnet::python
