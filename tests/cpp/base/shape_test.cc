#include <gtest/gtest.h>

#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

TEST(Shape, PrintsAsPythonTuples) {
  EXPECT_EQ((Shape{2, 3}).str(), "(2, 3)");
  EXPECT_EQ((Shape{4}).str(), "(4,)");
  EXPECT_EQ(Shape::scalar().str(), "()");
  EXPECT_EQ((Shape{kUnknownDim, 3}).str(), "(?, 3)");
  EXPECT_EQ(Shape().str(), "?");
}

TEST(Shape, KnowsWhatIsUnknown) {
  EXPECT_FALSE(Shape().rank_known());
  EXPECT_FALSE(Shape().known());
  EXPECT_TRUE(Shape::unknown(2).rank_known());
  EXPECT_FALSE(Shape::unknown(2).known());
  EXPECT_TRUE(Shape::scalar().known());
  EXPECT_EQ(Shape::unknown(kUnknownNdim), Shape());
  EXPECT_EQ(Shape::unknown(1), (Shape{kUnknownDim}));
}

TEST(Shape, SizeIsTheProductOfItsRange) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(shape.size(1, 3), 12);
  EXPECT_EQ(shape.size(1, 1), 1);
  EXPECT_EQ(Shape::scalar().size(), 1);
  EXPECT_EQ((Shape{5, 0, 7}).size(), 0);
}

// Strides of shapes that contain a zero must fit into int64_t, too. This follows NumPy.
TEST(Shape, SizeBeyondAnyMemoryIsAnErrorZerosLeftOut) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THROW((Shape{kHuge, kHuge}).size(), ShapeError);
  EXPECT_THROW((Shape{kHuge, kHuge, 0}).size(), ShapeError);
  EXPECT_EQ((Shape{kHuge, 0}).size(), 0);
  EXPECT_EQ((Shape{int64_t{1} << 56}).size(), int64_t{1} << 56);
}

TEST(Shape, RefusesMoreDimensionsThanItHolds) {
  const std::vector<int64_t> dims(kMaxDims + 1, 1);
  EXPECT_THROW(Shape{std::span<const int64_t>(dims)}, ShapeError);
  EXPECT_THROW(Shape::unknown(kMaxDims + 1), ShapeError);
  Shape shape{std::span<const int64_t>(dims).first(kMaxDims)};
  EXPECT_THROW(shape.push_back(1), ShapeError);
  EXPECT_EQ(shape.ndim(), kMaxDims);
}

TEST(Shape, PushBackGivesAnUnknownShapeARank) {
  Shape shape;
  shape.push_back(3);
  EXPECT_EQ(shape, (Shape{3}));
}

TEST(Shape, EqualityComparesRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE(Shape(), Shape::scalar());
}

TEST(TensorSpec, SaysDtypeAndShape) {
  const TensorSpec spec{{2, 3}, DType::kFloat32};
  EXPECT_EQ(spec.str(), "float32(2, 3)");
  EXPECT_EQ(spec.bytes(), 24);
  EXPECT_TRUE(spec.known());
  EXPECT_FALSE(TensorSpec{}.known());
}

TEST(TensorSpec, MoreElementsThanAnyMachineAddressesAreAnError) {
  const int64_t large = int64_t{1} << 56;
  EXPECT_EQ((TensorSpec{{large}, DType::kFloat64}).bytes(), 8 * large);
  EXPECT_EQ((TensorSpec{{large, 0}, DType::kFloat64}).bytes(), 0);
  EXPECT_THROW((TensorSpec{{large + 1}, DType::kInt8}).bytes(), ShapeError);
  EXPECT_THROW((TensorSpec{{large, 2}, DType::kInt8}).bytes(), ShapeError);
  EXPECT_THROW((TensorSpec{{large, large, 256}, DType::kInt8}).bytes(), ShapeError);
  EXPECT_THROW((TensorSpec{{large, 0, large}, DType::kInt8}).bytes(), ShapeError);  // its strides would not fit
}

TEST(Device, PrintsAsUsersWriteIt) {
  EXPECT_EQ(Device{}.str(), "cpu(0)");
  EXPECT_EQ((Device{DeviceType::kGPU, 1}).str(), "gpu(1)");
}

struct Counted : RefCounted<Counted> {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  ~Counted() { --alive; }
  int& alive;
};

TEST(Ref, LastReferenceDestroys) {
  int alive = 0;
  {
    Ref<Counted> first = make_ref<Counted>(alive);
    Ref<Counted> second = first;
    EXPECT_EQ(first->ref_count(), 2);
    first = nullptr;
    EXPECT_EQ(alive, 1);
    Ref<Counted> third = Ref<Counted>::adopt(second.detach());
    EXPECT_EQ(third->ref_count(), 1);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace hybridnet
