// Einsum that is a MatMul becomes one where at most the last two axes of an operand are exchanged;
// next to a Softmax any axes, so that attention is recognised.
//
// For the runtime: Einsum of two operands becomes one MatMul between Transposes, which it takes
// into itself where rows stay in one piece (fuse_epilogues.cpp). What stands alone in one operand
// is summed first. Of several labels that one operand has, one is that of the rows or columns and
// the others are a batch for which the other side repeats; where such products would be small they
// are joined by Reshape. Labels that stand side by side everywhere are joined first. Of more
// operands the first two become one, which keeps the labels that the others or the output have. A
// label that an operand has several times is its diagonal: every so manyth element of those axes as
// one. Where one length may be 1 and the other more, Expand makes them equal, which leaves what is
// equal where it lies.

#include <algorithm>
#include <string>
#include <vector>

#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

class Einsum {
 public:
  Einsum(Rewriter& rewriter, Node& node) : rewriter_(rewriter), node_(node) {
    for (size_t i = 0; i < 2 && i < node.inputs().size(); ++i) operands_[i] = node.input(i);
  }

  /// Of the standard's operators alone, and nothing that others would have to move.
  size_t to_matmul() {
    if (!rewriter_.is(&node_, "Einsum") || !read() || terms_.size() != 2 ||
        !std::all_of(terms_.begin(), terms_.end(), letters_once) ||
        !is_float(rewriter_.dtype(node_.input(0))))
      return 0;
    sort_labels();
    const std::string shared = batch_ + common_;
    if (common_.size() != 1 || left_.empty() || right_.size() != 1 ||
        (left_.size() != 1 && !batch_.empty()) ||
        terms_[0].size() != shared.size() + left_.size() || terms_[1].size() != shared.size() + 1 ||
        !std::all_of(shared.begin(), shared.end(), [&](char label) { return agree(label); }))
      return 0;
    // Columns of the output are of the side that has its last label.
    const size_t first = contains(left_, out_.back()) && left_.size() == 1 ? 1 : 0;
    const std::string &rows = first == 0 ? left_ : right_, &columns = first == 0 ? right_ : left_;
    const std::string a = batch_ + rows + common_, b = batch_ + common_ + columns,
                      y = batch_ + rows + columns;
    const auto nearly = [](const std::string& term, std::string wanted) {
      if (term == wanted) return true;
      std::swap(wanted[wanted.size() - 2], wanted[wanted.size() - 1]);
      return term == wanted;
    };
    const bool plain = nearly(terms_[first], a) && nearly(terms_[1 - first], b) && out_ == y;
    if (!plain && (left_.size() != 1 || !beside_softmax())) return 0;
    Value* const left = transpose(node_.input(first), terms_[first], a, false);
    Value* const right = transpose(node_.input(1 - first), terms_[1 - first], b, false);
    Node& product = rewriter_.add(node_, "MatMul", {left, right}, name());
    rewriter_.touch(product);
    rewriter_.supersede(*node_.output(0), *transpose(product.output(0), y, out_));
    return 1;
  }

  size_t expand() {
    if (!rewriter_.is(&node_, "Einsum") || !read()) return 0;
    if (!std::all_of(terms_.begin(), terms_.end(), letters_once)) return diagonals();
    if (terms_.size() == 1) return turn();
    for (const Value* input : node_.inputs())
      if (!multiplied(rewriter_.dtype(input))) return 0;
    if (terms_.size() > 2) return first_two();
    sort_labels();
    if (common_.empty()) return outer_product();
    if (left_.size() > 1 || right_.size() > 1 || common_.size() > 1)
      if (const size_t joined = join_neighbours(); joined != 0) return joined;
    // Axes of a batch may be 1 in one operand, as MatMul takes them, where they stay what they are.
    const bool reshapes = left_.size() != 1 || right_.size() != 1 || common_.size() != 1;
    make_agree((reshapes ? batch_ : std::string()) + common_);
    if (left_.empty() && right_.empty() && rewriter_.dtype(node_.input(0)) != DType::kFloat32)
      return sums_of_products();
    if (const size_t done = batched_product(); done != 0) return done;

    Value* a = operand(0, batch_ + left_ + common_, left_, common_, reshapes);
    Value* b = operand(1, batch_ + common_ + right_, common_, right_, reshapes);
    Node& product = rewriter_.add(node_, "MatMul", {a, b}, name());
    rewriter_.touch(product);
    Value* y = product.output(0);
    std::string now = batch_ + left_ + right_;
    if (reshapes) y = reshape(y, axes_of(now));
    y = transpose(y, now, out_);
    rewriter_.supersede(*node_.output(0), *y);
    return 1;
  }

 private:
  static constexpr int64_t kUnknownLength = 64;

  static bool contains(const std::string& text, char label) {
    return text.find(label) != std::string::npos;
  }
  Text name() const { return node_.output(0)->name(); }
  static std::vector<std::string> axes_of(const std::string& labels) {
    std::vector<std::string> axes;
    for (const char label : labels) axes.emplace_back(1, label);
    return axes;
  }

  /// Labels by where they stand.
  void sort_labels() {
    for (const char label : terms_[0]) {
      if (!contains(terms_[1], label)) {
        if (contains(out_, label)) left_ += label;
      } else {
        (contains(out_, label) ? batch_ : common_) += label;
      }
    }
    for (const char label : terms_[1])
      if (!contains(terms_[0], label) && contains(out_, label)) right_ += label;
    // As the output has them: then it need not be turned.
    const auto by_output = [&](char a, char b) { return out_.find(a) < out_.find(b); };
    for (std::string* group : {&batch_, &left_, &right_})
      std::sort(group->begin(), group->end(), by_output);
  }

  /// Whether this is a product of attention: its scores, or what they weigh.
  bool beside_softmax() const {
    const auto any_of = [&](const Node* node, std::initializer_list<Text> ops) {
      return std::any_of(ops.begin(), ops.end(), [&](Text op) { return rewriter_.is(node, op); });
    };
    for (const Value* input : node_.inputs()) {
      const Node* node = input->producer();
      if (any_of(node, {"Where", "Cast"})) {
        const Value* inside = node->inputs().empty() ? nullptr : node->inputs().back();
        node = inside != nullptr ? inside->producer() : nullptr;
      }
      if (any_of(node, {"Softmax"})) return true;
    }
    constexpr int kSteps = 5;
    const Value* value = node_.output(0);
    for (int i = 0; i < kSteps && Rewriter::single_use(value); ++i) {
      const Node* user = value->uses()[0].node;
      if (any_of(user, {"Softmax"})) return true;
      if (!any_of(user, {"Mul", "Div", "Add", "Sub", "Where", "Reshape", "Cast"})) return false;
      value = user->output(0);
    }
    return false;
  }

  /// Nothing is summed: both operands with all axes of the output, multiplied.
  size_t outer_product() {
    make_agree(batch_);
    Value* sides[2];
    for (size_t i = 0; i < 2; ++i) {
      std::string order;
      std::vector<int64_t> missing;
      for (size_t j = 0; j < out_.size(); ++j) {
        if (contains(terms_[i], out_[j]))
          order += out_[j];
        else
          missing.push_back(static_cast<int64_t>(j));
      }
      if (order.size() != terms_[i].size()) return 0;
      sides[i] = transpose(operands_[i], terms_[i], order);
      if (missing.empty()) continue;
      Node& wide = rewriter_.add(
          node_, "Unsqueeze",
          {sides[i], rewriter_.ints_initializer(node_.graph(), missing, name())}, name());
      rewriter_.touch(wide);
      sides[i] = wide.output(0);
    }
    Node& product = rewriter_.add(node_, "Mul", {sides[0], sides[1]}, name());
    rewriter_.touch(product);
    rewriter_.supersede(*node_.output(0), *product.output(0));
    return 1;
  }

  /// Label `b` stands behind `a` wherever one of them stands.
  bool neighbours(char a, char b) const {
    const auto in = [&](const std::string& text) {
      const size_t at = text.find(a);
      return at == std::string::npos ? !contains(text, b) : text.find(b) == at + 1;
    };
    return in(terms_[0]) && in(terms_[1]) && in(out_);
  }

  /// The axes of a term, each of which may be of several labels.
  std::vector<std::string> joined_axes(const std::string& term) const {
    std::vector<std::string> axes;
    const auto of_a_kind = [&](char a, char b) {
      return std::any_of(std::begin(kinds_), std::end(kinds_), [&](const std::string* kind) {
        return contains(*kind, a) && contains(*kind, b);
      });
    };
    for (size_t i = 0; i < term.size(); ++i) {
      if (i > 0 && of_a_kind(term[i - 1], term[i]) && neighbours(term[i - 1], term[i]))
        axes.back() += term[i];
      else
        axes.emplace_back(1, term[i]);
    }
    return axes;
  }

  /// The same of fewer labels, where some that would be joined stand side by side: nothing has to
  /// be moved for that.
  size_t join_neighbours() {
    const std::vector<std::string> axes[] = {joined_axes(terms_[0]), joined_axes(terms_[1]),
                                             joined_axes(out_)};
    if (axes[0].size() == terms_[0].size() && axes[1].size() == terms_[1].size()) return 0;
    make_agree(batch_ + common_);
    std::string names[3];
    for (size_t i = 0; i < 3; ++i)
      for (const std::string& axis : axes[i]) names[i] += axis[0];
    Value* operands[2];
    for (size_t i = 0; i < 2; ++i)
      operands[i] =
          axes[i].size() == terms_[i].size() ? operands_[i] : reshape(operands_[i], axes[i]);
    Node& made = rewriter_.add(node_, "Einsum", {operands[0], operands[1]}, name());
    made.set_string("equation", names[0] + "," + names[1] + "->" + names[2]);
    rewriter_.touch(made);
    Value* y = made.output(0);
    if (axes[2].size() != out_.size()) y = reshape(y, axes_of(out_));
    rewriter_.supersede(*node_.output(0), *y);
    return 1;
  }

  /// The label of the longest axis, of equals the last in the output. What is not known is long.
  char longest(const std::string& labels) const {
    const auto length_or_long = [&](char label) { return length(label).value_or(kUnknownLength); };
    return *std::max_element(labels.begin(), labels.end(), [&](char a, char b) {
      const int64_t la = length_or_long(a), lb = length_or_long(b);
      return la != lb ? la < lb : out_.find(a) < out_.find(b);
    });
  }

  /// Rows and columns are of one label each; whatever else the output has is the batch.
  size_t batched_product() {
    if (left_.empty() || right_.empty() || common_.size() != 1) return 0;
    // The output's rows are in one piece if the right side has its last label. Not where both sides
    // would have to be turned for it.
    size_t first = 0;
    std::string lefts = left_, rights = right_;
    if (contains(left_, out_.back()) &&
        (terms_[1].back() == common_[0] || terms_[0].back() == out_.back())) {
      std::swap(lefts, rights);
      first = 1;
    }
    const auto contiguous = [](const std::string& term, const std::string& kind) {
      return contains(kind, term.back()) ? term.back() : '\0';
    };
    char row = contiguous(terms_[first], lefts);
    if (row == '\0') row = longest(lefts);
    char column = contiguous(out_, rights);
    if (column == '\0') column = contiguous(terms_[1 - first], rights);
    if (column == '\0') column = longest(rights);
    // Small products take longer than what it takes to join labels; but for the last one of the
    // output, which would move all of it.
    constexpr int64_t kFewRows = 16;
    const auto few = [&](char label) { return length(label).value_or(kUnknownLength) < kFewRows; };
    if ((rights.size() > 1 && (first == 0 || few(row) || few(column))) ||
        (lefts.size() > 1 && few(row)))
      return 0;
    std::string outer;
    for (const char label : out_)
      if (label != row && label != column) outer += label;
    Value* a = side_of_batch(first, outer, {row, common_[0]}, false);
    Value* b = side_of_batch(1 - first, outer, {common_[0], column}, true);
    Node& product = rewriter_.add(node_, "MatMul", {a, b}, name());
    rewriter_.touch(product);
    Value* y = transpose(product.output(0), outer + row + column, out_);
    rewriter_.supersede(*node_.output(0), *y);
    return 1;
  }

  /// Operand `index` with axes `outer`, of which it has some only as ones, then `matrix`. `packed`:
  /// its matrices are packed, turned or not.
  Value* side_of_batch(size_t index, const std::string& outer, const std::string& matrix,
                       bool packed) {
    std::string labels;
    Value* x = sum_of_alone(index, outer + matrix, labels);
    std::string order, ones;
    for (const char label : outer) {
      const bool has = contains(labels, label);
      if (has || !order.empty()) order += label;
      if (!has && !order.empty()) ones += label;
    }
    if (!ones.empty()) {
      std::vector<int64_t> axes;
      for (size_t i = 0; i < ones.size(); ++i) axes.push_back(static_cast<int64_t>(i));
      Node& wide = rewriter_.add(
          node_, "Unsqueeze", {x, rewriter_.ints_initializer(node_.graph(), axes, name())}, name());
      rewriter_.touch(wide);
      x = wide.output(0);
    }
    return transpose(x, ones + labels, order + matrix, packed);
  }

  /// One number for each of a batch: no work for a product of matrices that is made for many.
  size_t sums_of_products() {
    const std::string order = batch_ + common_;
    Node& product = rewriter_.add(
        node_, "Mul", {operand(0, order, "", "", false), operand(1, order, "", "", false)}, name());
    rewriter_.touch(product);
    std::vector<int64_t> last;
    for (size_t i = batch_.size(); i < order.size(); ++i) last.push_back(static_cast<int64_t>(i));
    Node& sum = rewriter_.add(
        node_, "ReduceSum",
        {product.output(0), rewriter_.ints_initializer(node_.graph(), last, name())}, name());
    sum.set_int("keepdims", 0);
    rewriter_.touch(sum);
    rewriter_.supersede(*node_.output(0), *sum.output(0));
    return 1;
  }

  /// One operand whose labels come back in another order, but for those that are summed.
  size_t turn() {
    const std::string &from = terms_[0], &to = out_;
    std::string left;
    std::vector<int64_t> summed;
    for (size_t i = 0; i < from.size(); ++i) {
      if (contains(to, from[i]))
        left += from[i];
      else
        summed.push_back(static_cast<int64_t>(i));
    }
    if (left.size() != to.size()) return 0;
    Value* x = node_.input(0);
    if (!summed.empty()) {
      if (!multiplied(rewriter_.dtype(x))) return 0;
      Node& sum =
          rewriter_.add(node_, "ReduceSum",
                        {x, rewriter_.ints_initializer(node_.graph(), summed, name())}, name());
      sum.set_int("keepdims", 0);
      rewriter_.touch(sum);
      x = sum.output(0);
    }
    rewriter_.supersede(*node_.output(0), *transpose(x, left, to));
    return 1;
  }

  /// Types whose products have fast kernels.
  static bool multiplied(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
           dtype == DType::kInt64;
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  /// Terms and output as letters, each once in the output; the axes of an ellipsis get letters that
  /// the equation does not use.
  bool read() {
    std::string equation(AttributeReader(node_).get_string("equation", ""));
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t arrow = equation.find("->");
    std::string unused;
    for (const char first : {'a', 'A'})
      for (char c = first; c < first + 26; ++c)
        if (!contains(equation, c)) unused += c;
    const std::string inputs = equation.substr(0, arrow);
    for (size_t from = 0; from <= inputs.size();) {
      const size_t comma = std::min(inputs.find(',', from), inputs.size());
      terms_.push_back(inputs.substr(from, comma - from));
      from = comma + 1;
    }
    if (terms_.size() != node_.inputs().size()) return false;
    size_t longest = 0;  // ellipsis
    for (size_t i = 0; i < terms_.size(); ++i) {
      const auto rank = rewriter_.rank(node_.input(i));
      const size_t dots = terms_[i].find("...");
      const size_t letters = terms_[i].size() - (dots == std::string::npos ? 0 : 3);
      if (!rank || *rank == 0 || *rank < letters || *rank - letters > unused.size()) return false;
      longest = std::max(longest, *rank - letters);
      // Counted from its last axis.
      if (dots != std::string::npos) terms_[i].replace(dots, 3, axes(unused, *rank - letters));
      if (terms_[i].size() != *rank || !all_letters(terms_[i])) return false;
    }
    if (arrow != std::string::npos) {
      out_ = equation.substr(arrow + 2);
      const size_t dots = out_.find("...");
      if ((dots == std::string::npos) != (equation.find("...") >= arrow)) return false;
      if (dots != std::string::npos) out_.replace(dots, 3, axes(unused, longest));
    } else {
      // The ellipsis, then what stands once, by its letter.
      out_ = axes(unused, longest);
      for (char c = 'A'; c <= 'z'; ++c)
        if (std::count(inputs.begin(), inputs.end(), c) == 1 && is_letter(c)) out_ += c;
    }
    if (!letters_once(out_)) return false;
    return std::all_of(out_.begin(), out_.end(), [&](char label) {
      return std::any_of(terms_.begin(), terms_.end(),
                         [&](const std::string& term) { return contains(term, label); });
    });
  }
  static std::string axes(const std::string& unused, size_t count) {
    std::string labels = unused.substr(0, count);
    std::reverse(labels.begin(), labels.end());
    return labels;
  }
  static bool all_letters(const std::string& term) {
    return std::all_of(term.begin(), term.end(), is_letter);
  }
  static bool letters_once(const std::string& term) {
    for (size_t i = 0; i < term.size(); ++i)
      if (!is_letter(term[i]) || term.find(term[i], i + 1) != std::string::npos) return false;
    return true;
  }

  /// The same of operands in which each label stands once.
  size_t diagonals() {
    std::vector<Value*> operands;
    std::string equation;
    for (size_t i = 0; i < terms_.size(); ++i)
      if (!has_diagonals(i)) return 0;
    for (size_t i = 0; i < terms_.size(); ++i) {
      std::string term = terms_[i];
      operands.push_back(diagonal(i, term));
      equation += (i == 0 ? "" : ",") + term;
    }
    Node& made = rewriter_.add(node_, "Einsum", operands, name());
    made.set_string("equation", equation + "->" + out_);
    rewriter_.touch(made);
    rewriter_.supersede(*node_.output(0), *made.output(0));
    return 1;
  }
  /// Whether the lengths that diagonal() needs are known, and those of a label are equal.
  bool has_diagonals(size_t index) const {
    const std::string& term = terms_[index];
    if (letters_once(term)) return true;
    const SymShape* shape = rewriter_.shape(node_.input(index));
    if (shape == nullptr) return false;
    for (size_t i = 0; i < term.size(); ++i)
      if (!(*shape)[i].is_value() || (*shape)[i].value() < 1 ||
          (*shape)[i].value() != (*shape)[term.find(term[i])].value())
        return false;
    return true;
  }
  /// Operand `index` with one axis for each label of `term`, which loses the others.
  Value* diagonal(size_t index, std::string& term) {
    Value* x = node_.input(index);
    if (letters_once(term)) return x;
    const SymShape& shape = *rewriter_.shape(x);
    std::string gathered;  // equal labels side by side, where the first stands
    std::vector<int64_t> perm, joined, starts, ends, steps, axes;
    std::string labels;
    for (size_t i = 0; i < term.size(); ++i) {
      if (contains(labels, term[i])) continue;
      const int64_t length = shape[i].value();
      int64_t all = 1, step = 0;
      for (size_t j = i; j < term.size(); ++j) {
        if (term[j] != term[i]) continue;
        perm.push_back(static_cast<int64_t>(j));
        gathered += term[j];
        step += all;
        all *= length;
      }
      if (all != length || step > 1) {
        axes.push_back(static_cast<int64_t>(labels.size()));
        starts.push_back(0);
        ends.push_back(all);
        steps.push_back(step);
      }
      joined.push_back(all);
      labels += term[i];
    }
    x = transpose_by(x, term, gathered, perm);
    const auto ints = [&](const std::vector<int64_t>& values) {
      return rewriter_.ints_initializer(node_.graph(), values, name());
    };
    Node& one_axis = rewriter_.add(node_, "Reshape", {x, ints(joined)}, name());
    rewriter_.touch(one_axis);
    Node& taken = rewriter_.add(
        node_, "Slice", {one_axis.output(0), ints(starts), ints(ends), ints(axes), ints(steps)},
        name());
    rewriter_.touch(taken);
    term = labels;
    return taken.output(0);
  }

  /// The first two operands become one.
  size_t first_two() {
    std::string rest = out_, equation;
    for (size_t i = 2; i < terms_.size(); ++i) rest += terms_[i];
    // As MatMul gives them: what both have, what the first has, what the second has.
    std::string kept;
    for (const bool both : {true, false})
      for (const size_t term : {size_t(0), size_t(1)})
        for (const char label : terms_[term])
          if (contains(rest, label) && contains(terms_[1 - term], label) == both &&
              !contains(kept, label))
            kept += label;
    if (kept.empty()) return 0;
    constexpr int64_t kMost = int64_t{1} << 26;  // elements
    int64_t elements = 1;
    for (const char label : kept) {
      elements *= std::max<int64_t>(length(label).value_or(1), 1);
      if (elements > kMost) return 0;
    }
    Node& pair =
        rewriter_.add(node_, "Einsum", {node_.input(0), node_.input(1)}, node_.input(0)->name());
    pair.set_string("equation", terms_[0] + "," + terms_[1] + "->" + kept);
    rewriter_.touch(pair);
    std::vector<Value*> operands = {pair.output(0)};
    equation = kept;
    for (size_t i = 2; i < terms_.size(); ++i) {
      operands.push_back(node_.input(i));
      equation += "," + terms_[i];
    }
    Node& made = rewriter_.add(node_, "Einsum", operands, name());
    made.set_string("equation", equation + "->" + out_);
    rewriter_.touch(made);
    rewriter_.supersede(*node_.output(0), *made.output(0));
    return 1;
  }

  const SymDim* dim(size_t operand, char label) const {
    const SymShape* shape = rewriter_.shape(node_.input(operand));
    const size_t at = terms_[operand].find(label);
    return shape == nullptr || at == std::string::npos ? nullptr : &(*shape)[at];
  }
  /// Both operands have one length here: one of them may not be 1 where the other is more.
  bool agree(char label) const {
    const SymDim *a = dim(0, label), *b = dim(1, label);
    return a == nullptr || b == nullptr || a->equals(*b);
  }
  /// Makes both operands as long as the longer one along these labels.
  void make_agree(const std::string& labels) {
    Value* const given[] = {operands_[0], operands_[1]};
    constexpr int64_t kOne[] = {1};
    for (size_t i = 0; i < 2; ++i) {
      std::string widened;
      for (const char label : labels) {
        const SymDim *own = dim(i, label), *other = dim(1 - i, label);
        const bool long_enough =
            (own->is_value() && own->value() != 1) || (other->is_value() && other->value() == 1);
        if (!agree(label) && !long_enough) widened += label;
      }
      if (widened.empty()) continue;
      std::vector<Value*> lengths;
      for (const char label : terms_[i])
        lengths.push_back(contains(widened, label)
                              ? length_of(given[1 - i], terms_[1 - i], label)
                              : rewriter_.ints_initializer(node_.graph(), kOne, name()));
      Node& list = rewriter_.add(node_, "Concat", lengths, name());
      list.set_int("axis", 0);
      rewriter_.touch(list);
      Node& wide = rewriter_.add(node_, "Expand", {given[i], list.output(0)}, name());
      rewriter_.touch(wide);
      operands_[i] = wide.output(0);
    }
  }
  std::optional<int64_t> length(char label) const {
    const SymDim *a = dim(0, label), *b = dim(1, label);
    const auto known = [](const SymDim* d) { return d != nullptr && d->is_value(); };
    // A 1 that meets what is not known may be widened.
    for (const SymDim* d : {a, b})
      if (known(d) && d->value() != 1) return d->value();
    if ((a == nullptr || known(a)) && (b == nullptr || known(b)) && (known(a) || known(b)))
      return 1;
    return std::nullopt;
  }
  Value* length_of(Value* x, const std::string& term, char label) {
    return rewriter_.axis_length(node_, x, static_cast<int64_t>(term.find(label)), name());
  }
  /// The length of an axis that joins these labels, as a list of one: from the shapes of what comes
  /// in where it is not known.
  Value* joined_length(const std::string& labels) {
    std::vector<int64_t> known = {1};
    Value* product = nullptr;
    const auto times = [&](Value* factor) {
      if (product == nullptr) {
        product = factor;
        return;
      }
      Node& both = rewriter_.add(node_, "Mul", {product, factor}, name());
      rewriter_.touch(both);
      product = both.output(0);
    };
    for (const char label : labels) {
      if (const auto one = length(label)) {
        known[0] *= *one;
        continue;
      }
      const size_t index = contains(terms_[0], label) ? 0 : 1;
      times(length_of(operands_[index], terms_[index], label));
    }
    if (product == nullptr || known[0] != 1)
      times(rewriter_.ints_initializer(node_.graph(), known, name()));
    return product;
  }

  /// x with axes that each join some labels.
  Value* reshape(Value* x, const std::vector<std::string>& axes) {
    std::vector<int64_t> dims;
    for (const std::string& axis : axes) {
      int64_t product = 1;
      for (const char label : axis) {
        const auto one = length(label);
        product = one && product >= 0 ? product * *one : -1;
      }
      dims.push_back(product);
    }
    Value* shape = nullptr;
    if (std::find(dims.begin(), dims.end(), -1) == dims.end()) {
      // A single column is no weight to pack: rows are multiplied by it as it lies.
      if (const Tensor* tensor = lone_constant(x); tensor != nullptr && dims.back() != 1)
        return rewriter_.initializer(node_.graph(), tensor->reshaped(dims), name());
      shape = rewriter_.ints_initializer(node_.graph(), dims, name());
    } else {
      std::vector<Value*> parts;
      for (const std::string& axis : axes) parts.push_back(joined_length(axis));
      Node& list = rewriter_.add(node_, "Concat", parts, name());
      list.set_int("axis", 0);
      rewriter_.touch(list);
      shape = list.output(0);
    }
    Node& made = rewriter_.add(node_, "Reshape", {x, shape}, name());
    if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim <= 0; }))
      made.set_int("allowzero", 1);
    rewriter_.touch(made);
    return made.output(0);
  }
  Value* transpose(Value* x, const std::string& from, const std::string& to, bool packed = true) {
    if (from == to) return x;
    std::vector<int64_t> perm;
    for (const char label : to) perm.push_back(static_cast<int64_t>(from.find(label)));
    return transpose_by(x, from, to, perm, packed);
  }
  Value* transpose_by(Value* x, const std::string& from, const std::string& to,
                      const std::vector<int64_t>& perm, bool packed = true) {
    if (from == to) return x;
    if (Value* constant = transposed_constant(x, perm, packed)) return constant;
    Node& made = rewriter_.add(node_, "Transpose", {x}, name());
    made.set_ints("perm", perm);
    rewriter_.touch(made);
    return made.output(0);
  }

  /// A weight that nobody else reads is turned once, unless packing turns it.
  Value* transposed_constant(const Value* x, const std::vector<int64_t>& perm, bool packed) {
    const Tensor* tensor = lone_constant(x);
    if (tensor == nullptr) return nullptr;
    const size_t rank = perm.size();
    std::vector<int64_t> turned(rank);
    for (size_t i = 0; i < rank; ++i) turned[i] = static_cast<int64_t>(i);
    std::swap(turned[rank - 1], turned[rank - 2]);
    if (packed && perm == turned) return nullptr;
    auto moved = transposed(*tensor, perm);
    return moved ? rewriter_.initializer(node_.graph(), *moved, name()) : nullptr;
  }
  const Tensor* lone_constant(const Value* x) const {
    if (!Rewriter::single_use(x) || !rewriter_.is_constant(x)) return nullptr;
    const Tensor* tensor = rewriter_.constant(x);
    return tensor != nullptr && tensor->deferred() == nullptr ? tensor : nullptr;
  }

  /// Operand `index` without what is not among `kept`; `labels`: of the axes that it has then.
  Value* sum_of_alone(size_t index, const std::string& kept, std::string& labels) {
    Value* x = operands_[index];
    std::vector<int64_t> alone;
    for (size_t i = 0; i < terms_[index].size(); ++i) {
      if (contains(kept, terms_[index][i]))
        labels += terms_[index][i];
      else
        alone.push_back(static_cast<int64_t>(i));
    }
    if (alone.empty()) return x;
    Value* axes = rewriter_.ints_initializer(node_.graph(), alone, name());
    Node& sum = rewriter_.add(node_, "ReduceSum", {x, axes}, name());
    sum.set_int("keepdims", 0);
    rewriter_.touch(sum);
    return sum.output(0);
  }

  /// Operand `index` as batch, `rows`, `columns`.
  Value* operand(size_t index, const std::string& order, const std::string& rows,
                 const std::string& columns, bool reshapes) {
    std::string labels;
    Value* x = sum_of_alone(index, order, labels);
    x = transpose(x, labels, order);
    if (!reshapes) return x;
    std::vector<std::string> axes;
    for (const char label : batch_) axes.emplace_back(1, label);
    axes.push_back(rows);
    axes.push_back(columns);
    return reshape(x, axes);
  }

  Rewriter& rewriter_;
  Node& node_;
  Value* operands_[2] = {};  ///< the node's, or as long as each other
  std::vector<std::string> terms_;
  std::string out_;
  std::string batch_, left_, right_, common_;
  const std::string* const kinds_[3] = {&left_, &right_, &common_};
};

template <typename Rewrite>
size_t each_einsum(Rewriter& rewriter, Rewrite&& rewrite) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    std::vector<Node*> nodes;
    for (Node* node : graph.nodes())
      if (node->op_type() == "Einsum" && node->output(0) != nullptr) nodes.push_back(node);
    for (Node* node : nodes) count += rewrite(*node);
  });
  return count;
}

}  // namespace

Result<size_t> einsum_to_matmul(Rewriter& rewriter) {
  return each_einsum(rewriter, [&](Node& node) { return Einsum(rewriter, node).to_matmul(); });
}
Result<size_t> expand_einsum(Rewriter& rewriter) {
  return each_einsum(rewriter, [&](Node& node) { return Einsum(rewriter, node).expand(); });
}

}  // namespace tombolo::passes
