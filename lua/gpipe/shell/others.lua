-- lua/gpipe/shell/others.lua - the interactive mode of a job: rank 0 has the terminal, and all
-- other ranks run what is typed there.
--
-- Rank 0 dictates each chunk before it runs it. An error on some of the ranks may leave these with
-- fewer collective calls than the others; dictating the next chunk ends what is left of the last.

local chunks = require "gpipe.shell.chunks"
local core = require "gpipe.core"
local limit = require "gpipe.ranks.limit"
local mistakes = require "gpipe.shell.mistakes"
local ranks = require "gpipe.ranks"
local startup = require "gpipe.shell.startup"
local terminal = require "gpipe.terminal"

local others = {}

local CHUNK, STARTUP, NOTHING = "C", "S", "N" -- how a dictated text begins
local OUTCOME = "the prompt"    -- the call that brings their errors to rank 0

-- Rank 0 --------------------------------------------------------------------------------------

local function has_others() return ranks.ranks() > 1 end

local told = false -- do they run a chunk? They do not run commands, such as `?gp.seed`.

--- Let the other ranks run a chunk.
---@param text string
function others.tell(text)
  if not has_others() then return end
  core.rank_dictate(CHUNK .. text)
  told = true
end

--- Connect the ranks, so that the others learn of the end even if nothing is typed.
---@param typing boolean let them run the user's init.lua
function others.begin(typing)
  if has_others() then core.rank_dictate(typing and STARTUP or NOTHING) end
end

--- What went wrong on other ranks in a chunk that ended well here, a line for each.
---@param well boolean did it end well here?
---@return string[]
function others.complaints(well)
  local lines, asked = {}, told and well
  told = false
  if not asked then return lines end
  local _ <close> = limit.within(0) -- the user can press Ctrl-C
  local good, texts = terminal.call(ranks.gather, OUTCOME, "")
  if not good then return { texts } end
  for r = 2, #texts do
    if texts[r] ~= "" then lines[#lines + 1] = ("[%d] %s"):format(r - 1, texts[r]) end
  end
  return lines
end

-- The other ranks -----------------------------------------------------------------------------

--- Return whether this process runs what is typed at another one.
---@return boolean
function others.follows() return ranks.rank() > 0 end

local function run(text)
  local chunk, message = chunks.compile(text)
  mistakes.note(text)
  if not chunk then return message end
  local results = table.pack(terminal.call(chunk, chunks.keep_locals))
  if not results[1] then
    terminal.complain(results[2])
    return results[2]:match "^[^\n]*"
  end
  chunks.keep_values(results)
end

-- Tell rank 0 how the chunk went, and wait for the next one. Rank 0 does not ask where its own
-- chunk has failed: then the first call fails when the next chunk comes.
local function next_text(message)
  local _ <close> = limit.within(0)
  if message then pcall(ranks.gather, OUTCOME, message) end
  return core.rank_listen(0)
end

--- Run what rank 0 dictates, until that ends. Errors: rank 0 is lost.
function others.follow()
  local message
  while true do
    local text, why = terminal.deaf(next_text, message)
    if not text then
      if core.ranks_lost() then error(why, 0) end
      return
    end
    message = nil
    if text == STARTUP then
      startup.run()
    elseif text ~= NOTHING then
      message = run(text:sub(#CHUNK + 1)) or ""
    end
  end
end

return others
