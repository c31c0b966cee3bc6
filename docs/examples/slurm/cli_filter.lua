-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Lets Slurm count what --gpuarb-cus asks for: CliFilterPlugins=lua in slurm.conf, this file beside it.
-- "cu": CUs of a node. "shard": CUs of each GPU, which Slurm then chooses.

local counted = "cu"

-- Slurm gives a job whole GPUs or shards of them, and refuses both.
local function takes_gpus(options)
	for _, name in ipairs({"gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"}) do
		if options[name] then
			return true
		end
	end
	return false
end

function slurm_cli_setup_defaults(options, early)
	return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, component)
	local plugins = options["spank"]
	local cus = plugins and plugins["gpuarb"] and plugins["gpuarb"]["gpuarb-cus"]

	-- A step takes from what its job has.
	if options["type"] == "srun" and os.getenv("SLURM_JOB_ID") then
		return slurm.SUCCESS
	end
	-- Slurm cannot count a share as 25%: it does not know how many CUs a GPU has.
	if cus and string.match(cus, "^%d+$") and not options["gres"] and
	   not (counted == "shard" and takes_gpus(options)) then
		options["gres"] = counted .. ":" .. cus
	end
	return slurm.SUCCESS
end

function slurm_cli_post_submit(component, job, step)
	return slurm.SUCCESS
end
