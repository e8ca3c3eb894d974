#include "runtime/arena_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace tombolo {

namespace {

constexpr size_t kAlign = 64;
constexpr size_t kTail = 64;  ///< a kernel may read (not write) one vector beyond the end

size_t rounded(size_t bytes) { return (bytes + kTail + kAlign - 1) / kAlign * kAlign; }

/// In order of time, with a list of free ranges: for very many blocks.
size_t place_in_time(std::vector<ArenaBlock>& blocks) {
  std::vector<size_t> by_first(blocks.size()), by_last(blocks.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  by_last = by_first;
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
  std::stable_sort(by_last.begin(), by_last.end(),
                   [&](size_t a, size_t b) { return blocks[a].last < blocks[b].last; });
  std::map<size_t, size_t> free;  // offset -> bytes
  size_t total = 0, done = 0;
  for (size_t at : by_first) {
    ArenaBlock& block = blocks[at];
    for (; done < by_last.size() && blocks[by_last[done]].last < block.first; ++done) {
      const ArenaBlock& dead = blocks[by_last[done]];
      auto [entry, inserted] = free.emplace(dead.offset, rounded(dead.bytes));
      if (auto next = std::next(entry);
          next != free.end() && entry->first + entry->second == next->first) {
        entry->second += next->second;
        free.erase(next);
      }
      if (entry != free.begin())
        if (auto before = std::prev(entry); before->first + before->second == entry->first) {
          before->second += entry->second;
          free.erase(entry);
        }
    }
    const size_t need = rounded(block.bytes);
    auto best = free.end();
    for (auto range = free.begin(); range != free.end(); ++range)
      if (range->second >= need && (best == free.end() || range->second < best->second))
        best = range;
    if (best == free.end()) {
      block.offset = total;
      total += need;
      continue;
    }
    block.offset = best->first;
    if (best->second > need) free.emplace(best->first + need, best->second - need);
    free.erase(best);
  }
  return total;
}

}  // namespace

size_t place_blocks(std::vector<ArenaBlock>& blocks) {
  constexpr size_t kManyBlocks = 3000;
  if (blocks.size() > kManyBlocks) return place_in_time(blocks);
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const ArenaBlock*> placed;  // by offset
  size_t total = 0;
  for (size_t at : order) {
    ArenaBlock& block = blocks[at];
    const size_t need = rounded(block.bytes);
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (const ArenaBlock* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (other->offset > end && other->offset - end >= need && other->offset - end < best_gap) {
        best = end;
        best_gap = other->offset - end;
      }
      end = std::max(end, other->offset + rounded(other->bytes));
    }
    block.offset = best != SIZE_MAX ? best : end;
    total = std::max(total, block.offset + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &block,
                                   [](const ArenaBlock* a, const ArenaBlock* b) {
                                     return a->offset < b->offset;
                                   }),
                  &block);
  }
  return total;
}

}  // namespace tombolo
