// Elements of the matrices and images of the libraries' stand-ins, as float64.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

enum class Element : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 14 };  // cudaDataType_t

size_t bytes_of(Element element);  // 0: none of the above
double load(Element element, uint64_t array, int64_t at);
void store(Element element, uint64_t array, int64_t at, double value);  // rounded to nearest even
double as_tf32(double value);                                           // 10 bits after the leading one

}  // namespace standin
