/** The command `roomd sandbox create`. */
import type { Command } from "commander";
import * as sandboxes from "../../../../shared/api/sandboxes.ts";
import { call } from "../../kit/client.ts";
import { choice, command, timeout } from "../../kit/command.ts";
import { type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { integer, mebibytes, pair, seconds, word } from "../../kit/values.ts";
import { type LifecycleOptions, lifecycleFrom, withLifecycle } from "./lifecycle.ts";

interface CreateOptions extends JsonOption, LifecycleOptions {
  memory?: number;
  vcpus?: number;
  cid?: number;
  template?: string;
  snapshot?: string;
  env?: Record<string, string>;
  egress?: string[] | false;
  label?: Record<string, string>;
  idleTimeout?: number;
  maxDuration?: number;
  wait?: "ready" | "none";
  timeout?: number;
  fabric?: boolean;
  network?: boolean;
}

export function sandboxCreateCommand(): Command {
  const about = command("create <room> <agent>", {
    summary: "create a sandbox for an agent and wait until it is ready",
    examples: [
      "roomd sandbox create build-42 worker-1 --memory 512",
      "roomd sandbox create build-42 worker-2 --memory 1024 --vcpus 2 --env CI=1 --cid 9200",
      "roomd sandbox create build-42 worker-3 --no-egress --wait none --json",
      "roomd sandbox create build-42 worker-4 --idle-timeout 10m --on-idle hibernate",
    ],
  });
  return withLifecycle(about)
    .option("--memory <mib>", "memory in MiB (default: the template's, or the snapshot's)", mebibytes(0))
    .option("--vcpus <n>", "virtual processors (default: 1)", integer(0))
    .option("--cid <n>", "guest_cid, 9100 to 9999 (default: a free one)", integer(0))
    .option("--template <id>", "template to start from (default: default)")
    .option("--snapshot <id>", "snapshot of the room to start from, in place of a template")
    .option("-e, --env <key=value>", "environment variable of every command in it; repeatable", pair)
    .option("--egress <entry>", "allow only this host, address or network; repeatable", word)
    .option("--no-egress", "allow no connection to the outside")
    .option("--label <key=value>", "a label of your own; repeatable", pair)
    .option(
      "--idle-timeout <time>",
      "it is idle after this time without a call, and destroyed unless --on-idle is given",
      seconds,
    )
    .option("--max-duration <time>", "end it after this time", seconds)
    .addOption(choice("--wait <what>", "wait until it is ready, or do not wait (default: ready)", ["ready", "none"]))
    .addOption(timeout("longest wait (default: 60s)"))
    .option("--no-fabric", "without the command `room` and room.internal: its agent cannot reach the room")
    .option("--no-network", "without any network; --no-egress can be changed later, this cannot")
    .action(async (room_id: string, agent_id: string, options: CreateOptions) => {
      const reply = await withProgress(`creating sandbox ${agent_id}`, () => createSandbox(room_id, agent_id, options));
      await show(reply, options, (made) => {
        const how = made.create_wall_ms === null ? "" : ` in ${made.create_wall_ms} ms (${made.start_mode ?? "cold"})`;
        return [`sandbox ${made.agent_id} is ${made.state}${how}: cid ${made.guest_cid}, ${made.memory_mib} MiB`];
      });
    });
}

/** Creates the sandbox, and waits, according to the options. Throws CliError. */
export async function createSandbox(room_id: string, agent_id: string, options: CreateOptions) {
  return await call(sandboxes.sandboxCreate, {
    room_id,
    agent_id,
    guest_cid: options.cid,
    memory_mib: options.memory,
    vcpu_count: options.vcpus,
    template_id: options.template,
    snapshot_id: options.snapshot,
    env: options.env,
    egress_allowlist: options.egress === false ? [] : options.egress,
    labels: options.label,
    idle_timeout_seconds: options.idleTimeout,
    max_duration_seconds: options.maxDuration,
    lifecycle: lifecycleFrom(options),
    wait: options.wait,
    wait_timeout_ms: options.timeout,
    attach_fabric: options.fabric === false ? false : undefined,
    enable_guest_net: options.network === false ? false : undefined,
  });
}
