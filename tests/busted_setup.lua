-- tests/busted_setup.lua - busted loads this file once, before the first spec.
--
-- busted forgets package.loaded between spec files, but keeps what is required here, so that all
-- files share one gpipe and one set of classes.
require "gpipe"
