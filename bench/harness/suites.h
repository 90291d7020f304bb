// The suites that both the programs and `crenel bench` run.
#pragma once

#include "harness/arguments.h"
#include "harness/energy.h"

namespace crenel::bench {

/// Each takes a program's name and arguments, prints what it measures, and returns the exit status:
/// 0, or 1 when a result was wrong. Errors of the library are thrown, those of arguments as
/// ParameterError before anything is measured.
int run_boot(const Words& words);
/// `meter`: for `--energy`; UnsupportedError where that is asked for without one.
int run_boot(const Words& words, const EnergyMeter* meter);
int run_tfhe(const Words& words);

/// The whole main of a program around a suite: status 2 and one line for an error.
int run_program(int argc, char** argv, int (*suite)(const Words&));

}  // namespace crenel::bench
