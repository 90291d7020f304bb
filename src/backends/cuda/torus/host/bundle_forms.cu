#include <algorithm>
#include <string_view>

#include "backends/cuda/torus/host/bundle_forms.h"
#include "backends/cuda/torus/tuning/bundles.h"

namespace crenel::backend::cuda::torus {
namespace {

/// What shapes of every kind state: `rows` a block, or a cluster.
template <class Shape>
constexpr BundleForm form_of(const char* name, void (*kernel)(BundleArgs), u32 rows) {
  BundleForm form = {};
  form.name = name;
  form.kernel = kernel;
  form.log_points = Shape::LP, form.polys = Shape::Polys, form.rmax = Shape::RMax;
  form.threads = Shape::Threads, form.rows = rows, form.cluster = 1;
  return form;
}
/// ... whose bundles other blocks make.
template <class Shape>
constexpr BundleForm ahead_form(const char* name, void (*kernel)(BundleArgs), u32 rows) {
  BundleForm form = form_of<Shape>(name, kernel, rows);
  form.ahead = true, form.made_rows = Shape::kMadeRows, form.made_tiles = Shape::kMadeTiles;
  return form;
}
template <class Shape>
constexpr BundleForm block_form(const char* name) {
  if constexpr (Shape::Ahead)
    return ahead_form<Shape>(name, bundle_rotate<Shape>, Shape::Rows);
  else
    return form_of<Shape>(name, bundle_rotate<Shape>, Shape::Rows);
}
template <class Shape>
constexpr BundleForm difference_form(const char* name) {
  BundleForm form = form_of<Shape>(name, difference_rotate<Shape>, Shape::Rows);
  form.differences = true, form.pad = Shape::Pad;
  return form;
}
template <class Shape>
constexpr BundleForm cluster_form(const char* name) {
  BundleForm form = ahead_form<Shape>(name, cluster_rotate<Shape>, 1);
  form.cluster = Shape::Polys, form.fixed_bytes = Shape::kBytes;
  return form;
}

const BundleForm kForms[] = {
    block_form<Bundle10Rows>("bundles-10-2-rows"),
    block_form<Bundle10>("bundles-10-2"),
    block_form<Single10>("ahead-10-2-single"),
    cluster_form<Ahead10>("ahead-10-2"),
    cluster_form<Ahead10Joint>("ahead-10-2-joint"),
    block_form<Bundle8Rows>("bundles-8-4-rows"),
    block_form<Bundle8>("bundles-8-4"),
    cluster_form<Ahead8>("ahead-8-4"),
    difference_form<Difference8>("differences-8-8"),
    difference_form<Difference8Two>("differences-8-8-two"),
    difference_form<Difference8One>("differences-8-8-one"),
    difference_form<Difference8Any>("differences-8"),
    block_form<AnyBundle>("bundles-any"),
};

}  // namespace

bool BundleForm::serves(const device::TorusPlan& plan) const {
  if (plan.modulus > u64(1) << 30 || plan.polys() > kMostPolys) return false;
  const bool any = log_points == 0;  // the one for all sizes takes differences of any group too
  if (!any && differences != plan.differences) return false;
  if (differences && (plan.group != 1 || (polys == 0 && plan.polys() > kMostDifferencePolys)))
    return false;
  return (any || log_points + 1 == plan.log_n) && (polys == 0 || polys == plan.polys());
}

std::size_t BundleForm::shared_bytes(const device::TorusPlan& plan) const {
  const PassPlan passes(plan.log_n - 1, rmax);
  const u64 tables = FftField<Accumulator<true, i32>>::table_bytes(
      plan.log_n, twiddle_offset<true>(passes, passes.count));
  if (fixed_bytes != 0) return fixed_bytes + tables;
  const u64 polys = u64(plan.polys()) * rows;
  const u64 exponents = differences ? (rows + 3) / 4 * 4 : rows * kMaxBundle;
  return (polys << plan.log_n) * (sizeof(double2) / 2 + sizeof(i32)) +
         (polys * pad + exponents) * sizeof(u32) + tables;
}

std::vector<const BundleForm*> bundle_forms(const device::TorusPlan& plan, const GpuModel& gpu) {
  std::vector<const BundleForm*> forms;
  for (const BundleForm& form : kForms) {
    const bool clusters = form.cluster == 1 || gpu.compute_major >= kClusterMajor;
    if (clusters && form.serves(plan) && form.shared_bytes(plan) <= gpu.shared_bytes)
      forms.push_back(&form);
  }
  return forms;
}

FormChoice choose_form(const std::vector<const BundleForm*>& forms, const device::TorusPlan& plan,
                       u32 batch, u32 processors) {
  u32 step = 0;  // whose rows of the table are taken
  for (const BundleChoice& choice : kBundleChoices)
    if (choice.log_points + 1 == plan.log_n && choice.step <= plan.group)
      step = std::max(step, choice.step);
  FormChoice chosen = {forms.front(), batch};
  const auto scaled = [&](u32 rows) {
    return std::max(1u, static_cast<u32>(u64(rows) * processors / kChoiceProcessors));
  };
  for (const BundleChoice& choice : kBundleChoices) {
    if (choice.log_points + 1 != plan.log_n || choice.step != step) continue;
    for (const BundleForm* form : forms) {
      if (std::string_view(form->name) != choice.form) continue;
      const u32 at_once = scaled(choice.at_once);
      if (batch <= scaled(choice.up_to)) return {form, std::min(batch, at_once)};
      chosen = {form, batch / at_once * at_once};
    }
  }
  return chosen;
}

}  // namespace crenel::backend::cuda::torus
