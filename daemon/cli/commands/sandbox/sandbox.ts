/** `roomd sandbox`, except create, which is in sandbox-create.ts. */
import type { Command } from "commander";
import * as sandboxes from "../../../../shared/api/sandboxes.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup, timeout } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { labelFilter, pair, secondsOrNone } from "../../kit/values.ts";
import { verb } from "../../kit/verb.ts";
import { policyFor } from "./egress.ts";
import { type LifecycleOptions, lifecycleFrom, withLifecycle } from "./lifecycle.ts";
import { sandboxCreateCommand } from "./sandbox-create.ts";
import { forkCommand, rollbackCommand, takeSnapshotCommand } from "./snapshot.ts";

export function sandboxCommand(): Command {
  return commandGroup("sandbox", {
    summary: "sandboxes: the virtual machines of a room, one for each agent",
    examples: ["roomd sandbox create build-42 worker-1 --memory 512", "roomd sandbox list build-42"],
  })
    .addCommand(sandboxCreateCommand())
    .addCommand(list())
    .addCommand(
      verb(
        sandboxes.sandboxGet,
        "get <room> <agent>",
        "print a sandbox's record; AGENT is its agent_id or its sandbox_id",
        {
          examples: ["roomd sandbox get build-42 worker-1", "roomd sandbox get build-42 worker-1 --timeout 30s --json"],
          options: [timeout("wait this long for a starting sandbox (default: do not wait)")],
          fields: { timeout: "wait_ms" },
          lines: sandboxLines,
        },
      ),
    )
    .addCommand(
      verb(
        sandboxes.sandboxMetrics,
        "metrics <room> <agent>",
        "print a sandbox's use of processor, memory and disk, and the error of its clock",
        {
          examples: ["roomd sandbox metrics build-42 worker-1"],
          lines: recordLines,
        },
      ),
    )
    .addCommand(update())
    .addCommand(
      verb(
        sandboxes.sandboxStandby,
        "standby <room> <agent>",
        "pause a sandbox: it uses no CPU and keeps its memory and processes",
        {
          examples: ["roomd sandbox standby build-42 worker-1"],
          progress: ({ sandbox }) => `pausing sandbox ${sandbox}`,
          lines: stateLines,
        },
      ),
    )
    .addCommand(
      verb(
        sandboxes.sandboxHibernate,
        "hibernate <room> <agent>",
        "save a sandbox to disk: it uses no memory, and survives a restart of the host",
        {
          examples: ["roomd sandbox hibernate build-42 worker-1"],
          progress: ({ sandbox }) => `saving sandbox ${sandbox} to disk`,
          lines: stateLines,
        },
      ),
    )
    .addCommand(
      verb(
        sandboxes.sandboxResume,
        "resume <room> <agent>",
        "resume a sandbox in standby or hibernation, with its clock set right",
        {
          examples: ["roomd sandbox resume build-42 worker-1"],
          progress: ({ sandbox }) => `resuming sandbox ${sandbox}`,
          lines: stateLines,
        },
      ),
    )
    .addCommand(takeSnapshotCommand())
    .addCommand(forkCommand())
    .addCommand(rollbackCommand())
    .addCommand(
      verb(sandboxes.sandboxDestroy, "destroy <room> <agent>", "destroy a sandbox in any state", {
        examples: ["roomd sandbox destroy build-42 worker-1"],
        progress: ({ sandbox }) => `destroying sandbox ${sandbox}`,
        lines: (done) => [`sandbox ${done.agent_id} is ${done.state}, cid ${done.guest_cid} is free`],
      }).alias("delete"),
    );
}

interface SandboxListOptions extends ListOptions {
  state?: sandboxes.SandboxState;
  label?: string;
}

function list(): Command {
  const about = {
    summary: "list a room's sandboxes, or without ROOM those of all rooms",
    examples: ["roomd sandbox list build-42", "roomd sandbox list --state running"],
  };
  return asList(command("list [room]", about))
    .addOption(choice("--state <state>", "only sandboxes in this state", sandboxes.SANDBOX_STATES))
    .option("--label <key=value>", "only sandboxes with this label", labelFilter)
    .action(async (room_id: string | undefined, { label, state, limit, cursor, json }: SandboxListOptions) => {
      const filter = { state, label, limit, cursor };
      const reply =
        room_id === undefined
          ? await call(sandboxes.orgSandboxList, filter)
          : await call(sandboxes.sandboxList, { room_id, ...filter });
      const inAll = room_id === undefined;
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          [...(inAll ? ["ROOM"] : []), "AGENT", "STATE", "CID", "MEMORY", "VCPUS", "TEMPLATE", "CREATED", "SANDBOX"],
          items.map((sandbox) => [
            ...(inAll ? [sandbox.room_id] : []),
            sandbox.agent_id,
            sandbox.state,
            sandbox.guest_cid,
            `${sandbox.memory_mib} MiB`,
            sandbox.vcpu_count,
            sandbox.template_id,
            sandbox.created_at,
            sandbox.sandbox_id,
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    });
}

const stateLines = ({ agent_id, state }: { agent_id: string; state: string }) => [`sandbox ${agent_id} is ${state}`];
const sandboxLines = (record: sandboxes.SandboxRecord) => recordLines({ ...record, egress: policyFor(record.egress) });

interface UpdateOptions extends JsonOption, LifecycleOptions {
  label?: Record<string, string>;
  idleTimeout?: number | "none";
  maxDuration?: number | "none";
  expiresIn?: number | "none";
}

function update(): Command {
  const about = command("update <room> <agent>", {
    summary: "change a sandbox's labels and timeouts; the others stay",
    examples: [
      "roomd sandbox update build-42 worker-1 --label role=builder",
      "roomd sandbox update build-42 worker-1 --idle-timeout none --max-duration 8h",
      "roomd sandbox update build-42 worker-1 --idle-timeout 10m --on-idle hibernate --wake-on message",
    ],
  });
  return withLifecycle(about)
    .option("--label <key=value>", "a label; repeatable; these replace all earlier ones", pair)
    .option(
      "--idle-timeout <time>",
      "it is idle after this time without a call, and destroyed unless --on-idle is set; or none",
      secondsOrNone,
    )
    .option("--max-duration <time>", "end it this long after its creation, or none", secondsOrNone)
    .option("--expires-in <time>", "end it this long after now, or none", secondsOrNone)
    .action(async (room_id: string, sandbox: string, options: UpdateOptions) => {
      const reply = await call(sandboxes.sandboxUpdate, {
        room_id,
        sandbox,
        labels: options.label,
        idle_timeout_seconds: orNull(options.idleTimeout),
        max_duration_seconds: orNull(options.maxDuration),
        expires_in_seconds: orNull(options.expiresIn),
        lifecycle: lifecycleFrom(options),
      });
      await show(reply, options, sandboxLines);
    });
}

function orNull(time: number | "none" | undefined): number | null | undefined {
  return time === "none" ? null : time;
}
