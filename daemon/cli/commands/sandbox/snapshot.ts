/** `roomd snapshot`, and the snapshot commands of `roomd sandbox`: take a snapshot, create a sandbox from one. */
import type { Command } from "commander";
import {
  SNAPSHOT_MODES,
  type SnapshotRecord,
  sandboxFork,
  sandboxRollback,
  snapshotCreate,
  snapshotDelete,
  snapshotGet,
  snapshotList,
} from "../../../../shared/api/snapshots.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { bytesText, type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { pair, seconds } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";

export function snapshotCommand(): Command {
  return commandGroup("snapshot", {
    summary: "snapshots of a room's sandboxes",
    examples: ["roomd snapshot list build-42", "roomd sandbox snapshot build-42 worker-1 --name before"],
  })
    .addCommand(
      verb(snapshotList, "list <room>", "list a room's snapshots as a tree", {
        examples: ["roomd snapshot list build-42", "roomd snapshot list build-42 --agent worker-1 --json"],
        options: [["--agent <agent>", "only snapshots of this agent"]],
        lines: ({ items, next_cursor }) => snapshotLines({ items: treeOf(items), next_cursor }),
      }),
    )
    .addCommand(
      verb(snapshotGet, "get <room> <snapshot>", "show a snapshot's record", {
        examples: ["roomd snapshot get build-42 snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
        lines: recordLines,
      }),
    )
    .addCommand(
      verb(
        snapshotDelete,
        "delete <room> <snapshot>",
        "delete a snapshot; sandboxes created from it keep the data they need",
        {
          examples: ["roomd snapshot delete build-42 snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
          lines: (done) => [`snapshot ${done.snapshot_id} is ${done.state}`],
        },
      ),
    );
}

const snapshotLines = columns<{ depth: number; each: SnapshotRecord }>(
  ["SNAPSHOT", ({ depth, each }) => `${"  ".repeat(depth)}${depth > 0 ? "└ " : ""}${each.snapshot_id}`],
  ["AGENT", ({ each }) => each.agent_id],
  ["NAME", ({ each }) => each.name],
  ["MODE", ({ each }) => each.mode],
  ["SIZE", ({ each }) => bytesText(each.size_bytes)],
  ["PAUSED", ({ each }) => `${each.paused_ms} ms`],
  ["CREATED", ({ each }) => each.created_at],
  ["EXPIRES", ({ each }) => each.expires_at],
);

/** Each snapshot below its parent, if the parent is among `items`. */
function treeOf(items: readonly SnapshotRecord[]): { depth: number; each: SnapshotRecord }[] {
  const known = new Set(items.map(({ snapshot_id }) => snapshot_id));
  const below = (parent: string | null, depth: number): { depth: number; each: SnapshotRecord }[] =>
    items
      .filter((each) => (each.parent !== null && known.has(each.parent) ? each.parent : null) === parent)
      .flatMap((each) => [{ depth, each }, ...below(each.snapshot_id, depth + 1)]);
  return below(null, 0);
}

export const takeSnapshotCommand = (): Command =>
  verb(snapshotCreate, "snapshot <room> <agent>", "take a snapshot of a sandbox, which is paused briefly", {
    examples: [
      "roomd sandbox snapshot build-42 worker-1 --name before",
      "roomd sandbox snapshot build-42 worker-1 --mode disk --expires 30d",
    ],
    options: [
      ["--name <name>", "a human-readable name"],
      choice("--mode <mode>", "memory and disk, or the disk alone (default: full)", SNAPSHOT_MODES),
      ["--expires <time>", "delete it after this time (default: 7d)", seconds],
    ],
    fields: { expires: "expires_in_seconds" },
    progress: ({ sandbox }) => `taking a snapshot of ${sandbox}`,
    lines: (made) => [
      `${made.snapshot_id}: ${bytesText(made.size_bytes)}, sandbox ${made.agent_id} paused for ${made.paused_ms} ms`,
    ],
  });

interface ForkOptions extends JsonOption {
  env?: Record<string, string>;
  expires?: number;
}

export function forkCommand(): Command {
  return command("fork <room> <agent>", {
    summary: "make copies of a running sandbox, one for each of these agents",
    examples: [
      "roomd sandbox fork build-42 worker-1 try-1 try-2 try-3",
      "roomd sandbox fork build-42 worker-1 try-4 --env SEED=4",
    ],
  })
    .argument("<agents...>", "the agents of the copies")
    .option("--env <key=value>", "environment variable of every command in them; repeatable", pair)
    .option("--expires <time>", "delete the snapshot behind the copies after this time (default: 7d)", seconds)
    .action(async (room_id: string, sandbox: string, names: string[], { env, expires, json }: ForkOptions) => {
      const agents = names.map((agent_id) => ({ agent_id, ...(env && { env }) }));
      const reply = await withProgress(`forking sandbox ${sandbox}`, () =>
        call(sandboxFork, { room_id, sandbox, agents, expires_in_seconds: expires }),
      );
      await show(reply, { json }, ({ snapshot_id, items }) => [
        `of ${snapshot_id}:`,
        ...items.map(({ agent_id, sandbox: made, problem }) =>
          made === null
            ? `  ${agent_id} was not created: ${problem?.detail ?? "no reason was given"}`
            : `  sandbox ${agent_id} is ${made.state}: cid ${made.guest_cid}`,
        ),
      ]);
    });
}

export const rollbackCommand = (): Command =>
  verb(
    sandboxRollback,
    "rollback <room> <agent> <snapshot>",
    "roll a sandbox back to a snapshot; later changes are lost",
    {
      examples: ["roomd sandbox rollback build-42 worker-1 snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
      progress: ({ sandbox }) => `rolling sandbox ${sandbox} back`,
      lines: (done, { snapshot_id }) => [`sandbox ${done.agent_id} is ${done.state}, as of ${snapshot_id}`],
    },
  );
