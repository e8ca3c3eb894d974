#include "base/block_cache.h"

#include <gtest/gtest.h>

#include "base/sanitizer.h"

namespace tombolo {
namespace {

TEST(BlockCache, KeepsByWhatMemoryThereIs) {
  if (kAddressSanitizer) GTEST_SKIP() << "keeps nothing, so that a use after free is seen";
  constexpr size_t kSize = size_t{100} << 20;
  drop_kept_blocks();
  const auto keeps = [](uint64_t memory) {
    size_block_cache(memory);
    const Block block = take_block(kSize);
    EXPECT_NE(block.data, nullptr);
    give_block(block);
    const size_t kept = kept_block_bytes();
    drop_kept_blocks();
    return kept >= kSize;
  };
  EXPECT_TRUE(keeps(uint64_t{1} << 40));
  EXPECT_FALSE(keeps(uint64_t{1} << 30));
  EXPECT_EQ(kept_block_bytes(), 0u);
}

}  // namespace
}  // namespace tombolo
