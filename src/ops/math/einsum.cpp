#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
