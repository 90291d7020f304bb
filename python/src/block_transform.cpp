// Linear maps from several encrypted vectors to several.
#include "crenel/circuits/block_transform.h"

#include "circuits.h"

namespace crenel::python {
namespace {

using circuits::BlockMatrix;
using ckks::BoundOperand;

using BlockTransform = BoundTransform<circuits::BlockTransform>;

BlockMatrix blocks_of(nb::handle object, u64 slots) {
  BlockMatrix blocks;
  for (nb::handle row : object) {
    auto& to = blocks.emplace_back();
    for (nb::handle block : row)
      to.push_back(block.is_none() ? std::nullopt : std::optional(matrix_of(block, slots)));
  }
  return blocks;
}

void make_block_transform(BlockTransform* self, const ckks::Context& context, nb::handle object,
                          std::optional<i64> level, std::optional<i64> slots, i64 baby_steps,
                          const std::string& keys, std::optional<double> scale,
                          nb::handle progress) {
  const auto o = transform_options(level, baby_steps, keys, scale);
  const BlockMatrix blocks = blocks_of(object, checked_slots(context.params(), slots));
  const Progress told(progress);
  auto made = released([&] { return circuits::BlockTransform(context, blocks, o); });
  new (self) BlockTransform{context, std::move(made), o.keys};
}

std::vector<Ciphertext> apply(const BlockTransform& t, const ckks::Evaluator& ev,
                              const nb::sequence& inputs) {
  // A ciphertext is a sequence too, of the rows of its batch.
  if (nb::isinstance<Ciphertext>(inputs) || nb::isinstance<ckks::Operand>(inputs))
    throw nb::type_error("expected a list of ciphertexts, one for each input, got a ciphertext");
  std::vector<const ckks::Ciphertext*> given;
  const nb::list kept(inputs);  // keeps them alive
  for (nb::handle item : kept) given.push_back(&as_ciphertext(item));
  expect_transform_of(t.context, ev.context());
  std::vector<Ciphertext> outputs;
  released([&] {
    for (ckks::Ciphertext& out : t.value(ev, std::span<const ckks::Ciphertext* const>(given)))
      outputs.emplace_back(ev.context(), std::move(out));
  });
  return outputs;
}

std::vector<BoundOperand> apply_to_bounds(const BlockTransform& t, const ckks::ErrorModel& model,
                                          const nb::sequence& inputs) {
  std::vector<ckks::ErrorBound> given;
  for (nb::handle item : inputs) {
    if (!nb::isinstance<BoundOperand>(item)) refuse_type("an error bound", item);
    given.push_back(nb::cast<const BoundOperand&>(item).bound());
  }
  std::vector<BoundOperand> outputs;
  for (ckks::ErrorBound& out : t.value(model, given)) outputs.emplace_back(model, std::move(out));
  return outputs;
}

}  // namespace

void bind_block_transform(nb::module_& m) {
  nb::class_<BlockTransform> c(
      m, "BlockTransform",
      "A matrix of blocks prepared for one level: t(ev, [x0, x1]) are the outputs, sums of blocks\n"
      "times inputs. As LinearTransform, but an input is decomposed and rotated once for all "
      "outputs,\n"
      "and an output has one rotation a giant step and one division, however many inputs it has:\n"
      "docs/theory/attention.md, \"Baby and giant steps\".");
  c.def("__init__", &make_block_transform, "context"_a, "blocks"_a, "level"_a = nb::none(),
        "slots"_a = nb::none(), nb::kw_only(), "baby_steps"_a = 0, "keys"_a = "hoisted",
        "scale"_a = nb::none(), "progress"_a = nb::none(),
        nb::sig("def __init__(self, context: Context, blocks: "
                "collections.abc.Sequence[collections.abc.Sequence[" CRENEL_MATRIX " | None]], "
                "level: int | None = None, slots: int | None = None, *, baby_steps: int = 0, "
                "keys: typing.Literal['hoisted', 'minimal'] = 'hoisted', "
                "scale: float | None = None, " CRENEL_PROGRESS_SIG ") -> None"),
        "Parameters\n----------\n"
        "blocks : blocks[o][i] is what input i is multiplied by for output o, None where that is "
        "zero;\n"
        "    a matrix or a dict of diagonals as Context.linear_transform takes them\n"
        "level : of the vectors, at least 1; default the top normal level\n"
        "slots : of the vectors, a power of two; default all N/2\n"
        "baby_steps : a power of two; 0 chooses for all blocks together\n"
        "keys : 'hoisted' (a key a step) or 'minimal' (two keys, slower)\n"
        "scale : of the encoded diagonals; default: canonical scales stay canonical\n\n"
        "Raises ParameterError as Context.linear_transform does, and for rows of unequal length, "
        "an\n"
        "output without a block and a block without a diagonal.")
      .def(
          "__call__", &apply, "evaluator"_a, "ciphertexts"_a,
          nb::sig("def __call__(self, evaluator: Evaluator, ciphertexts: "
                  "collections.abc.Sequence[Ciphertext | Operand]) -> list[Ciphertext]"),
          "The outputs of as many vectors as there are inputs (of any one batch). Level l -> l - "
          "1; a\n"
          "canonical scale stays canonical.\n\n"
          "Raises StateError when level, slots, parameters or device differ from the transform's, "
          "when\n"
          "the inputs differ in level, scale, batch or secret key, or are not as many as expected; "
          "and\n"
          "KeyMissingError naming every rotation without a key.")
      .def("__call__", &apply_to_bounds, "model"_a, "bounds"_a,
           nb::sig("def __call__(self, model: ErrorModel, bounds: "
                   "collections.abc.Sequence[ErrorBound]) -> list[ErrorBound]"),
           "The error bounds of that.")
      .def_prop_ro(
          "inputs", [](const BlockTransform& t) { return t.value.inputs(); },
          "How many vectors it takes.")
      .def_prop_ro(
          "outputs", [](const BlockTransform& t) { return t.value.outputs(); },
          "How many vectors it gives.")
      .def_prop_ro(
          "baby_steps", [](const BlockTransform& t) { return t.value.baby_steps(); },
          "Rotations of inputs, those of all together, the one by 0 included.")
      .def_prop_ro(
          "giant_steps", [](const BlockTransform& t) { return t.value.giant_steps(); },
          "Rotations of sums, those of all outputs together, the one by 0 included.")
      .def("__repr__", [](const BlockTransform& t) {
        return cat("<ckks.BlockTransform of ", t.value.inputs(), " inputs and ", t.value.outputs(),
                   " outputs of ", t.value.slots(), " slots, level ", t.value.level(), " -> ",
                   t.value.level() - 1, ", ", t.value.baby_steps(), " baby and ",
                   t.value.giant_steps(), " giant steps, ", t.value.plaintext_bytes(), " bytes>");
      });
  bind_transform_facts(c, "block_transform", "collections.abc.Sequence[Recorded]",
                       "list[Recorded]");
}

}  // namespace crenel::python
