#include "graph/node_table.h"

#include <gtest/gtest.h>

namespace hybridnet {
namespace {

TEST(NodeTable, KeepsTheFirstValueOfEachNodeWhileItGrows) {
  std::vector<NodePtr> nodes;
  for (int i = 0; i < 1000; ++i) nodes.push_back(make_variable("x"));
  NodeTable<int> table;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(table.insert(nodes[static_cast<size_t>(i)].get(), i).second);
    EXPECT_FALSE(table.insert(nodes[static_cast<size_t>(i / 2)].get(), -1).second);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(*table.find(nodes[static_cast<size_t>(i)].get()), i);
  EXPECT_EQ(table.find(make_variable("y").get()), nullptr);
}

TEST(NodeTable, HandsOutPlacesToWriteTo) {
  const NodePtr node = make_variable("x");
  NodeTable<int> table(1);
  table.insert(node.get(), 1).first = 2;
  EXPECT_EQ(*table.find(node.get()), 2);
}

}  // namespace
}  // namespace hybridnet
