-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Lets Slurm count what --gpuarb-cus asks for: CliFilterPlugins=lua in slurm.conf, this file beside it.
-- "cu": CUs of a node. "shard": CUs of each GPU, which Slurm then chooses.

local counted = "cu"

function slurm_cli_setup_defaults(options, early)
	return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, component)
	local plugins = options["spank"]
	local cus = plugins and plugins["gpuarb"] and plugins["gpuarb"]["gpuarb-cus"]

	-- Slurm cannot count a share as 25%: it does not know how many CUs a GPU has.
	if cus and string.match(cus, "^%d+$") and not options["gres"] then
		options["gres"] = counted .. ":" .. cus
	end
	return slurm.SUCCESS
end

function slurm_cli_post_submit(component, job, step)
	return slurm.SUCCESS
end
