// Random numbers in memory of a device, with the CPU's bits (float64 normal numbers: up to the functions of libm). They
// run on device::current(), which must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels::on_device {

// kernels/random/bernoulli.h
void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask);
// kernels/random/normal.h; begin is even.
void fill_normal(RngKey key, float mean, float deviation, int64_t begin, int64_t n, float* out);
void fill_normal(RngKey key, double mean, double deviation, int64_t n, double* out);
// Floating numbers in [low, high).
void fill_uniform(RngKey key, DType dtype, double low, double high, int64_t n, void* out);

// out = in * factor for elements that are kept with probability `keep`, else 0. mask, a byte for each element, receives
// the choices; it may be null.
void drop(RngKey key, double keep, double factor, DType dtype, const void* in, int64_t n, uint8_t* mask, void* out);
// The same with the choices in mask.
void apply_mask(double factor, DType dtype, const void* in, const uint8_t* mask, int64_t n, void* out);

}  // namespace hybridnet::kernels::on_device
