// Broadcasting and reductions compared with plain index arithmetic, over many shapes.
#include "kernels/elementwise/broadcast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "hybridnet/runtime.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/select.h"
#include "kernels/reduce/reduce.h"

namespace hybridnet::kernels {
namespace {

// Flat index into an array of `shape` for the flat index `i` into `out`, by NumPy's rule.
int64_t source(const Shape& out, const Shape& shape, int64_t i) {
  int64_t index = 0, step = 1;
  for (int axis = out.ndim() - 1; axis >= 0; --axis) {
    const int64_t at = i % out[axis];
    i /= out[axis];
    const int own = axis - (out.ndim() - shape.ndim());
    if (own < 0) continue;
    index += shape[own] == 1 ? 0 : at * step;
    step *= shape[own];
  }
  return index;
}

std::vector<float> numbers(int64_t n, int seed) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = uniform(generator);
  return v;
}

struct Case {
  Shape a, b, out;
};

TEST(Broadcast, AgreesWithIndexArithmetic) {
  const std::vector<Case> cases = {
      {{3, 4}, {3, 4}, {3, 4}},
      {{3, 4}, {4}, {3, 4}},
      {{3, 1}, {1, 4}, {3, 4}},
      {{2, 3, 4}, {3, 1}, {2, 3, 4}},
      {{2, 3, 100}, {3, 1}, {2, 3, 100}},
      {{1}, {5, 7}, {5, 7}},
      {{700, 3}, {3}, {700, 3}},
      {{700, 3}, {700, 1}, {700, 3}},
      {{2, 1, 5, 1}, {1, 3, 1, 6}, {2, 3, 5, 6}},
      {{4, 1, 90}, {1, 5, 90}, {4, 5, 90}},
      {Shape::scalar(), {2, 2}, {2, 2}},
      {{1, 1}, {1, 1}, {1, 1}},
      {{6, 40, 50}, {40, 1}, {6, 40, 50}},
      {{300, 200}, {300, 1}, {300, 200}},
      {{0, 4}, {1, 4}, {0, 4}},
      {{2, 3, 2, 3}, {3, 1, 3}, {2, 3, 2, 3}},
  };
  for (const Case& c : cases) {
    const std::vector<float> a = numbers(c.a.size(), 1), b = numbers(c.b.size(), 2);
    for (const bool swapped : {false, true}) {
      std::vector<float> out(static_cast<size_t>(c.out.size()));
      const auto &x = swapped ? b : a, &y = swapped ? a : b;
      const Shape &xs = swapped ? c.b : c.a, &ys = swapped ? c.a : c.b;
      apply_broadcast(loops(Pointwise::kSub), DType::kFloat32, x.data(), xs, y.data(), ys, out.data(), c.out);
      for (int64_t i = 0; i < c.out.size(); ++i) {
        ASSERT_EQ(out[static_cast<size_t>(i)],
                  x[static_cast<size_t>(source(c.out, xs, i))] - y[static_cast<size_t>(source(c.out, ys, i))])
            << c.a.str() << " with " << c.b.str() << " at " << i;
      }
    }
    std::vector<float> copy(static_cast<size_t>(c.out.size()));
    broadcast_copy(b.data(), c.b, 4, copy.data(), c.out);
    for (int64_t i = 0; i < c.out.size(); ++i)
      ASSERT_EQ(copy[static_cast<size_t>(i)], b[static_cast<size_t>(source(c.out, c.b, i))]) << c.b.str();
  }
}

// The reference result: in long double, element by element.
std::vector<long double> reference(Reduction r, const std::vector<double>& in, const Shape& shape, uint32_t axes) {
  Shape kept = shape;
  for (int i = 0; i < shape.ndim(); ++i)
    if (axes >> i & 1u) kept[i] = 1;
  const long double start = r == Reduction::kProd  ? 1
                            : r == Reduction::kMax ? -INFINITY
                            : r == Reduction::kMin ? INFINITY
                                                   : 0;
  std::vector<long double> out(static_cast<size_t>(kept.size()), start);
  for (int64_t i = 0; i < shape.size(); ++i) {
    long double& o = out[static_cast<size_t>(source(shape, kept, i))];
    const long double x = in[static_cast<size_t>(i)];
    switch (r) {
      case Reduction::kProd:
        o *= x;
        break;
      case Reduction::kMax:
        o = std::max(o, x);
        break;
      case Reduction::kMin:
        o = std::min(o, x);
        break;
      case Reduction::kSumAbs:
        o += std::fabs(x);
        break;
      case Reduction::kSumSquares:
        o += x * x;
        break;
      default:
        o += x;
    }
  }
  return out;
}

TEST(Reduce, AgreesWithThePlainWayOverAllAxes) {
  Runtime::get();  // owns the storage
  const std::vector<Shape> shapes = {{7},        {3, 4},       {2, 3, 4},    {5, 1, 6},  {100, 3},
                                     {3, 1000},  {4, 5, 600},  {70000},      {2, 40000}, {40000, 2},
                                     {9000, 17}, {3, 700, 40}, {2, 3, 4, 5}, {1, 1},     Shape::scalar()};
  for (const Shape& shape : shapes) {
    std::vector<double> x(static_cast<size_t>(shape.size()));
    std::mt19937 generator(3);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& v : x) v = static_cast<float>(uniform(generator));
    const std::vector<float> x32(x.begin(), x.end());
    for (uint32_t axes = 0; axes < (1u << shape.ndim()); ++axes) {
      for (const Reduction r :
           {Reduction::kSum, Reduction::kMax, Reduction::kMin, Reduction::kSumAbs, Reduction::kSumSquares}) {
        const std::vector<long double> want = reference(r, x, shape, axes);
        std::vector<float> got(want.size());
        std::vector<double> got64(want.size());
        reduce(r, Finish::kNone, DType::kFloat32, x32.data(), shape, axes, DType::kFloat32, got.data());
        reduce(r, Finish::kNone, DType::kFloat64, x.data(), shape, axes, DType::kFloat64, got64.data());
        for (size_t i = 0; i < want.size(); ++i) {
          const auto expected = static_cast<double>(want[i]);
          ASSERT_NEAR(got[i], expected, 1e-6 + 1e-7 * std::fabs(expected))
              << shape.str() << " axes " << axes << " at " << i;
          ASSERT_NEAR(got64[i], expected, 1e-12 + 1e-14 * std::fabs(expected))
              << shape.str() << " axes " << axes << " at " << i;
        }
      }
    }
  }
}

TEST(Reduce, OfNothing) {
  Runtime::get();  // owns the storage
  std::vector<float> out(3, -7);
  reduce(Reduction::kSum, Finish::kNone, DType::kFloat32, nullptr, {0, 3}, 1, DType::kFloat32, out.data());
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0}));
  reduce(Reduction::kProd, Finish::kNone, DType::kFloat32, nullptr, {3, 0}, 2, DType::kFloat32, out.data());
  EXPECT_EQ(out, (std::vector<float>{1, 1, 1}));
  reduce(Reduction::kSum, Finish::kDivide, DType::kFloat32, nullptr, {3, 0}, 2, DType::kFloat32, out.data());
  for (float v : out) EXPECT_TRUE(std::isnan(v));
  std::vector<int32_t> ints(3, -7);
  reduce(Reduction::kSum, Finish::kDivide, DType::kInt32, nullptr, {3, 0}, 2, DType::kInt32, ints.data());
  EXPECT_EQ(ints, (std::vector<int32_t>{0, 0, 0}));
}

TEST(Reduce, NaNWinsWhereverItIs) {
  Runtime::get();  // owns the storage
  for (const int64_t n : {3, 16, 33, 1000, 70000}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<float> row(static_cast<size_t>(n), 1.0f);
      row[static_cast<size_t>(at)] = std::nanf("");
      float most = 0;
      std::vector<float> columns(static_cast<size_t>(2 * n), 1.0f), least(static_cast<size_t>(n));
      columns[static_cast<size_t>(n + at)] = std::nanf("");
      reduce(Reduction::kMax, Finish::kNone, DType::kFloat32, row.data(), {n}, 1, DType::kFloat32, &most);
      reduce(Reduction::kMin, Finish::kNone, DType::kFloat32, columns.data(), {2, n}, 1, DType::kFloat32, least.data());
      EXPECT_TRUE(std::isnan(most)) << n << " at " << at;
      for (int64_t i = 0; i < n; ++i)
        EXPECT_EQ(std::isnan(least[static_cast<size_t>(i)]), i == at) << n << " at " << at;
    }
  }
}

TEST(Reduce, NaN) {
  Runtime::get();  // owns the storage
  const float nan = std::nanf("");
  const std::vector<float> x = {1, nan, 3, 4, 5, 6};
  std::vector<float> out(2);
  reduce(Reduction::kMax, Finish::kNone, DType::kFloat32, x.data(), {2, 3}, 2, DType::kFloat32, out.data());
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 6);
  reduce(Reduction::kNansum, Finish::kNone, DType::kFloat32, x.data(), {2, 3}, 2, DType::kFloat32, out.data());
  EXPECT_EQ(out, (std::vector<float>{4, 15}));
  reduce(Reduction::kNanprod, Finish::kNone, DType::kFloat32, x.data(), {2, 3}, 2, DType::kFloat32, out.data());
  EXPECT_EQ(out, (std::vector<float>{3, 120}));
}

TEST(Reduce, IntegersAndHalves) {
  Runtime::get();  // owns the storage
  const std::vector<int8_t> x = {100, 100, 100, -128};
  std::vector<int8_t> wrapped(1);
  std::vector<int64_t> wide(1);
  reduce(Reduction::kSum, Finish::kNone, DType::kInt8, x.data(), {4}, 1, DType::kInt64, wide.data());
  EXPECT_EQ(wide[0], 172);
  reduce(Reduction::kSum, Finish::kDivide, DType::kInt8, x.data(), {4}, 1, DType::kInt8, wrapped.data());
  EXPECT_EQ(wrapped[0], 43);
  std::vector<float16> halves(5000, float16(0.25f)), sum(1);
  reduce(Reduction::kSum, Finish::kNone, DType::kFloat16, halves.data(), {5000}, 1, DType::kFloat16, sum.data());
  EXPECT_EQ(float(sum[0]), 1250);
  std::vector<bfloat16> columns(600, bfloat16(2.0f)), out(3);
  reduce(Reduction::kSum, Finish::kNone, DType::kBFloat16, columns.data(), {200, 3}, 1, DType::kBFloat16, out.data());
  for (bfloat16 v : out) EXPECT_EQ(float(v), 400);
}

TEST(Reduce, SameBitsForAnyNumberOfThreads) {
  Runtime::get();  // owns the storage
  const std::vector<Shape> shapes = {{1000003}, {1000, 1003}, {3, 400, 777}, {200000, 5}};
  for (const Shape& shape : shapes) {
    std::vector<float> x = numbers(shape.size(), 11);
    for (uint32_t axes = 1; axes < (1u << shape.ndim()); ++axes) {
      std::vector<float> one, many;
      for (const int cores : {1, 2, 4}) {
        const CoreScope scope(cores);
        std::vector<float>& out = cores == 1 ? one : many;
        out.assign(static_cast<size_t>(shape.size()), 0);
        reduce(Reduction::kSum, Finish::kNone, DType::kFloat32, x.data(), shape, axes, DType::kFloat32, out.data());
        if (cores != 1) {
          ASSERT_EQ(one, many) << shape.str() << " axes " << axes;
        }
      }
    }
  }
}

TEST(Select, TakesXWhereTheConditionIsNotZero) {
  const std::vector<float> condition = {0, 1, -0.0f, std::nanf(""), 0.1f};
  const std::vector<int64_t> x = {1, 2, 3, 4, 5}, y = {-1, -2, -3, -4, -5};
  std::vector<int64_t> out(5);
  select(DType::kFloat32, condition.data(), 8, x.data(), y.data(), out.data(), 5);
  EXPECT_EQ(out, (std::vector<int64_t>{-1, 2, -3, 4, 5}));
}

}  // namespace
}  // namespace hybridnet::kernels
