"""Programs: described, simulated, saved, bound to keys; and the server, which runs them."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel._crenel import Device, write_file
from crenel.errors import ParameterError, SerializationError, StateError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.clear import Clear, Noise, Slots
from crenel.nn.client import ClientSpec, EncryptedTensor, here, params_of, same_direction, same_program
from crenel.nn.counting import Counted, Counting, Demand, demand_of
from crenel.nn.encrypted import Encoded, Encrypted
from crenel.nn.form import Arrays, _dict, bootable, count, plan_form, plan_of, positive
from crenel.nn.graph import checked_samples
from crenel.nn.headroom import first_beyond
from crenel.nn.interpret import Watch, prepared, walk
from crenel.nn.linear import SlotTransform
from crenel.nn.machine import Duration
from crenel.nn.ops import Reals
from crenel.nn.passes.calibrate import CalibrationWarning
from crenel.nn.passes.priced import output_level
from crenel.nn.plan import KINDS_ORIGIN, Boot, Plan, Refresh, legible, linear


@dataclass(frozen=True)
class Expected:
    """What `compile` found out about the result's error, in the result's unit."""

    noise: float
    """Root mean square of what encryption adds."""
    approximation: float
    """Root mean square of what polynomials add."""
    largest: float
    """Largest absolute output of the exact network on all samples."""
    agreement: float
    """Share of samples whose largest output is that of the exact network, with both errors; of a single
    output, 1 - the error relative to it, root mean squares."""
    milliseconds: float | None = None
    """Of a run of `batch` samples, by the costs that `compile` was given; None: it had none."""
    judged: int = 0
    """Samples, spread evenly over all, on which noise, approximation and agreement were measured."""


@dataclass(frozen=True, eq=False)
class Program:
    """A plan for a parameter set: simulated, described, saved, and bound to a client's keys to run."""

    plan: Plan
    params: ckks.Params
    batch: int
    """Most samples of one run."""
    expected: Expected
    device: str | Device = "auto"
    """Where `bind` computes: a `Device` shares its memory with what else was made on it."""
    _kept: dict[str, object] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[str, int, int], float] = field(default_factory=dict, init=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, of parameters, steps, weights, bounds, layouts, origins and `batch`; not
        of what was decided and expected."""
        if "fingerprint" not in self._kept:
            self._kept["fingerprint"] = hashlib.sha256(self._packed(decisions=False)).hexdigest()
        return str(self._kept["fingerprint"])

    def counted(self) -> Counting:
        """Operations, keys and bytes of a run: the plan read by counting, once."""
        found = self._kept.get("counting")
        if not isinstance(found, Counting):
            found = Counting(
                self.plan, self.params, self.plan.rows(self.batch), transforms=dict(self._prepared())
            )
            layout = self.plan.values[0].layout
            walk(self.plan, found, [Counted(self.plan.input_level, layout.slots)] * layout.ciphertexts)
            self._kept["counting"] = found
        return found

    def _prepared(self) -> Mapping[int, SlotTransform]:
        """Matrices that passes have made already."""
        found = self._kept.get("transforms")
        return found if isinstance(found, dict) else {}

    @property
    def transforms(self) -> Mapping[int, SlotTransform]:
        """Matrices of the steps, by the number of the value that each makes."""
        made = self._prepared()
        found = {s.out: made.get(s.out) or prepared(self.plan, s) for s in self.plan.steps if linear(s)}
        self._kept["transforms"] = found
        return found

    @property
    def demand(self) -> Demand:
        """Keys, operations and bytes that a run needs; no key and no device are needed to know."""
        return demand_of(self.counted())

    @property
    def client(self) -> ClientSpec:
        """What a client needs: no weights."""
        values, demand = self.plan.values, self.demand
        result = values[self.plan.output]
        return ClientSpec(
            self.params, self.fingerprint, demand.rotations, demand.relinearisation,
            demand.bootstraps,
            values[0].layout, values[0].level, values[0].bound,
            result.layout, self.plan.output_shape, result.bound, self.batch,
        )  # fmt: skip

    def simulate(
        self,
        samples: ArrayLike,
        *,
        noise: bool = True,
        seed: int | None = None,
        watch: Watch[Slots] | None = None,
    ) -> Reals:
        """The plan on slots in the clear: layouts, diagonals, polynomials and levels are those of a run.

        Parameters
        ----------
        samples : (count, *input shape), any count
        noise : add errors drawn from the model of the parameters
        seed : of these; default fresh randomness
        watch : called with the number and the slots of each value when it is made

        Returns (count, *output shape). Raises ParameterError for other shapes and for what is not finite.
        Warns with CalibrationWarning where the samples leave what a run holds: it would refuse them, or
        return nonsense.
        """
        first, result = self.plan.values[0], self.plan.values[self.plan.output]
        found = checked_samples(samples, first.layout.shape)
        model = Noise(self.params, np.random.default_rng(seed), self._known) if noise else None
        ops = Clear(self.transforms, model)
        packed = first.layout.pack(found / first.bound)
        largest = {0: 1.0}

        def seen(number: int, made: list[Slots]) -> None:
            largest[number] = max(float(np.abs(a.values).max()) for a in made)
            if watch is not None:
                watch(number, made)

        slots = walk(self.plan, ops, [ops.input(part, first.level) for part in packed], seen)
        left = first_beyond(self.plan, largest)
        number = None if left is None else left.value
        if np.abs(found).max() > first.bound:
            number = 0
        if number is not None:
            warnings.warn(
                f"{self.plan.values[number].origin}: these samples leave the range that the program was "
                "compiled for, and an encrypted run would refuse them or return nonsense",
                CalibrationWarning, stacklevel=2,
            )  # fmt: skip
        values = result.layout.unpack(np.stack([a.values for a in slots]), len(found)) * result.bound
        return values.reshape(len(found), *self.plan.output_shape)

    def forget(self) -> None:
        """Drops matrices that were made, which `bind` and `simulate` make again: of a large network
        gigabytes of the host's memory."""
        for name in ("transforms", "counting"):
            self._kept.pop(name, None)

    def explain(self) -> str:
        """The plan, a step a line, and what each pass decided."""
        return self.plan.explain()

    def describe(self, time: Duration | None = None) -> str:
        """What a run needs and how good its result will be, as text, before anything runs.

        time : of a run on a known machine, shown in milliseconds (`crenel.nn.duration`), in place of that by
            the costs of `compile`, without either of which it is not known
        """
        demand, expected, first = self.demand, self.expected, self.plan.values[0]
        counts = ", ".join(f"{count} {what}" for what, count in demand.operations.items())
        levels = f"{self.plan.input_level} of {self.params.normal_top_level}"
        mib = 1 << 20
        rows = [
            ("parameters", f"{self.params.name or 'own'}, N = 2^{self.params.log_n}"),
            ("input", f"{list(first.layout.shape)} within {first.bound:.4g}, {first.layout}"),
            ("result", f"{list(self.plan.output_shape)}, {self.plan.values[self.plan.output].layout}"),
            ("samples of a run", f"up to {self.batch}"),
            ("levels", f"{levels}, {demand.operations.get('bootstraps', 0)} bootstraps"),
            ("steps", f"{len(self.plan.steps)}: {counts}"),
            ("keys", f"{len(demand.rotations)} rotations, {demand.key_bytes / mib:.1f} MiB on the device"),
            ("weights", f"{demand.plaintext_bytes / mib:.1f} MiB encoded, on the device; "
                        f"{demand.layer_bytes / mib:.1f} MiB at once, staged"),
            ("expected error", f"{expected.noise:.2g} of encryption, {expected.approximation:.2g} of "
                               f"polynomials (rms of {expected.judged} samples; outputs up to "
                               f"{expected.largest:.4g})"),
            ("agreement", self._agreement()),
        ]  # fmt: skip
        rows.insert(6, ("time", self._time(time)))
        rows[5:5] = [("bootstraps", self._bootstraps())] if demand.bootstraps else []
        return "\n".join(f"{name:<18}{text}" for name, text in rows)

    def _bootstraps(self) -> str:
        """How many of each kind, what bounded their number, and their keys."""
        kinds, counts = self.demand.bootstraps, self.counted().bootstraps
        keys = self.params.key_bytes(bootstrap=[kind.options() for kind in kinds]) / (1 << 20)
        said = "; ".join(f"{counts[kind]} of {kind} to level {self._target(kind)}" for kind in kinds)
        bounds = [d.chosen for d in self.plan.decisions if d.origin == KINDS_ORIGIN]
        of_most = f" ({legible(bounds[-1])[:60]})" if bounds else ""
        return f"{len(kinds)} kind{'s' if len(kinds) > 1 else ''}{of_most}: {said}; {keys:.1f} MiB of keys"

    def _target(self, kind: Boot) -> int:
        return output_level(self.params) if kind.target is None else kind.target

    def _time(self, known: Duration | None) -> str:
        if known is not None:
            return str(known)
        if (milliseconds := self.expected.milliseconds) is not None:
            return f"about {milliseconds:.4g} ms a run, by its operations"
        return "not known: compile(costs=...) takes a machine's times, describe(duration(...)) a GPU's"

    def _agreement(self) -> str:
        share, judged = self.expected.agreement, self.expected.judged
        if math.prod(self.plan.output_shape) > 1:
            return f"{share:.2%} of {judged} samples have the exact network's largest output"
        if share == 0.0:
            what = (
                "in all of them the output is 0" if self.expected.largest == 0.0 else "the output is smaller"
            )
            return f"none: errors of {judged} samples are not small beside the output; {what}"
        return f"{share:.4f} = 1 - the error of {judged} samples relative to the output (root mean squares)"

    def on(self, device: str | Device) -> Program:
        """The same on another device; what has been found out about the program stays."""
        found = replace(self, device=device)
        found._kept.update(self._kept)
        return found

    def bind(
        self, keys: ckks.EvaluationKeys | bytes | str | os.PathLike[str], *, staged: bool = False
    ) -> Server:
        """The program ready to run on `device` with a client's keys: themselves, their bytes, or their file.

        staged : weights are encoded when their layer is met, in every run, and dropped behind it: the same
            bits, for a device that has no room for all of them (`Demand.layer_bytes`); not with recordings

        Raises KeyMissingError naming every key that is missing or serves too low a level, StateError for keys
        of other parameters, SerializationError for bytes that are no keys, DeviceError, OutOfMemoryError.
        """
        return Server.bound(self, keys, staged=staged)

    def _document(self, arrays: Arrays, decisions: bool) -> dict[str, Json]:
        plan = self.plan if decisions else Plan(
            self.plan.values, self.plan.steps, self.plan.output, self.plan.output_shape, ()
        )  # fmt: skip
        return {"params": self.params.to_bytes().hex(), "batch": self.batch, "plan": plan_form(plan, arrays)}

    def _packed(self, decisions: bool) -> bytes:
        arrays = Arrays(short=decisions)
        document = self._document(arrays, decisions)
        if decisions:
            document["expected"] = list(astuple(self.expected))
        return archive.packed("program", document, arrays.parts)

    def to_bytes(self) -> bytes:
        """What `save` writes: JSON and weights, nothing that executes."""
        return self._packed(decisions=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the server's file, whole or not at all. Raises FileError."""
        write_file(path, self.to_bytes())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], device: str | Device = "auto", *, allow_insecure: bool = False
    ) -> Program:
        """From an untrusted file.

        allow_insecure : accept parameters of less than 128 bits of security. Raises FileError,
        SerializationError, also for insecure parameters, and StateError for another kind of file.
        """
        return cls.from_bytes(archive.read(path), device, allow_insecure=allow_insecure)

    @classmethod
    def from_bytes(
        cls, data: bytes, device: str | Device = "auto", *, allow_insecure: bool = False
    ) -> Program:
        """From untrusted bytes. Raises as `load`."""
        document, parts = archive.unpacked(data, "program")
        found = _dict(document)
        if set(found) != {"params", "batch", "plan", "expected"}:
            raise SerializationError("a program without batch, expected, params and plan")
        params = params_of(found["params"], allow_insecure)
        plan = plan_of(found["plan"], parts)
        numbers = found["expected"]
        if not isinstance(numbers, list) or len(numbers) != 6:
            raise SerializationError("expected must be six numbers")
        if any(v.level > params.normal_top_level or v.layout.capacity > params.slots for v in plan.values):
            raise SerializationError("a plan of more levels or slots than its parameters have")
        if not all(bootable(s.boot, params) for s in plan.steps if isinstance(s, Refresh)):
            raise SerializationError("a plan with bootstraps that its parameters do not have")
        errors = [v for v in numbers[:4] if type(v) is float and math.isfinite(v)]
        time = numbers[4] if numbers[4] is None else positive(numbers[4])
        if len(errors) != 4:
            raise SerializationError("expected must be numbers that are finite")
        judged = count(numbers[5], 0)
        expected = Expected(errors[0], errors[1], errors[2], errors[3], time, judged)
        return cls(plan, params, count(found["batch"]), expected, device)


@dataclass(frozen=True, eq=False)
class Server:
    """A program on a device with evaluation keys: ``run`` computes, with no secret. See `Program.bind`."""

    program: Program
    context: ckks.Context
    evaluator: ckks.Evaluator
    encoded: Encoded
    bootstrappers: Mapping[Boot, ckks.Bootstrapper]
    """By kind."""
    _graphs: dict[int, ckks.Graph[list[ckks.Ciphertext]]] = field(
        default_factory=dict, init=False, repr=False
    )
    """Recordings, by rows."""

    @classmethod
    def bound(
        cls,
        program: Program,
        keys: ckks.EvaluationKeys | bytes | str | os.PathLike[str],
        *,
        staged: bool = False,
    ) -> Server:
        """As `Program.bind`."""
        context = ckks.Context(program.params, device=program.device)
        try:
            if isinstance(keys, ckks.EvaluationKeys):
                try:
                    evaluator = context.evaluator(keys)
                except StateError:  # of another device: they travel as bytes, which says what else may differ
                    evaluator = context.evaluator(context.evaluation_keys_from_bytes(keys.to_bytes()))
            elif isinstance(keys, bytes):
                evaluator = context.evaluator(context.evaluation_keys_from_bytes(keys))
            else:
                evaluator = context.evaluator(context.load_evaluation_keys(keys))
        except SerializationError as error:
            if error.fields.get("where") != "params_id":
                raise
            raise StateError(f"keys of parameters {error.fields['found']}", error.fields) from None
        program.demand.check(evaluator.keys, program.params)  # before weights are encoded
        return cls._without_keys(program, context, staged).with_keys(evaluator.keys)

    @classmethod
    def _without_keys(cls, program: Program, context: ckks.Context, staged: bool = False) -> Server:
        transforms = program._prepared() if staged else program.transforms
        encoded = Encoded(program.plan, context, transforms, staged)
        return cls(program, context, context.evaluator(), encoded, {})

    @classmethod
    def shared(cls, program: Program) -> Server:
        """A program on its device without keys: `with_keys` makes what runs, for one client after the other.

        Raises DeviceError, OutOfMemoryError.
        """
        return cls._without_keys(program, ckks.Context(program.params, device=program.device))

    def with_keys(self, keys: ckks.EvaluationKeys) -> Server:
        """The same program on the same context with another client's keys, read by `context`: tables and
        weights are shared, so that a further client costs its keys.

        Raises KeyMissingError naming every key that is missing or serves too low a level, StateError for keys
        of another context.
        """
        evaluator = self.context.evaluator(keys)
        self.program.demand.check(keys, self.program.params)
        boots = {
            boot: self.context.bootstrapper(keys, boot.options()) for boot in self.program.demand.bootstraps
        }
        return Server(self.program, self.context, evaluator, self.encoded, boots)

    def run(
        self,
        tensor: EncryptedTensor,
        watch: Watch[ckks.Ciphertext] | None = None,
        *,
        graph: bool = False,
    ) -> EncryptedTensor:
        """The network's result for encrypted samples.

        watch : called with the number and the ciphertexts of each value when it is made
        graph : replay the whole as one recording, which the first run of so many rows makes: the same bits,
            without gaps between operations, and the memory of one more run; not with `watch`, nor with staged
            weights

        Raises StateError for a tensor of another program, for a result, for more samples than the program was
        compiled for (``fields["batch"]``), and for one under another key than the evaluation keys'.
        """
        plan = self.program.plan
        same_program(tensor, self.program.fingerprint)
        first = plan.values[0]
        found = [(c.level, c.slots) for c in tensor.ciphertexts]
        expected = [(first.level, first.layout.slots)] * first.layout.ciphertexts
        counts = sorted({c.batch for c in tensor.ciphertexts})
        rows = plan.rows(tensor.samples)
        if found != expected or counts != [rows] or tensor.samples > self.program.batch:
            raise StateError(
                f"{len(found)} ciphertexts of (level, slots) {sorted(set(found))} and "
                f"{tensor.samples} samples in {' or '.join(map(str, counts))} rows, "
                f"expected {len(expected)} of {expected[0]} and at most {self.program.batch} samples",
                {"ciphertexts": len(found), "samples": tensor.samples, "batch": self.program.batch},
            )
        same_direction(tensor, result=False)
        inputs = [here(c, self.context) for c in tensor.ciphertexts]
        ops = Encrypted(self.evaluator, self.encoded, self.bootstrappers, recording=graph)
        if not graph:
            result = walk(plan, ops, inputs, watch)
        elif watch is not None:
            raise ParameterError("a recording is not watched: its values are made when it is replayed")
        elif self.encoded.staged:
            raise ParameterError("a recording of staged weights: they are made in every run, bind without")
        else:
            if rows not in self._graphs:
                self._graphs[rows] = ckks.Graph(self.evaluator, lambda *x: walk(plan, ops, x), *inputs)
            result = self._graphs[rows](*inputs)
        return EncryptedTensor(tuple(result), tensor.program, tensor.single, True, tensor.samples)

    def tensor_from_bytes(self, data: bytes, *, max_bytes: int | None = None) -> EncryptedTensor:
        """What `EncryptedTensor.to_bytes` of a client sent. Raises as `EncryptedTensor.from_bytes`."""
        return EncryptedTensor.from_bytes(data, self.context, max_bytes=max_bytes)
