#include "passes/retarget.h"

#include <algorithm>

#include "passes/pipeline.h"

namespace tombolo {
namespace {

Error cannot_be_said(const Diagnostics& blockers, const Conversion& done,
                     std::span<const OpsetTarget> targets) {
  std::string list;
  constexpr size_t kMost = 20;
  const auto& all = blockers.list();
  for (size_t i = 0; i < std::min(all.size(), kMost); ++i)
    list += (i == 0 ? ": " : "; ") + all[i].where + ": " + all[i].message;
  if (done.kept > kMost) list += "; and " + std::to_string(done.kept - kMost) + " more";
  Error error = unsupported(std::to_string(done.kept) + (done.kept == 1 ? " node" : " nodes") +
                            " cannot be said in operator set " +
                            std::to_string(targets.empty() ? 0 : targets[0].version) + list);
  if (done.lowest > 0)
    return std::move(error).with_help("the lowest operator set that says them is " +
                                      std::to_string(done.lowest));
  return error;
}

bool goes_down(const Model& model, std::span<const OpsetTarget> targets) {
  return std::any_of(targets.begin(), targets.end(), [&](const OpsetTarget& target) {
    return model.opset(target.domain) > target.version;
  });
}

}  // namespace

Result<Conversion> retarget(std::unique_ptr<Model>& model, std::span<const OpsetTarget> targets) {
  Diagnostics blockers;
  if (!model->functions.empty() && goes_down(*model, targets)) {
    std::unique_ptr<Model> whole = clone(*model);
    TRY(const Conversion done, convert(*whole, targets, blockers));
    if (done.kept == 0) {
      model = std::move(whole);
      return done;
    }
    blockers = Diagnostics();
    OptimiseOptions options;
    options.only = {"inline-functions"};
    CHECK_OK(optimise(*model, options));
  }
  TRY(const Conversion done, convert(*model, targets, blockers));
  if (done.kept != 0) return cannot_be_said(blockers, done, targets);
  return done;
}

}  // namespace tombolo
