// Which target a program is: all else of it is compiled once.
extern const char* const kFuzzTarget;
const char* const kFuzzTarget = CRENEL_FUZZ_TARGET;
