/**
 * `roomd ssh-key`: the public keys accepted for logins to an organization's sandboxes, by the operator or by a caller with `keys:write`.
 */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { sshKeyAdd, sshKeyList, sshKeyRemove } from "../../../../shared/api/ssh.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { type ConfigOption, withConfigOption } from "../../host/operator.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, print, showValue, table } from "../../kit/output.ts";
import { seconds } from "../../kit/values.ts";
import { KEY_NOTES, withKeyAccess } from "./key-access.ts";
import { type OrgOption, withOrgOption } from "./org-option.ts";

type Options = JsonOption & ConfigOption & OrgOption;

/** `words` are the command words between `roomd` and the verbs. */
export function sshKeyCommand(words: string): Command {
  return commandGroup("ssh-key", {
    summary: "public keys that log in to sandboxes by ssh",
    notes: KEY_NOTES,
    examples: [`roomd ${words} add ~/.ssh/id_ed25519.pub`, `roomd ${words} list`],
  })
    .addCommand(add(words))
    .addCommand(list(words))
    .addCommand(remove(words));
}

function add(words: string): Command {
  const about = {
    summary: "let the holder of this key log in to every sandbox of the organization",
    examples: [
      `roomd ${words} add ~/.ssh/id_ed25519.pub`,
      `roomd ${words} add ./ada.pub --name Ada --expires-in 30d --org org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D`,
    ],
  };
  return withConfigOption(withOrgOption(command("add <file>", about)))
    .option("--name <name>", "display name (default: its comment)")
    .option("--expires-in <time>", "it expires after this time, such as 30d", seconds)
    .action(async (file: string, options: Options & { name?: string; expiresIn?: number }) => {
      const public_key = readKey(file);
      const request = { public_key, name: options.name, expires_in_seconds: options.expiresIn };
      const added = await withKeyAccess(options, {
        asOperator: (operator, org_id) => operator.addSshKey(org_id, request),
        asCaller: async () => (await call(sshKeyAdd, { org_id: "self", ...request })).value,
      });
      await showValue(added, options, fieldLines);
    });
}

function list(words: string): Command {
  const about = {
    summary: "list an organization's public keys",
    examples: [`roomd ${words} list`, `roomd ${words} list --json`],
  };
  return withConfigOption(withOrgOption(command("list", about))).action(async (options: Options) => {
    const items = await withKeyAccess(options, {
      asOperator: (operator, org_id) => operator.listSshKeys(org_id),
      asCaller: async () => (await call(sshKeyList, { org_id: "self" })).value.items,
    });
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["SSH KEY", "NAME", "KIND", "FINGERPRINT", "CREATED", "EXPIRES"],
        items.map((key) => [key.ssh_key_id, key.name, key.algorithm, key.fingerprint, key.created_at, key.expires_at]),
      ),
    );
  });
}

function remove(words: string): Command {
  const about = {
    summary: "remove a public key; sessions opened with it end",
    examples: [`roomd ${words} remove ssk_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D`],
  };
  return withConfigOption(withOrgOption(command("remove <ssh-key-id>", about))).action(
    async (sshKeyId: string, options: Options) => {
      const removed = await withKeyAccess(options, {
        asOperator: (operator, org_id) => operator.removeSshKey(org_id, sshKeyId),
        asCaller: async () => (await call(sshKeyRemove, { org_id: "self", ssh_key_id: sshKeyId })).value,
      });
      if (options.json) await print(JSON.stringify(removed));
      else await print(`public key ${removed.fingerprint} is removed`);
    },
  );
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CliError(`${file} cannot be read (${errnoOf(error) ?? String(error)}).`, EXIT.usage);
  }
}
