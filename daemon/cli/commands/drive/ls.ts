/** `roomd ls`, `roomd rm` and `roomd ps`: short forms for rooms, sandboxes, their files, and running commands. */
import type { Command } from "commander";
import { fsDelete, fsList } from "../../../../shared/api/drive.ts";
import { executionList } from "../../../../shared/api/executions.ts";
import { roomDestroy, roomList } from "../../../../shared/api/rooms.ts";
import { sandboxFileDelete, sandboxFileList } from "../../../../shared/api/sandbox-files.ts";
import { orgSandboxList, sandboxDestroy, sandboxList } from "../../../../shared/api/sandboxes.ts";
import { commandText } from "../../../../shared/shell.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { bytesText, type JsonOption, moreLines, print, printable, show, table } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { type Target, target } from "../../kit/values.ts";

export function lsCommand(): Command {
  const about = {
    summary: "list rooms, the sandboxes of a room, or a directory of its drive or of a sandbox",
    examples: ["roomd ls", "roomd ls build-42", "roomd ls build-42:/results", "roomd ls build-42/worker-1:/root -r"],
  };
  return asList(command("ls", about))
    .argument("[target]", "ROOM, ROOM/AGENT, ROOM:/path or ROOM/AGENT:/path (default: all rooms)", target)
    .option("-r, --recursive", "of a directory, with everything below it")
    .action(async (requestedTarget: Target | undefined, options: LsOptions) => {
      if (requestedTarget === undefined) return await listRooms(options);
      if (requestedTarget.path !== null)
        return await listDirectory({ ...requestedTarget, path: requestedTarget.path }, options);
      await listSandboxes(requestedTarget, options);
    });
}

interface LsOptions extends ListOptions {
  recursive?: true;
}

async function listRooms({ limit, cursor, ...options }: LsOptions): Promise<void> {
  await show(await call(roomList, { state: "active", limit, cursor }), options, ({ items, next_cursor }) => [
    ...table(
      ["ROOM", "SANDBOXES", "DRIVE", "CREATED"],
      items.map((room) => [room.room_id, room.sandbox_count, bytesText(room.drive.used_bytes), room.created_at]),
    ),
    ...moreLines(next_cursor),
  ]);
}

async function listSandboxes({ room_id, agent }: Target, { limit, cursor, ...options }: LsOptions): Promise<void> {
  const reply = await call(sandboxList, { room_id, limit, cursor });
  await show(reply, options, ({ items, next_cursor }) => [
    ...table(
      ["AGENT", "STATE", "MEMORY", "TEMPLATE", "CREATED"],
      items
        .filter(({ agent_id, sandbox_id }) => agent === null || agent === agent_id || agent === sandbox_id)
        .map((each) => [each.agent_id, each.state, `${each.memory_mib} MiB`, each.template_id, each.created_at]),
    ),
    ...moreLines(next_cursor),
  ]);
}

async function listDirectory({ room_id, agent, path }: Target & { path: string }, options: LsOptions): Promise<void> {
  const { recursive = false, limit, cursor, json } = options;
  const input = { room_id, path, recursive, limit, cursor };
  const reply = agent === null ? await call(fsList, input) : await call(sandboxFileList, { ...input, sandbox: agent });
  await show(reply, { json }, ({ items, next_cursor }) => [
    ...items.map(({ path: found, type }) => printable(`${found}${type === "directory" ? "/" : ""}`)),
    ...moreLines(next_cursor),
  ]);
}

export function rmCommand(): Command {
  return command("rm", {
    summary: "delete a file of a drive or of a sandbox, a sandbox, or with -r a room with its sandboxes and its drive",
    examples: [
      "roomd rm build-42:/draft.txt",
      "roomd rm -r build-42/worker-1:/root/out",
      "roomd rm build-42/worker-1",
      "roomd rm -r build-42",
    ],
  })
    .argument("<target>", "ROOM:/path, ROOM/AGENT:/path, ROOM/AGENT or ROOM", target)
    .option("-r, --recursive", "with everything in it; needed for a room and for a directory that is not empty")
    .action(async ({ room_id, agent, path }: Target, options: JsonOption & { recursive?: boolean }) => {
      const { recursive } = options;
      if (path !== null) {
        const reply =
          agent === null
            ? await call(fsDelete, { room_id, path, recursive })
            : await call(sandboxFileDelete, { room_id, sandbox: agent, path, recursive });
        return await show(reply, options, (done) => [printable(`deleted ${done.path}`)]);
      }
      if (agent !== null) {
        const reply = await withProgress(`destroying sandbox ${agent}`, () =>
          call(sandboxDestroy, { room_id, sandbox: agent }),
        );
        return await show(reply, options, (done) => [`destroyed sandbox ${done.agent_id}`]);
      }
      if (!recursive) {
        const detail = `${room_id} is a room: with -r it is destroyed with its sandboxes and its drive.`;
        throw new CliError(
          { detail, errors: [], hint: "`roomd room destroy` keeps its drive for a while." },
          EXIT.usage,
        );
      }
      const reply = await withProgress(`destroying room ${room_id}`, () =>
        call(roomDestroy, { room_id, drive: "delete" }),
      );
      await show(reply, options, () => [`destroyed room ${room_id}`]);
    });
}

export function psCommand(): Command {
  return command("ps [room]", {
    summary: "list the sandboxes of a room, or of all rooms, with the commands that run in them",
    examples: ["roomd ps", "roomd ps build-42 --json"],
  }).action(async (room_id: string | undefined, { json }: JsonOption) => {
    const sandboxes = await allSandboxes(room_id);
    const rows = await withProgress("asking for commands", () =>
      Promise.all(
        sandboxes.map(async (sandbox) => {
          const commands = sandbox.state === "running" ? await runningIn(sandbox.room_id, sandbox.agent_id) : [];
          return { ...sandbox, commands };
        }),
      ),
    );
    if (json) return await print(JSON.stringify({ items: rows }));
    await print(
      ...table(
        ["ROOM", "AGENT", "STATE", "SINCE", "COMMAND"],
        rows.flatMap(({ room_id: room, agent_id, state, commands }) =>
          (commands.length > 0 ? commands : [null]).map((each) => [
            ...[room, agent_id, state],
            each?.started_at ?? null,
            each && commandText(each.argv).slice(0, MAX_SHOWN_CHARACTERS),
          ]),
        ),
      ),
    );
  });
}

const MAX_SHOWN_CHARACTERS = 60;
/** Maximum number of sandboxes to list commands of. */
const MAX_SANDBOXES = 1000;

async function allSandboxes(room_id: string | undefined) {
  const found: { room_id: string; agent_id: string; state: string }[] = [];
  let cursor: string | undefined;
  do {
    const { value } =
      room_id === undefined ? await call(orgSandboxList, { cursor }) : await call(sandboxList, { room_id, cursor });
    found.push(...value.items.map(({ room_id: room, agent_id, state }) => ({ room_id: room, agent_id, state })));
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < MAX_SANDBOXES);
  return found;
}

/** The sandbox's running commands; empty if the sandbox has ended in the meantime. */
async function runningIn(room_id: string, sandbox: string) {
  try {
    const { value } = await call(executionList, { room_id, sandbox });
    return value.items.filter(({ state }) => state === "running");
  } catch (error) {
    if (error instanceof CliError && error.complaint.status !== undefined && error.complaint.status < 500) return [];
    throw error;
  }
}
