#include "runtime/batch_slices.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/images_apart.h"
#include "runtime/specialise.h"

namespace tombolo {

namespace {

/// What is known of a node before stretches are chosen.
struct Candidate {
  bool apart = false;
  int64_t bytes = 0;  ///< of one image, read and written
  int64_t least = 1;  ///< images that are worth reading the weights for
  int64_t most = 1;   ///< images that stay near
};

struct Stretch {
  std::vector<size_t> nodes;
  int64_t images = 0;
};

class Slicer {
 public:
  Slicer(const GraphPlan& plan, const InferredShapes& shapes, int64_t batch, int64_t room)
      : plan_(plan),
        shapes_(shapes),
        batch_(batch),
        room_(room),
        images_(static_cast<size_t>(plan.slot_count)) {}

  std::unique_ptr<GraphPlan> run() {
    find_candidates();
    find_order();
    if (stretches_ == 0) return nullptr;
    return derived();
  }

 private:
  static size_t index(int slot) { return static_cast<size_t>(slot); }
  bool is_images(const ValueRef& ref) const {
    return ref.constant == nullptr && ref.slot >= 0 && images_[index(ref.slot)] != 0;
  }

  /// Bytes of one image of a batch; nothing where `value` is none.
  std::optional<int64_t> image_bytes(const Value& value) const {
    const auto dims = shapes_.dims(value);
    if (!dims || dims->empty() || (*dims)[0] != batch_) return std::nullopt;
    const auto width = static_cast<int64_t>(bytes_of(shapes_.type(value)->elem));
    const int64_t count = element_count(*dims);
    if (width == 0 || count <= 0 || shapes_.type(value)->elem == DType::kString)
      return std::nullopt;
    return count / batch_ * width;
  }

  void find_candidates() {
    const auto& inputs = plan_.graph->inputs();
    for (size_t i = 0; i < plan_.inputs.size() && i < inputs.size(); ++i)
      images_[index(plan_.inputs[i])] = plan_.defaults[i] == nullptr && image_bytes(*inputs[i]);
    for (const NodePlan& node : plan_.nodes) candidates_.push_back(candidate(node));
  }

  Candidate candidate(const NodePlan& node) {
    if (node.function != nullptr || node.subgraphs || node.bound) return {};
    BatchedNode batched{*node.node, {}, {}};
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    int64_t bytes = 0, weights = 0;
    for (size_t i = 0; i < refs.size(); ++i) {
      BatchedNode::Input input;
      const Value* value = node.node->input(i);
      input.present = value != nullptr;
      if (input.present) {
        const auto dims = shapes_.dims(*value);
        if (!dims) return {};
        input.dims = *dims;
        input.images = is_images(refs[i]);
        if (refs[i].constant != nullptr) {
          if (!refs[i].constant->is_tensor()) return {};
          input.constant = &refs[i].constant->tensor();
          weights += input.constant->size() *
                     static_cast<int64_t>(std::max<size_t>(bytes_of(input.constant->dtype()), 1));
        } else if ((node.values >> std::min<size_t>(i, 31) & 1) != 0) {
          return {};  // its values may decide on the kernel
        }
        if (input.images) bytes += image_bytes(*value).value_or(0);
      }
      batched.inputs.push_back(std::move(input));
    }
    for (size_t i = 0; i < node.node->outputs().size(); ++i) {
      const Value* value = node.node->output(i);
      if (value == nullptr) continue;
      const auto image = image_bytes(*value);
      if (!image) return {};
      bytes += *image;
      if (i == 0) batched.output = *shapes_.dims(*value);
    }
    if (!keeps_images_apart(batched)) return {};
    for (const int slot : plan_.outputs_of(node))
      if (slot >= 0) images_[index(slot)] = 1;
    Candidate made;
    made.apart = true;
    made.bytes = std::max<int64_t>(bytes, 1);
    made.least = std::clamp<int64_t>((weights + made.bytes - 1) / made.bytes, 1, batch_);
    made.most = std::clamp<int64_t>(room_ / made.bytes, 1, batch_);
    return made;
  }

  /// Takes nodes in order: those that cannot be cut and do not need the stretch go before it, those
  /// that need it behind.
  void find_order() {
    constexpr int kRounds = 32;
    std::vector<size_t> pending(plan_.nodes.size());
    for (size_t i = 0; i < pending.size(); ++i) pending[i] = i;
    for (int round = 0; round < kRounds && !pending.empty(); ++round) {
      std::vector<size_t> before, after;
      Stretch stretch;
      std::vector<uint8_t> inside(images_.size()), behind(images_.size());
      int64_t least = 1, most = batch_, largest = 0;
      for (const size_t at : pending) {
        const NodePlan& node = plan_.nodes[at];
        const Candidate& candidate = candidates_[at];
        const bool late = reads(node, behind);
        const bool joins = !late && candidate.apart &&
                           std::max(least, candidate.least) <= std::min(most, candidate.most);
        if (joins) {
          least = std::max(least, candidate.least);
          most = std::min(most, candidate.most);
          largest = std::max(largest, candidate.bytes);
          stretch.nodes.push_back(at);
          mark(node, inside);
        } else if (late || reads(node, inside)) {
          after.push_back(at);
          mark(node, behind);
        } else {
          before.push_back(at);
        }
      }
      if (stretch.nodes.empty()) break;
      if (stretch.nodes.size() == 1 || most >= batch_ || largest * batch_ <= 2 * room_) {
        for (const size_t at : stretch.nodes) candidates_[at].apart = false;
        continue;
      }
      for (const size_t at : before) order_.push_back({{at}, 0});
      stretch.images = most;
      order_.push_back(std::move(stretch));
      ++stretches_;
      pending = std::move(after);
    }
    for (const size_t at : pending) order_.push_back({{at}, 0});
  }

  bool reads(const NodePlan& node, const std::vector<uint8_t>& marked) const {
    for (const ValueRef& ref : plan_.inputs_of(node))
      if (ref.constant == nullptr && ref.slot >= 0 && ref.depth == 0 &&
          marked[index(ref.slot)] != 0)
        return true;
    return false;
  }
  void mark(const NodePlan& node, std::vector<uint8_t>& marked) const {
    for (const int slot : plan_.outputs_of(node))
      if (slot >= 0) marked[index(slot)] = 1;
  }

  std::unique_ptr<GraphPlan> derived() const {
    auto made = std::make_unique<GraphPlan>();
    made->graph = plan_.graph;
    made->slot_count = plan_.slot_count;
    made->inputs = plan_.inputs;
    made->defaults = plan_.defaults;
    made->chosen_by = plan_.chosen_by;
    made->outputs = plan_.outputs;
    for (const Stretch& part : order_) {
      if (part.images == 0)
        copy(plan_.nodes[part.nodes[0]], *made);
      else
        add_stretch(part, *made);
    }
    finish_plan(*made);
    return made;
  }

  /// A copy of the node, its inputs and outputs in the lists of `into`.
  NodePlan& copy(const NodePlan& node, GraphPlan& into) const {
    NodePlan made = node;
    made.index = static_cast<uint32_t>(into.nodes.size());
    const auto refs = plan_.inputs_of(node);
    const auto slots = plan_.outputs_of(node);
    made.inputs = {static_cast<uint32_t>(into.refs.size()), node.inputs.count};
    into.refs.insert(into.refs.end(), refs.begin(), refs.end());
    made.outputs = {static_cast<uint32_t>(into.slots.size()), node.outputs.count};
    into.slots.insert(into.slots.end(), slots.begin(), slots.end());
    into.nodes.push_back(made);
    return into.nodes.back();
  }

  /// The slots that nodes outside of the stretch, or the caller, read.
  std::vector<uint8_t> read_outside(const Stretch& stretch) const {
    std::vector<uint8_t> inside(plan_.nodes.size()), read(images_.size());
    for (const size_t at : stretch.nodes) inside[at] = 1;
    auto note = [&](const ValueRef& ref) {
      if (ref.constant == nullptr && ref.slot >= 0 && ref.depth == 0) read[index(ref.slot)] = 1;
    };
    for (size_t at = 0; at < plan_.nodes.size(); ++at)
      if (inside[at] == 0)
        for (const ValueRef& ref : plan_.inputs_of(plan_.nodes[at])) note(ref);
    for (const ValueRef& ref : plan_.outputs) note(ref);
    return read;
  }

  void add_stretch(const Stretch& stretch, GraphPlan& into) const {
    auto body = std::make_unique<GraphPlan>();
    body->graph = plan_.graph;
    std::vector<int> place(images_.size(), -1);
    std::vector<int> batches, shared;  // slots of the plan that the stretch reads
    std::vector<uint8_t> written(images_.size());
    for (const size_t at : stretch.nodes) {
      for (const ValueRef& ref : plan_.inputs_of(plan_.nodes[at])) {
        if (ref.constant != nullptr || ref.slot < 0 || written[index(ref.slot)] != 0) continue;
        std::vector<int>& list = is_images(ref) ? batches : shared;
        if (std::find(list.begin(), list.end(), ref.slot) == list.end()) list.push_back(ref.slot);
      }
      mark(plan_.nodes[at], written);
    }
    auto new_slot = [&](int slot) { return place[index(slot)] = body->slot_count++; };
    for (const auto* list : {&batches, &shared})
      for (const int slot : *list) {
        body->inputs.push_back(new_slot(slot));
        body->defaults.push_back(nullptr);
        body->chosen_by.push_back(false);
      }
    for (const size_t at : stretch.nodes) {
      const NodePlan& node = copy(plan_.nodes[at], *body);
      for (uint32_t i = 0; i < node.inputs.count; ++i)
        if (ValueRef& ref = body->refs[node.inputs.begin + i];
            ref.constant == nullptr && ref.slot >= 0)
          ref.slot = place[index(ref.slot)];
      for (uint32_t i = 0; i < node.outputs.count; ++i)
        if (int& slot = body->slots[node.outputs.begin + i]; slot >= 0) slot = new_slot(slot);
    }

    NodePlan call;
    call.node = plan_.nodes[stretch.nodes[0]].node;
    call.slice = body.get();
    call.images = stretch.images;
    call.batches = static_cast<uint32_t>(batches.size());
    call.index = static_cast<uint32_t>(into.nodes.size());
    call.inputs = {static_cast<uint32_t>(into.refs.size()),
                   static_cast<uint32_t>(batches.size() + shared.size())};
    for (const auto* list : {&batches, &shared})
      for (const int slot : *list) into.refs.push_back({nullptr, 0, slot});
    const std::vector<uint8_t> outside = read_outside(stretch);
    call.outputs.begin = static_cast<uint32_t>(into.slots.size());
    for (const size_t at : stretch.nodes)
      for (const int slot : plan_.outputs_of(plan_.nodes[at])) {
        if (slot < 0 || outside[index(slot)] == 0) continue;
        into.slots.push_back(slot);
        body->outputs.push_back({nullptr, 0, place[index(slot)]});
        ++call.outputs.count;
      }
    finish_plan(*body);
    into.nodes.push_back(call);
    into.slices.push_back(std::move(body));
  }

  const GraphPlan& plan_;
  const InferredShapes& shapes_;
  const int64_t batch_;
  const int64_t room_;           ///< bytes of images that a node takes at a time
  std::vector<uint8_t> images_;  ///< by slot: a batch whose images are computed apart
  std::vector<Candidate> candidates_;
  std::vector<Stretch> order_;  ///< of no images: one node as it is
  int stretches_ = 0;
};

}  // namespace

int64_t batch_room(int threads) {
  // What second caches hold a good part of, and a shared one all: 1 to 8 MiB make little difference
  // to two threads. More threads need more pixels at a time.
  return int64_t{std::max(threads, 2)} << 21;
}

int64_t batch_of(const std::vector<RunValue>& inputs) {
  int64_t batch = 0;
  for (const RunValue& input : inputs) {
    if (!input.is_tensor() || input.tensor().rank() == 0) continue;
    if (batch != 0 && batch != input.tensor().dim(0)) return 0;
    batch = input.tensor().dim(0);
  }
  return batch;
}

std::unique_ptr<GraphPlan> slice_batch(const GraphPlan& plan, const InferredShapes& shapes,
                                       int64_t batch, int64_t room) {
  if (batch < 2 || !plan.subgraphs.empty() || !plan.own_slots) return nullptr;
  return Slicer(plan, shapes, batch, room).run();
}

}  // namespace tombolo
