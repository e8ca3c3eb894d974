// For the runtime: what is done element by element between DequantizeLinear and QuantizeLinear of
// bytes, whatever it is, is a function of 256 codes: ByteTable of ai.tombolo. The table is what the
// reference kernels give.

#include <map>
#include <numeric>

#include "ops/tombolo/elementwise.h"
#include "passes/codes.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

class Table {
 public:
  Table(Rewriter& rewriter, Node& quantize) : r_(rewriter), q_(quantize) {}

  bool rewrite() {
    const DType dtype = r_.dtype(q_.output(0));
    if (!is_byte(dtype) || r_.dtype(q_.input(0)) != DType::kFloat32) return false;
    const auto result = linear(q_, numbers(q_.input(0), 0));
    if (!result || result->dtype() != dtype || result->size() != 256) return false;
    // A constant of more axes would give the result more axes.
    if (!r_.rank(codes_) || r_.rank(codes_) != r_.rank(q_.output(0))) return false;
    const int64_t dims[] = {256};
    Value* table = r_.initializer(q_.graph(), result->reshaped(dims), "table");
    Node& made = r_.add(q_, "ByteTable", {codes_, table}, q_.output(0)->name(), 1, kOwn);
    r_.touch(made);
    r_.supersede(*q_.output(0), *made.output(0));
    return true;
  }

 private:
  static constexpr int kDeepest = 16;

  /// The first output of `node` on these.
  std::optional<Tensor> run(const Node& node, std::span<const std::optional<Tensor>> given) {
    std::vector<RunValue> held(given.size());
    std::vector<const RunValue*> inputs(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) continue;
      held[i] = *given[i];
      inputs[i] = &held[i];
    }
    auto outputs = evaluate(r_, node, inputs, 1 << 20);
    if (!outputs || !(*outputs)[0].is_tensor()) return std::nullopt;
    return (*outputs)[0].tensor();
  }

  /// DequantizeLinear or QuantizeLinear, of one scale for all elements, on `x`.
  std::optional<Tensor> linear(const Node& node, const std::optional<Tensor>& x) {
    const AttributeReader attributes(node);
    if (!x || attributes.get_int("block_size", 0) != 0) return std::nullopt;
    std::vector<std::optional<Tensor>> given = {x};
    for (size_t i = 1; i < node.inputs().size(); ++i) {
      given.emplace_back();
      if (node.input(i) == nullptr) continue;
      const Tensor* one = r_.constant(node.input(i));
      if (one == nullptr || one->size() != 1 || one->rank() > 1) return std::nullopt;
      given.back() = one->reshaped({});  // which says that it is for all
    }
    return run(node, given);
  }

  /// What `value` is for each code, if it is a function of them alone.
  std::optional<Tensor> numbers(const Value* value, int depth) {
    if (value == nullptr || depth > kDeepest) return std::nullopt;
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    Node* node = value->producer();
    if (node == nullptr || &node->graph() != &q_.graph() || r_.dtype(value) != DType::kFloat32)
      return std::nullopt;
    std::optional<Tensor> result = dequantised(*node);
    if (!result && r_.is(node, node->op_type()) && node->outputs().size() == 1 &&
        ops::find_elementwise(std::string_view(node->op_type())) != nullptr) {
      std::vector<std::optional<Tensor>> given;
      bool any = false;
      for (const Value* input : node->inputs()) {
        given.emplace_back();
        if (input == nullptr) continue;
        const Tensor* one = r_.constant(input);
        given.back() = one == nullptr     ? numbers(input, depth + 1)
                       : one->size() == 1 ? std::optional<Tensor>(*one)
                                          : std::nullopt;
        if (!given.back()) return std::nullopt;
        any |= one == nullptr;
      }
      if (any) result = run(*node, given);
    }
    known_[value] = result;
    return result;
  }

  std::optional<Tensor> dequantised(Node& node) {
    if (!r_.is(&node, "DequantizeLinear")) return std::nullopt;
    const DType dtype = r_.dtype(node.input(0));
    if (!is_byte(dtype) || r_.is_constant(node.input(0)) ||
        (codes_ != nullptr && codes_ != node.input(0)))
      return std::nullopt;
    codes_ = node.input(0);
    std::vector<uint8_t> all(256);
    std::iota(all.begin(), all.end(), uint8_t{0});
    const int64_t dims[] = {256};
    if (dtype == DType::kUInt8) return linear(node, Tensor::of<uint8_t>(dtype, dims, all));
    return linear(node,
                  Tensor::of<int8_t>(dtype, dims, std::vector<int8_t>(all.begin(), all.end())));
  }

  Rewriter& r_;
  Node& q_;
  Value* codes_ = nullptr;  ///< what all is a function of
  std::map<const Value*, std::optional<Tensor>> known_;
};

}  // namespace

Result<size_t> byte_tables(Rewriter& rewriter) {
  const size_t count =
      change_each_quantise(rewriter, [&](Node& node) { return Table(rewriter, node).rewrite(); });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
