/** `roomd ssh-access`: short-lived passwords with which a person without a key logs in to one sandbox. */
import type { Command } from "commander";
import { sshAccessCreate, sshAccessDelete, sshAccessList } from "../../../../shared/api/ssh.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { type JsonOption, show, table } from "../../kit/output.ts";
import { seconds } from "../../kit/values.ts";

export function sshAccessCommand(): Command {
  return commandGroup("ssh-access", {
    summary: "short-lived passwords for ssh to a sandbox",
    examples: ["roomd ssh-access create build-42 worker-1", "roomd ssh-access list build-42 worker-1"],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(revoke());
}

function create(): Command {
  return command("create <room> <agent>", {
    summary: "make a password, which is shown now and never again",
    examples: ["roomd ssh-access create build-42 worker-1 --expires-in 10m"],
  })
    .option("--expires-in <time>", "it expires after this time, and its sessions end (default: 1h)", seconds)
    .action(async (room_id: string, sandbox: string, options: JsonOption & { expiresIn?: number }) => {
      const reply = await call(sshAccessCreate, { room_id, sandbox, expires_in_seconds: options.expiresIn });
      await show(reply, options, (made) => [
        made.ssh_command,
        `password  ${made.token}`,
        `host key  ${made.host_key_fingerprint}`,
        `until     ${made.expires_at}`,
      ]);
    });
}

function list(): Command {
  return command("list <room> <agent>", {
    summary: "list the valid ones, with their open sessions",
    examples: ["roomd ssh-access list build-42 worker-1"],
  }).action(async (room_id: string, sandbox: string, options: JsonOption) => {
    const reply = await call(sshAccessList, { room_id, sandbox });
    await show(reply, options, ({ items }) =>
      table(
        ["ACCESS", "SESSIONS", "CREATED", "EXPIRES"],
        items.map((each) => [each.access_id, String(each.sessions), each.created_at, each.expires_at]),
      ),
    );
  });
}

function revoke(): Command {
  return command("revoke <room> <agent> <access-id>", {
    summary: "revoke one; its sessions end",
    examples: ["roomd ssh-access revoke build-42 worker-1 ssa_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D"],
  }).action(async (room_id: string, sandbox: string, access_id: string, options: JsonOption) => {
    const reply = await call(sshAccessDelete, { room_id, sandbox, access_id });
    await show(reply, options, () => [`ssh-access ${access_id} is revoked`]);
  });
}
