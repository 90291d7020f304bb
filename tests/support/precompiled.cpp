// The owner of the precompiled header; GoogleTest has its main().
