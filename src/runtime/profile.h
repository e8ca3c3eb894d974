#pragma once

// What a profiled run tells of its nodes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/run_value.h"

namespace tombolo {

class Node;
struct Frame;
struct NodePlan;

struct ProfileEvent {
  const Node* node = nullptr;
  const char* kernel = "";  ///< the row's name, or "reference"
  uint64_t begin_ns = 0, end_ns = 0;
  int depth = 0;                               ///< of graphs within graphs
  uint64_t live_bytes = 0;                     ///< of tensors after the node, in the process
  uint64_t read_bytes = 0, written_bytes = 0;  ///< of its inputs and outputs
  uint64_t operations = 0;                     ///< by its meaning (runtime/cost.h), when asked for
  std::string inputs, outputs;                 ///< types and shapes, when asked for
};

/// Gathers the events of one run at a time, in the order in which nodes end.
struct Profile {
  bool shapes = false;
  std::vector<ProfileEvent> events;
  int depth = 0;
  /// Called after every node of the main graph for each of its outputs; null: not called.
  void (*observe)(void* user, const Node& node, size_t output, const RunValue& value) = nullptr;
  void* user = nullptr;

  /// Whether somebody looks at every value.
  static bool observed(const Profile* profile) {
    return profile != nullptr && profile->observe != nullptr;
  }
};

/// Times one node, or several in a row that run as one: these are named by the last one.
class ProfileScope {
 public:
  ProfileScope(Profile& profile, const Frame& frame, std::span<const NodePlan> nodes,
               const char* kernel);
  ~ProfileScope();
  /// After the node: takes note of it. `main`: it belongs to the main graph.
  void finish(bool main);

 private:
  Profile& profile_;
  const Frame& frame_;
  std::span<const NodePlan> nodes_;
  ProfileEvent event_;
};

uint64_t now_ns();

}  // namespace tombolo
