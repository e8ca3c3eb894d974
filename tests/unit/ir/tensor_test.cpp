// Tensors of text, and parts of tensors.

#include "ir/tensor.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace tombolo {
namespace {

TEST(Tensors, TextsComeEmptyFromMemoryThatHadOthers) {
  const int64_t dims[] = {5000}, fewer[] = {4900};
  for (int round = 0; round < 3; ++round) {
    auto texts = Tensor::allocate(DType::kString, round == 1 ? fewer : dims);
    ASSERT_TRUE(texts);
    ASSERT_EQ(static_cast<int64_t>(texts->strings().size()), texts->size());
    for (std::string& text : texts->strings()) {
      ASSERT_TRUE(text.empty());
      text = "a text that is longer than what lies within one";
    }
  }
}

TEST(Tensors, PartsShareTheBuffer) {
  const int64_t numbers[] = {1, 2, 3, 4, 5, 6};
  const Tensor all = Tensor::int64s(numbers);
  const int64_t dims[] = {2}, three[] = {3};
  const Tensor part = all.part(3, dims);
  EXPECT_EQ(part.data<int64_t>(), all.data<int64_t>() + 3);
  EXPECT_EQ(part, Tensor::int64s(std::span(numbers).subspan(3, 2)));
  const Tensor texts = Tensor::of_strings(three, {"a", "b", "c"});
  EXPECT_EQ(texts.part(1, dims), Tensor::of_strings(dims, {"b", "c"}));
}

}  // namespace
}  // namespace tombolo
