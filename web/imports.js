// For em++'s linker alone: what the module may import. web/crenel.mjs gives it.
mergeInto(LibraryManager.library, {
  crenel_random: function (to, bytes) {},
});
