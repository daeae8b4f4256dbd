-- lua/gpipe/environment.lua - the environment variables GPIPE_…: their names and the values they
-- take.
--
-- A misspelt variable, or a value that is not known, would be ignored silently. Both are reported
-- once, on standard error, when gpipe is loaded. Variables that are read when they are used
-- (GPIPE_FAULT, GPIPE_WATCHDOG, GPIPE_TRANSPORT, GPIPE_WHOLE_PLAN, GPIPE_CUDA_PLUGIN,
-- GPIPE_LINK_PLUGIN) raise there if their value cannot be understood.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local environment = {}

--- Names, and the known values where there are only a few; "" counts as unset.
environment.variables = {
  GPIPE_ALONE = { "0", "1" },           -- 1: no rank of a job, whatever has started the process
  GPIPE_ASSIGN = { "0", "1" },          -- 0: gradients start from zeros that are added to
  -- attention, or its backward pass, by our own kernels where cuDNN could; or by cuDNN with dropout
  GPIPE_ATTENTION = { "own", "own-backward", "cudnn" },
  GPIPE_ATTENTION_PIECE = { "32", "64", "128", "256" }, -- MiB of scores that cuDNN keeps at once
  GPIPE_BUCKET_BYTES = true,            -- gradients that replicas exchange at once, at least
  -- convolutions by our own kernels, not by cuDNN; or by its fastest engine instead of its first
  GPIPE_CONVOLUTION = { "own", "timed" },
  GPIPE_CPU_BF16 = { "emulate", "avx512", "amx" }, -- how CPU devices multiply bf16, where it runs
  GPIPE_CUDA_PLUGIN = true,             -- the file of the CUDA plugin
  GPIPE_FAULT = true,                   -- failures on request, for tests
  GPIPE_GUARD_HIDE = true,              -- a missing access on request, for tests with the sanitizer
  GPIPE_FUSE = { "0", "1" },            -- 0: pipelines do not fuse ops
  GPIPE_GEMM = { "onednn", "plain" },   -- plain: matrix products without oneDNN
  GPIPE_GEMM_EPILOGUES = true,          -- which epilogues cuBLASLt is asked for
  GPIPE_GEMM_PAD = true,                -- KiB of padded copies of odd operands; 0: none
  GPIPE_GEMM_TAILS = true,              -- millions of operations from which odd products are split
  GPIPE_GPU_PROFILE = { "0", "1" },     -- 1: the profile of a step of each pipeline
  GPIPE_LINK_PLUGIN = true,             -- the file of a library of links
  GPIPE_HEARTBEAT = true,               -- seconds without a sign of life after which a rank is lost
  GPIPE_INTERFACE = true,               -- by which this host takes part: a name or an address
  GPIPE_IPC = { "0" },                  -- 0: processes do not write to each other's GPUs
  GPIPE_JOB_KEY = true,                 -- the job's key where the launcher makes none
  GPIPE_JOIN_SECONDS = true,            -- for which ranks wait for each other at the beginning
  GPIPE_MPI_PLUGIN = true,              -- the file of the MPI plugin
  GPIPE_NCCL = { "0", "1" },            -- 1: GPUs of one host use NCCL, too; 0: none do
  GPIPE_NCCL_LIBRARY = true,            -- the file of NCCL
  GPIPE_PEERS = { "0" },                -- 0: GPUs copy to each other by way of the host
  GPIPE_TRANSPORT = true,               -- how ranks are connected: unix, tcp or mpi
  GPIPE_RANKS_FOLDER = true,            -- where the sockets of this job's ranks are
  GPIPE_RANKS_KEY = true,               -- the job's key
  GPIPE_RANKS_LABELLED = { "1" },       -- the launcher puts ranks before their lines
  GPIPE_RANKS_NOTES = true,             -- the socket by which ranks tell their launcher something
  GPIPE_RANKS_SHARED = { "0", "1" },    -- 0: ranks of one host share no memory
  GPIPE_SWEEP_WORKER = true,            -- the file of the sweep whose process this is
  GPIPE_TRACEBACK = { "full", "short" }, -- full: frames of gpipe and C too
  GPIPE_UPDATE_HALVES = { "0", "1" },   -- 0: casts of weights, not updates, write their halves
  GPIPE_WATCHDOG = true,                -- seconds without progress before a pass is given up
  GPIPE_WHOLE_PLAN = true,              -- actions up to which every rank plans all devices
}

-- Variables of scripts/ and of the tests.
local TOOLS = {
  "GPIPE_BUILD", "GPIPE_CUDA", "GPIPE_FUZZ", "GPIPE_GPU_ARCHITECTURES", "GPIPE_GPU_BUILD",
  "GPIPE_GPU_PACK", "GPIPE_GPU_SWITCHES", "GPIPE_LUA", "GPIPE_MODULE", "GPIPE_PACK_BUILD",
  "GPIPE_PEER_FOLDER", "GPIPE_PEER_PYTHON", "GPIPE_SANITIZE",
}

local function is_of_tools(name)
  for _, tool in ipairs(TOOLS) do
    if name == tool then return true end
  end
  return name:find "^GPIPE_TEST_" ~= nil
end

local function names()
  local list = {}
  for name in pairs(environment.variables) do list[#list + 1] = name end
  table.sort(list)
  return list
end

-- Say what is wrong with a variable, or return nil.
local function fault_of(name, value)
  local choices = environment.variables[name]
  if is_of_tools(name) or choices == true or value == "" then return nil end
  if not choices then
    return ("%s in the environment is not known%s"):format(name,
      errors.hint(name, names(), "variables"))
  end
  for _, choice in ipairs(choices) do
    if value == choice then return nil end
  end
  return ("%s in the environment is '%s', expected %s: it is ignored"):format(name, value,
    table.concat(choices, " or "))
end

--- The faults in the environment's variables, in the order of their names.
---@return string[]
function environment.faults()
  local found, faults = core.variables "GPIPE_", {}
  table.sort(found)
  for _, name in ipairs(found) do faults[#faults + 1] = fault_of(name, os.getenv(name) or "") end
  return faults
end

--- Report the faults on standard error.
function environment.check()
  for _, fault in ipairs(environment.faults()) do io.stderr:write("gpipe: ", fault, "\n") end
end

return environment
