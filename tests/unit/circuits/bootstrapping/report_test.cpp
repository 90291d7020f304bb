// What a report says of errors is the model's, of the messages that it names.
#include "circuits/bootstrapping/report.h"

#include <gtest/gtest.h>

#include "circuits/bootstrapping/plan.h"

namespace crenel::circuits {
namespace {

// Two real vectors are one of complex numbers.
TEST(BootstrapReport, ErrorsOfUniformSlotsAreThoseOfItsMessage) {
  for (const char* set : {"boot40", "boot30", "toy-boot45"})
    for (const u64 slots : {u64(0), u64(64)})
      for (const auto message :
           {BootstrapMessage::complex, BootstrapMessage::real, BootstrapMessage::pair}) {
        SCOPED_TRACE(cat(set, ", ", slots, " slots, message ", int(message)));
        const auto params = ckks::Params::preset(set, true);
        BootstrapOptions o;
        o.slots = slots;
        o.message = message;
        o.values = BootstrapValues::centred;
        const BootstrapPlan plan = plan_bootstrap(params, o);
        const BootstrapReport r = report_of(params, plan);
        const bool real = message == BootstrapMessage::real;
        const auto expected =
            estimate_precision(model_of(params, plan),
                               {real ? MessageKind::uniform_real : MessageKind::uniform_complex})
                .total;
        EXPECT_EQ(r.message, message);
        EXPECT_EQ(r.expected_error, expected.max);
        EXPECT_EQ(r.expected_rms, expected.rms);
        EXPECT_EQ(r.expected_error, r.values_error);
        const std::string text = r.text(), square = "slots uniform in [-1, 1]^2 (2^";
        EXPECT_NE(text.find(real ? "slots uniform in [-1, 1] (2^" : square), std::string::npos)
            << text;
        EXPECT_EQ(text.find(square) == std::string::npos, real) << text;
      }
}

}  // namespace
}  // namespace crenel::circuits
