-- tests/busted_setup.lua - loaded once by busted before the first spec.
--
-- busted forgets package.loaded between spec files; what is required here is kept, so that all
-- files share one gpipe and one set of classes.
require "gpipe"
