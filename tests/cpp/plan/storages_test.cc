// The values of a graph that may be sparse, and the gradients that may contain some rows only.
#include "plan/storages.h"

#include <gtest/gtest.h>

#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

constexpr StorageType kDense = StorageType::kDefault, kCsr = StorageType::kCsr, kRows = StorageType::kRowSparse;

bool none(const Node&) { return false; }

struct LinearModel {
  const NodeEntry x = var("x"), w = var("w");
  const NodeEntry scaled = use("relu", {x}), product = use("dot", {scaled, w}), y = use("tanh", {product});
  const GraphDefinition graph{{x.node, w.node}, {y}};
};

TEST(Storages, FunctionsKeepStorageAndProductsAreDense) {
  const LinearModel model;
  const StorageType inputs[] = {kCsr, kDense};
  const GraphStorages known = infer_storages(model.graph, inputs, none);
  EXPECT_EQ(known.of(model.scaled), kCsr);
  EXPECT_EQ(known.of(model.product), kDense);
  EXPECT_EQ(known.have_form, (std::set<const Node*>{model.scaled.node.get(), model.product.node.get()}));
}

TEST(Storages, NothingIsSparseInAGraphOfDenseInputs) {
  const LinearModel model;
  const GraphStorages known = infer_storages(model.graph, {}, none);
  EXPECT_TRUE(known.sparse.empty());
  EXPECT_TRUE(known.have_form.empty());
}

TEST(Storages, ResultsOfOperatorsWithoutAFormAreDense) {
  const NodeEntry x = var("x"), y = use("cos", {x}), z = use("relu", {y});
  const StorageType inputs[] = {kRows};
  const GraphStorages known = infer_storages({{x.node}, {z}}, inputs, none);
  EXPECT_EQ(known.of(y), kDense);
  EXPECT_TRUE(known.have_form.empty());
}

TEST(Storages, NodesThatReadDenseValuesHaveNoForm) {
  const LinearModel model;
  const StorageType inputs[] = {kCsr, kDense};
  const auto relu_reads_dense = [&](const Node& node) { return &node == model.scaled.node.get(); };
  const GraphStorages known = infer_storages(model.graph, inputs, relu_reads_dense);
  EXPECT_EQ(known.of(model.scaled), kDense);
  EXPECT_TRUE(known.have_form.empty());
}

TEST(Storages, GradientsOfFactorsBesideCsrAreByRows) {
  const LinearModel model;
  const StorageType csr[] = {kCsr, kRows}, dense[] = {kDense, kDense};
  EXPECT_EQ(gradients_by_rows(model.graph, csr), (std::vector<bool>{false, true}));
  EXPECT_EQ(gradients_by_rows(model.graph, dense), (std::vector<bool>{false, false}));
}

TEST(Storages, AFurtherUseOrAnOutputMakesAGradientDense) {
  const LinearModel model;
  const StorageType csr[] = {kCsr, kRows};
  const NodeEntry used = use("sum", {model.w});
  EXPECT_EQ(gradients_by_rows({model.graph.inputs, {model.y, used}}, csr)[1], false);
  EXPECT_EQ(gradients_by_rows({model.graph.inputs, {model.y, model.w}}, csr)[1], false);
}

}  // namespace
}  // namespace hybridnet::graph_testing
