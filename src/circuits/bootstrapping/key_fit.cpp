#include "circuits/bootstrapping/key_fit.h"

#include <algorithm>
#include <bit>
#include <set>

#include "circuits/bootstrapping/defaults.h"
#include "circuits/linear_transform/keys.h"

namespace crenel::circuits {
namespace {

bool serve(const ckks::Evaluator& ev, std::span<const RotationNeed> needs) {
  return std::all_of(needs.begin(), needs.end(),
                     [&](const RotationNeed& need) { return serves(ev.state(), need); });
}

std::size_t count(std::span<const RotationNeed> needs) {
  std::set<i64> steps;
  for (const RotationNeed& need : needs) steps.insert(need.steps.begin(), need.steps.end());
  return steps.size();
}

KeyFit planned(const ckks::Params& params, const BootstrapOptions& options) {
  KeyFit fit;
  fit.plan = plan_bootstrap(params, options);
  fit.matrices = std::make_shared<const BootstrapMatrices>(fit.plan);
  fit.needs = fit.matrices->rotations(params, fit.plan);
  return fit;
}

KeyFit with_minimal_keys(const ckks::Params& params, BootstrapOptions options) {
  options.keys = KeyMode::minimal;
  return planned(params, options);
}

/// What keys serve that were made for other options than these, the best first: without what saves
/// work by keys of its own, then minimal ones.
std::vector<KeyFit> lesser(const ckks::Params& params, const KeyFit& asked,
                           const BootstrapOptions& options) {
  std::vector<KeyFit> fits;
  if (!options.savings.over_mod_raise && asked.plan.over_mod_raise()) {
    BootstrapOptions plain = options;
    plain.savings.over_mod_raise = false;
    fits.push_back(planned(params, plain));
  }
  if (options.savings.over_mod_raise != true) fits.push_back(with_minimal_keys(params, options));
  return fits;
}

std::string name_of(const KeyFit& fit) {
  const u64 pack = fit.plan.options.pack;
  return cat(pack > 1 ? cat(pack, " times ") : std::string(), fit.plan.options.slots,
             " slots with ", fit.plan.options.keys == KeyMode::minimal ? "minimal" : "hoisted",
             " keys");
}

/// Of the bootstraps of fewer or more slots that the keys serve the one that takes most of them.
std::optional<KeyFit> fit_of_other_slots(const ckks::Evaluator& ev, BootstrapOptions options,
                                         u64 but) {
  const ckks::Params& params = ev.context().params();
  std::optional<KeyFit> best;
  for (u64 slots = params.slots(); slots > 0; slots /= 2) {
    if (slots == but) continue;
    options.slots = slots;
    try {
      const BootstrapOptions any = with_any_ratio(options);
      std::vector<KeyFit> fits{planned(params, any)};
      for (KeyFit& fit : lesser(params, fits[0], any)) fits.push_back(std::move(fit));
      for (const KeyFit& fit : fits)
        if (serve(ev, fit.needs) && (!best || count(fit.needs) > count(best->needs))) best = fit;
    } catch (const ParameterError&) {
      continue;  // no bootstrap of so few slots with the other options
    }
  }
  return best;
}

}  // namespace

KeyFit fit_to_keys(const ckks::Evaluator& ev, const BootstrapOptions& options) {
  const ckks::Params& params = ev.context().params();
  KeyFit asked = planned(params, options);
  if (options.keys || serve(ev, asked.needs)) return asked;
  const std::vector<KeyFit> fits = lesser(params, asked, options);
  const auto found = std::find_if(fits.begin(), fits.end(),
                                  [&](const KeyFit& fit) { return serve(ev, fit.needs); });
  const bool served = found != fits.end();
  const KeyFit& own = served ? *found : asked;
  std::optional<KeyFit> other;
  if (options.coeff_to_slot_stages.empty() && options.slot_to_coeff_stages.empty())
    other = fit_of_other_slots(ev, options, asked.plan.options.slots);
  const bool made_for_other = other && (!served || count(other->needs) > count(own.needs));
  KeyFit chosen = made_for_other && options.slots == 0 ? *other : own;
  if (!options.message_ratio && chosen.plan.slots() != asked.plan.slots()) {
    BootstrapOptions theirs = chosen.plan.options;
    theirs.message_ratio.reset();      // not the one that they were tried with
    chosen = planned(params, theirs);  // with its matrices: they multiply by what the ratio says
  }
  chosen.decided = served || (made_for_other && options.slots == 0);
  if (served && made_for_other && options.slots != 0)
    chosen.notice = cat("these keys were made for bootstraps of ", name_of(*other), ", and serve ",
                        name_of(own), ", which is slower; fast ones: ", key_call(params, options));
  return chosen;
}

std::string key_call(const ckks::Params& params, const BootstrapOptions& options) {
  std::string given;
  const auto add = [&](const std::string& text) { given += (given.empty() ? "" : ", ") + text; };
  const auto stages = [&](const char* name, const std::vector<u32>& found,
                          const std::vector<u32>& usual) {
    if (found.empty() || found == usual) return;
    std::string list;
    for (u32 s : found) list += cat(list.empty() ? "" : ", ", s);
    add(cat(name, "=[", list, "]"));
  };
  BootstrapOptions plain;
  plain.slots = options.slots;
  plain.pack = options.pack;
  plain.keys = options.keys;
  plain.savings = options.savings;
  const BootstrapOptions usual = plan_bootstrap(params, with_any_ratio(plain)).options;
  if (usual.slots != params.slots()) add(cat("slots=", usual.slots));
  if (usual.pack != 1) add(cat("pack=", usual.pack));
  if (options.order == BootstrapOrder::slot_to_coeff_first) add("order='slot_to_coeff_first'");
  if (options.keys == KeyMode::minimal) add("keys='minimal'");
  if (options.target_level && plan_bootstrap(params, with_any_ratio(options)).levels.short_base)
    add(cat("target_level=", *options.target_level));
  if (options.savings.over_mod_raise == false && options.keys != KeyMode::minimal)
    add("over_mod_raise=False");
  stages("coeff_to_slot_stages", options.coeff_to_slot_stages, usual.coeff_to_slot_stages);
  stages("slot_to_coeff_stages", options.slot_to_coeff_stages, usual.slot_to_coeff_stages);
  const std::string what = given.empty()               ? "True"
                           : given == "keys='minimal'" ? "'minimal'"
                                                       : cat("ckks.BootstrapOptions(", given, ")");
  return cat("client.evaluation_keys(bootstrap=", what, ")");
}

}  // namespace crenel::circuits
