#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_einsum(InferContext& context) {
  const Text equation = context.attributes.get_string("equation", "");
  // Terms of letters and at most one "..." each; spaces mean nothing.
  std::vector<std::string> terms(1);
  std::string result;
  bool explicit_result = false;
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == '-' && i + 1 < equation.size() && equation[i + 1] == '>' && !explicit_result) {
      explicit_result = true;
      ++i;
    } else if (c == ',' && !explicit_result) {
      terms.emplace_back();
    } else if (c == '.' && equation.substr(i, 3) == "...") {
      (explicit_result ? result : terms.back()) += '.';
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      (explicit_result ? result : terms.back()) += c;
    } else {
      return context.error("the equation \"" + std::string(equation.substr(0, 200)) +
                           "\" holds an unexpected character at " + std::to_string(i));
    }
  }
  if (terms.size() != context.input_count())
    return context.error("the equation \"" + std::string(equation.substr(0, 200)) + "\" has " +
                         std::to_string(terms.size()) + " terms, but there are " +
                         std::to_string(context.input_count()) + " inputs");
  SymDim sizes[128];
  int count[128] = {};
  std::optional<SymShape> ellipsis = SymShape();
  bool any_ellipsis = false;
  for (size_t k = 0; k < terms.size(); ++k) {
    const SymShape* shape = context.shape(k);
    const size_t dots = terms[k].find('.');
    any_ellipsis |= dots != std::string::npos;
    for (const char c : terms[k])
      if (c != '.') ++count[static_cast<size_t>(c)];
    if (shape == nullptr) {
      if (dots != std::string::npos) ellipsis.reset();
      continue;
    }
    const size_t letters = terms[k].size() - (dots != std::string::npos ? 1 : 0);
    if (shape->size() < letters || (dots == std::string::npos && shape->size() != letters))
      return context.error("term \"" + terms[k] +
                           "\" of the equation does not fit an input of rank " +
                           std::to_string(shape->size()));
    const size_t spread = shape->size() - letters;
    size_t axis = 0;
    for (const char c : terms[k]) {
      if (c == '.') {
        if (ellipsis) {
          TRY(ellipsis,
              broadcast(*ellipsis,
                        SymShape(shape->begin() + static_cast<std::ptrdiff_t>(axis),
                                 shape->begin() + static_cast<std::ptrdiff_t>(axis + spread))));
        }
        axis += spread;
        continue;
      }
      SymDim& size = sizes[static_cast<size_t>(c)];
      const SymDim& dim = (*shape)[axis++];
      if (size.constant() == 1) size = SymDim();
      if (dim.constant() == 1 && !size.is_unknown()) continue;
      TRY(size, unify_dims(context, size, dim, (std::string("index ") + c).c_str()));
    }
  }
  if (!explicit_result) {
    if (any_ellipsis) result += '.';
    for (char c = 'A'; c <= 'z'; ++c)
      if (count[static_cast<size_t>(c)] == 1) result += c;
  }
  SymShape out;
  for (const char c : result) {
    if (c != '.') {
      out.push_back(sizes[static_cast<size_t>(c)]);
      continue;
    }
    if (!ellipsis) return ok();
    out.insert(out.end(), ellipsis->begin(), ellipsis->end());
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
/// Labels of one term: letters, and for an ellipsis the axes it stands for as numbers above 255.
using Labels = std::vector<int>;

constexpr int kEllipsis = 256;  // + distance from its last axis

/// The letters of a term; `ellipsis` axes where it says "...".
Result<Labels> term_labels(const KernelContext& context, std::string_view term, size_t ellipsis,
                           bool& has_ellipsis) {
  Labels labels;
  has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (term.substr(i, 3) == "..." && !has_ellipsis) {
      has_ellipsis = true;
      for (size_t k = ellipsis; k-- > 0;) labels.push_back(kEllipsis + static_cast<int>(k));
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      return context.error("\"" + std::string(term) + "\" is not a term of an equation");
    }
  }
  return labels;
}

struct Einsum {
  std::vector<Labels> terms;
  Labels output, summed;
  std::vector<std::pair<int, int64_t>> lengths;  ///< per label

  int64_t* length_of(int label) {
    for (auto& [name, length] : lengths)
      if (name == label) return &length;
    return nullptr;
  }
};

Result<Einsum> read_equation(const KernelContext& context, std::span<const Tensor* const> inputs) {
  std::string equation(context.attributes.get_string("equation", ""));
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  Einsum einsum;
  size_t widest = 0;
  for (size_t k = 0;; ++k) {
    const size_t comma = left.find(',');
    const std::string_view term = left.substr(0, comma);
    if (k >= inputs.size())
      return context.error("equation \"" + equation + "\" has more terms than inputs");
    const size_t dots = term.find("...") == std::string_view::npos ? 0 : 3;
    const size_t letters = term.size() - dots, rank = inputs[k]->rank();
    if (dots == 0 ? letters != rank : letters > rank)
      return context.error("term \"" + std::string(term) + "\" does not fit input " +
                           std::to_string(k) + ", " + to_string(*inputs[k]));
    bool has = false;
    TRY(Labels labels, term_labels(context, term, rank - letters, has));
    if (has) widest = std::max(widest, rank - letters);
    for (size_t j = 0; j < rank; ++j) {
      const int64_t dim = inputs[k]->dim(j);
      int64_t* known = einsum.length_of(labels[j]);
      if (known == nullptr)
        einsum.lengths.emplace_back(labels[j], dim);
      else if (*known == 1)
        *known = dim;
      else if (dim != 1 && dim != *known)
        return context.error("axis " + std::to_string(j) + " of input " + std::to_string(k) + ", " +
                             to_string(*inputs[k]) + ", should have " + std::to_string(*known) +
                             " elements");
    }
    einsum.terms.push_back(std::move(labels));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (einsum.terms.size() != inputs.size())
    return context.error("equation \"" + equation + "\" has fewer terms than inputs");

  if (arrow != std::string::npos) {
    bool has = false;
    TRY(einsum.output,
        term_labels(context, std::string_view(equation).substr(arrow + 2), widest, has));
    for (size_t i = 0; i < einsum.output.size(); ++i)
      if (einsum.length_of(einsum.output[i]) == nullptr ||
          std::count(einsum.output.begin(), einsum.output.end(), einsum.output[i]) != 1)
        return context.error("the output of equation \"" + equation +
                             "\" has a label twice, or one that no input has");
  } else {
    // The ellipsis, then the labels that occur once, in alphabetical order.
    for (size_t k = widest; k-- > 0;) einsum.output.push_back(kEllipsis + static_cast<int>(k));
    for (int letter = 'A'; letter <= 'z'; ++letter) {
      std::ptrdiff_t count = 0;
      for (const Labels& term : einsum.terms) count += std::count(term.begin(), term.end(), letter);
      if (count == 1) einsum.output.push_back(letter);
    }
  }
  for (const auto& [label, length] : einsum.lengths)
    if (std::find(einsum.output.begin(), einsum.output.end(), label) == einsum.output.end())
      einsum.summed.push_back(label);
  return einsum;
}

/// The strides of an input along labels: of all its axes with that label together.
Dims label_strides(const Labels& term, const Tensor& input, const Labels& labels) {
  const Dims strides = contiguous_strides(input.dims());
  Dims result;
  for (const int label : labels) {
    int64_t stride = 0;
    for (size_t j = 0; j < term.size(); ++j)
      if (term[j] == label && input.dim(j) != 1) stride += strides[j];
    result.push_back(stride);
  }
  return result;
}

/// Sums products over all summed labels for each output element. Sum: double for floats.
template <typename T, typename Sum>
void contract(const KernelContext& context, const std::vector<Tensor>& inputs,
              const std::vector<Dims>& output_strides, const std::vector<Dims>& sum_strides,
              std::span<const int64_t> sum_dims, Tensor& out) {
  const size_t count = inputs.size();
  const int64_t terms = element_count(sum_dims);
  const int64_t inner = sum_dims.empty() ? 1 : sum_dims.back();
  context.parallel_for(
      out.size(), std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, terms)),
      [&](int64_t begin, int64_t end) {
        std::vector<const T*> at(count);
        std::vector<int64_t> steps(count);
        for (size_t k = 0; k < count; ++k) steps[k] = sum_dims.empty() ? 0 : sum_strides[k].back();
        for (int64_t i = begin; i < end; ++i) {
          Sum sum{0};
          Odometer walk(sum_dims.first(sum_dims.empty() ? 0 : sum_dims.size() - 1));
          bool more = terms > 0;
          while (more) {
            for (size_t k = 0; k < count; ++k) {
              int64_t offset = walk.dot(sum_strides[k]);
              int64_t rest = i;
              for (size_t j = out.rank(); j-- > 0; rest /= out.dim(j))
                offset += rest % out.dim(j) * output_strides[k][j];
              at[k] = inputs[k].data<T>() + offset;
            }
            for (int64_t j = 0; j < inner; ++j) {
              Sum factor{1};
              for (size_t k = 0; k < count; ++k) factor *= static_cast<Sum>(at[k][j * steps[k]]);
              sum += factor;
            }
            more = walk.next();
          }
          out.data<T>()[i] = static_cast<T>(sum);
        }
      });
}

Status run_einsum(KernelContext& context) {
  std::vector<const Tensor*> inputs(context.input_count());
  for (size_t k = 0; k < inputs.size(); ++k) {
    TRY(inputs[k], context.input(k));
    if (inputs[k]->dtype() != inputs[0]->dtype())
      return context.error("inputs must have one type, but are " + to_string(*inputs[0]) + " and " +
                           to_string(*inputs[k]));
  }
  if (inputs.empty()) return context.error("at least one input is needed");
  TRY(Einsum einsum, read_equation(context, inputs));
  Dims dims, sum_dims;
  for (const int label : einsum.output) dims.push_back(*einsum.length_of(label));
  for (const int label : einsum.summed) sum_dims.push_back(*einsum.length_of(label));
  if (element_count(sum_dims) < 0) return resource_error("the sum is endless");
  std::vector<Dims> output_strides, sum_strides;
  for (size_t k = 0; k < inputs.size(); ++k) {
    output_strides.push_back(label_strides(einsum.terms[k], *inputs[k], einsum.output));
    sum_strides.push_back(label_strides(einsum.terms[k], *inputs[k], einsum.summed));
  }
  if (inputs.size() == 1 && sum_dims.empty() &&
      (is_integer(inputs[0]->dtype()) || is_float(inputs[0]->dtype()))) {  // nothing but movement
    TRY(Tensor * out, context.output(0, inputs[0]->dtype(), dims));
    copy_box(*inputs[0], 0, output_strides[0], *out, 0, contiguous_strides(dims), dims);
    return ok();
  }
  return with_numbers(context, *inputs[0], [&]<typename T>(const Tensor&) -> Status {
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    std::vector<Tensor> numbers;
    for (const Tensor* input : inputs) {
      TRY(Tensor converted_input, as<T>(context, *input));
      numbers.push_back(std::move(converted_input));
    }
    TRY(Tensor out, context.allocate(dtype_of<T>(), dims));
    contract<T, Sum>(context, numbers, output_strides, sum_strides, sum_dims, out);
    return give(context, 0, inputs[0]->dtype(), std::move(out));
  });
}

}  // namespace

OPERATOR(Einsum) = {
    .name = "Einsum",
    .doc = "products and sums over named axes, as an equation says",
    .versions = {12, 28},
    .inputs = {{"Inputs", "T", kVariadic}},
    .outputs = {{"Output", "T"}},
    .attributes = {{"equation", required(Attr::kString)}},
    .types = {{"T", {{12, kNumbers}, {28, kBf16}}}},
    .infer = infer_einsum,
    .reference = run_einsum,
};

}  // namespace tombolo::ops
