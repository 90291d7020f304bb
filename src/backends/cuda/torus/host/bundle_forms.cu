#include <string_view>

#include "backends/cuda/torus/host/bundle_forms.h"
#include "backends/cuda/torus/tuning/bundles.h"

namespace crenel::backend::cuda::torus {
namespace {

template <class Shape>
constexpr BundleForm block_form(const char* name) {
  return {name,        bundle_rotate<Shape>,
          Shape::LP,   Shape::Polys,
          Shape::RMax, Shape::Threads,
          Shape::Rows, 1,
          false,       0,
          0,           0};
}
template <class Shape>
constexpr BundleForm cluster_form(const char* name) {
  return {name,
          cluster_rotate<Shape>,
          Shape::LP,
          Shape::Polys,
          Shape::RMax,
          Shape::Threads,
          1,
          Shape::Polys,
          Shape::Ahead,
          Shape::kMadeRows,
          Shape::kMadeTiles,
          Shape::kBytes};
}

const BundleForm kForms[] = {
    block_form<Bundle10Rows>("bundles-10-2-rows"),
    block_form<Bundle10>("bundles-10-2"),
    cluster_form<Cluster10>("cluster-10-2"),
    cluster_form<Cluster10Three>("cluster-10-2-three"),
    cluster_form<Ahead10>("ahead-10-2"),
    cluster_form<Ahead10Three>("ahead-10-2-three"),
    cluster_form<Ahead10Joint>("ahead-10-2-joint"),
    cluster_form<Ahead10JointThree>("ahead-10-2-joint-three"),
    cluster_form<Ahead10JointFour>("ahead-10-2-joint-four"),
    block_form<Bundle8Rows>("bundles-8-4-rows"),
    block_form<Bundle8>("bundles-8-4"),
    cluster_form<Cluster8>("cluster-8-4"),
    cluster_form<Ahead8>("ahead-8-4"),
    cluster_form<Ahead8Three>("ahead-8-4-three"),
    cluster_form<Ahead8Joint>("ahead-8-4-joint"),
    block_form<AnyBundle>("bundles-any"),
};

}  // namespace

bool BundleForm::serves(const device::TorusPlan& plan) const {
  if (plan.modulus > u64(1) << 30) return false;
  return (log_points == 0 || log_points + 1 == plan.log_n) && (polys == 0 || polys == plan.polys());
}

std::size_t BundleForm::shared_bytes(const device::TorusPlan& plan) const {
  const PassPlan passes(plan.log_n - 1, rmax);
  const u64 tables = FftField<Accumulator<true, i32>>::table_bytes(
      plan.log_n, twiddle_offset<true>(passes, passes.count));
  if (fixed_bytes != 0) return fixed_bytes + tables;
  return (u64(plan.polys()) * rows << plan.log_n) * (sizeof(double2) / 2 + sizeof(i32)) +
         rows * kMaxBundle * sizeof(u32) + tables;
}

std::vector<const BundleForm*> bundle_forms(const device::TorusPlan& plan,
                                            std::size_t shared_bytes) {
  std::vector<const BundleForm*> forms;
  for (const BundleForm& form : kForms)
    if (form.serves(plan) && form.shared_bytes(plan) <= shared_bytes) forms.push_back(&form);
  return forms;
}

const BundleForm& choose_form(const std::vector<const BundleForm*>& forms,
                              const device::TorusPlan& plan, u32 batch) {
  for (const BundleChoice& choice : kBundleChoices) {
    if (choice.log_points + 1 != plan.log_n || choice.log_keys != plan.group ||
        batch > choice.up_to)
      continue;
    for (const BundleForm* form : forms)
      if (std::string_view(form->name) == choice.form) return *form;
  }
  return *forms.front();
}

}  // namespace crenel::backend::cuda::torus
